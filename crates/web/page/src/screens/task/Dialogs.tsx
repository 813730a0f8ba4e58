/** The dialogs of a task: an action with its consequences, drafts that an approval would leave behind, and the round that is sent. */
import { useState } from 'react';
import type { Action } from '../../api/view';
import { announce } from '../../frame/announce';
import { Copyable } from '../../frame/Copyable';
import { strokeOf } from '../../keys/strokes';
import { ActionDialog } from '../../parts/ActionForm';
import { Button } from '../../parts/Button';
import { Dialog } from '../../parts/Dialog';
import { Plain } from '../../parts/plain';
import { showToast } from '../../parts/Toast';
import { useTerms } from '../../store/store';
import type { TaskData } from './data';
import { lineWords, type Draft } from './talk';
import { count } from './words';

export type Open = { type: 'action'; action: Action } | { type: 'pending'; action: Action } | { type: 'send' } | null;

interface Props {
  data: TaskData;
  open: Open;
  setOpen: (open: Open) => void;
}

export function Dialogs({ data, open, setOpen }: Props) {
  const close = () => setOpen(null);
  if (!open) return null;
  if (open.type === 'send') return <SendRound data={data} onClose={close} />;
  if (open.type === 'pending') return <Pending data={data} action={open.action} setOpen={setOpen} />;
  const { action } = open;
  if (!action.request) {
    return (
      <Dialog title={action.label} onClose={close}>
        {action.happens.map((text, index) => <p key={index}><Plain text={text} /></p>)}
        {action.command && <Copyable command={action.command} />}
      </Dialog>
    );
  }
  const done = () => {
    close();
    announce(`${action.label}: done`);
  };
  return <ActionDialog action={action} title={`${action.label}: ${data.id}`} onDone={done} onCancel={close} />;
}

/** Approving would leave drafts behind: the person says what becomes of them. */
function Pending({ data, action, setOpen }: { data: TaskData; action: Action; setOpen: (open: Open) => void }) {
  const { talk } = data;
  const [busy, setBusy] = useState(false);
  const discard = async () => {
    setBusy(true);
    for (const draft of talk.drafts) {
      const problem = await talk.discard(draft.id);
      if (problem && problem.status !== 404) {
        setBusy(false);
        showToast({ glyph: 'back', tone: 'bad', title: 'The drafts are not discarded, and nothing is approved.', text: problem.detail });
        return;
      }
    }
    setOpen({ type: 'action', action });
  };
  const them = talk.drafts.length === 1 ? 'it' : 'them';
  return (
    <Dialog title={`${count(talk.drafts.length, 'draft')} ${talk.drafts.length === 1 ? 'is' : 'are'} not sent`} onClose={() => setOpen(null)}>
      <DraftList drafts={talk.drafts} />
      <div className="choices">
        <Button acts data-first onClick={() => setOpen({ type: 'send' })}>Send {them} as round {talk.nextRound}, and do not approve</Button>
        <Button acts onClick={() => setOpen({ type: 'action', action })}>Keep {them} as {talk.drafts.length === 1 ? 'a draft' : 'drafts'}, and approve</Button>
        <Button acts look="no" off={busy ? 'They are being discarded.' : null} onClick={() => void discard()}>Discard {them}, and approve</Button>
      </div>
    </Dialog>
  );
}

function SendRound({ data, onClose }: { data: TaskData; onClose: () => void }) {
  const { talk, ways } = data;
  const [note, setNote] = useState('');
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const keys = useTerms()?.keys.find((row) => row.action === 'send')?.keys ?? [];
  const round = talk.nextRound;
  const send = async () => {
    const tip = data.diff.value?.tip ?? data.task.value?.tip;
    if (busy || !tip || talk.drafts.length === 0) return;
    setBusy(true);
    const refused = await talk.send(tip, note);
    setBusy(false);
    if (refused) {
      setProblem([refused.detail, refused.hint].filter(Boolean).join('; '));
      return;
    }
    announce(`Round ${round} is sent`);
    onClose();
  };
  return (
    <Dialog title={`Send round ${round}`} onClose={onClose} footer={<>
      <Button onClick={onClose}>Not yet</Button>
      <Button look="primary" acts action="send" off={busy ? 'It is being sent.' : talk.drafts.length === 0 ? 'There is no draft.' : null} onClick={() => void send()}>Send {count(talk.drafts.length, 'comment')}</Button>
    </>}>
      <div onKeyDown={(event) => {
        if (!keys.includes(strokeOf(event.nativeEvent) ?? '')) return;
        event.preventDefault();
        void send();
      }}>
        <ul className="happens">
          {(ways.no?.happens ?? []).map((text, index) => <li key={index}><Plain text={text} /></li>)}
        </ul>
        <DraftList drafts={talk.drafts} />
        <label className="note-field"><span className="small dim">A note for the whole round, if you like</span>
          <textarea data-first rows={2} value={note} onChange={(event) => setNote(event.target.value)} /></label>
        {problem && <p className="problem bad"><Plain text={problem} /></p>}
      </div>
    </Dialog>
  );
}

function DraftList({ drafts }: { drafts: readonly Draft[] }) {
  return (
    <ul className="pending-drafts">
      {drafts.map((draft) => (
        <li key={draft.id}><span className="mono small"><Plain text={draft.path} /></span> <span className="faint small">{lineWords(draft)}</span><p><Plain text={draft.text} /></p></li>
      ))}
    </ul>
  );
}
