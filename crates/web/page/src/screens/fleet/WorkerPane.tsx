/** The open worker: what it is at, its transcript, and a message to it. */
import { useEffect, useMemo, type ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import type { Action, WorkerRow } from '../../api/view';
import { useActions, type Action as PageAction } from '../../keys/actions';
import { Button } from '../../parts/Button';
import { Glyph } from '../../parts/Glyph';
import { NARROW, useMedia } from '../../parts/media';
import { Menu } from '../../parts/Menu';
import { Plain, plain } from '../../parts/plain';
import { useActionsOn } from '../../store/store';
import { Compose } from './Compose';
import type { MessageRow } from './fold';
import { Transcript } from './Transcript';
import type { Details } from './use-details';
import { useMessages } from './use-messages';
import { useTranscript } from './use-transcript';
import { ActionButton, labelOf, titleOf, type Doer } from './WorkerActions';
import { Doing, inboxOf, StateGlyph, untilOf } from './WorkerList';

/** It goes with the next step: until then it stands above the field. */
const isKept = (message: MessageRow) => message.receipt.state === 'queued' && message.receipt.words !== 'sent';

interface Props {
  row: WorkerRow;
  details: Details;
  doer: Doer;
  /** Opens the rail where it has no room. */
  opener: ReactNode;
}

export function WorkerPane({ row, details, doer, opener }: Props) {
  const narrow = useMedia(NARROW);
  const log = useTranscript(row.id, row.run, row.seq);
  const said = details.task?.comments?.filter((comment) => comment.by.startsWith('human:')).length ?? 0;
  const { messages, look } = useMessages(row.task, said, row.seq);
  const kept = useMemo(() => messages.filter(isKept), [messages]);
  const told = useMemo(() => messages.filter((message) => !isKept(message)), [messages]);
  useTitle(row);
  useWorkerKeys(row, doer);
  const working = row.attention !== 'idle';
  return (
    <section className="pane main" aria-label={plain(row.name)}>
      <Head row={row} doer={doer} opener={opener} narrow={narrow} />
      <Wait row={row} narrow={narrow} />
      <Transcript key={row.id} log={log} messages={told} working={working} />
      <Compose key={`compose ${row.id}`} row={row} kept={kept} onSent={look} />
      {narrow && <MainAction row={row} doer={doer} />}
    </section>
  );
}

function Head({ row, doer, opener, narrow }: { row: WorkerRow; doer: Doer; opener: ReactNode; narrow: boolean }) {
  const [, go] = useLocation();
  const main = mainAction(row);
  const others = row.actions.filter((action) => action !== main);
  return (
    <div className="pane-head worker-head">
      {narrow && <Button look="quiet" size="tiny" glyph="back" aria-label="All workers" onClick={() => go('/fleet')} />}
      <StateGlyph row={row} breathes={row.activity.state === 'step'} />
      <b><Plain text={row.name} /></b>
      {row.task !== null
        ? <span className="cut"><Link className="ref id" href={`/task/${row.task}`}>{row.task}</Link> <Plain text={row.title} /></span>
        : <span className="cut dim"><Doing row={row} /></span>}
      {row.turn !== null && row.maxTurns !== null && <span className="small faint nowrap turns">turn {row.turn} of {row.maxTurns}</span>}
      <span className="push row">
        {narrow ? <MoreMenu row={row} others={others} doer={doer} /> : row.actions.map((action) => <ActionButton key={action.code} action={action} of={row.name} doer={doer} />)}
        {opener}
      </span>
    </div>
  );
}

function MoreMenu({ row, others, doer }: { row: WorkerRow; others: readonly Action[]; doer: Doer }) {
  const live = useActionsOn();
  if (others.length === 0) return null;
  return (
    <Menu
      label={`What can be done with ${row.name}`}
      items={others.map((action) => ({
        id: action.code, label: labelOf(action), off: action.refused ?? (live ? null : 'The page is not live.'), run: () => doer.run(action, titleOf(action, row.name)),
      }))}
    >
      <Glyph name="more" size={14} /><span className="hide">More</span>
    </Menu>
  );
}

/** A wait that a person or time ends stands above the transcript, whole. */
function Wait({ row, narrow }: { row: WorkerRow; narrow: boolean }) {
  const until = untilOf(row);
  if (until) return <p className="wait-line warn"><Glyph name="clock" size={14} /><span><Doing row={row} /></span></p>;
  if (row.tone === 'bad') return <p className="wait-line bad"><Glyph name="worker.stuck" size={14} /><span><Doing row={row} /></span></p>;
  if (row.tone !== 'you') return null;
  return (
    <p className="wait-line you">
      <Glyph name="task.NEEDS_APPROVAL" size={14} /><span><Plain text={row.text} /></span>
      {!narrow && <Link className="btn dense push" href={inboxOf(row)}>Answer in the inbox</Link>}
    </p>
  );
}

/** On a narrow screen one thing has a button of its own: the answer it waits for, or the first that does not end its work. */
function mainAction(row: WorkerRow): Action | undefined {
  return row.tone === 'you' ? undefined : row.actions.find((action) => !action.endsWork);
}

function MainAction({ row, doer }: { row: WorkerRow; doer: Doer }) {
  const main = mainAction(row);
  if (row.tone === 'you') return <div className="main-action"><Link className="btn primary" href={inboxOf(row)}>Answer in the inbox</Link></div>;
  return main ? <div className="main-action"><ActionButton action={main} of={row.name} doer={doer} size="normal" /></div> : null;
}

function useWorkerKeys(row: WorkerRow, doer: Doer): void {
  const { run } = doer;
  useActions(useMemo<PageAction[]>(() => {
    const turned = row.actions.find((action) => action.code === 'pause_run' || action.code === 'resume_run');
    const offered = row.actions.filter((action) => action !== turned).map((action) => ({
      id: `worker.${action.code}`, label: `${labelOf(action)}`, group: `On ${row.name}`, hint: action.happens[0], acts: true, off: action.refused ?? null,
      run: () => run(action, titleOf(action, row.name)),
    }));
    if (!turned) return offered;
    return [{ id: 'pause', label: turned.label, group: `On ${row.name}`, glyph: 'run.paused', acts: true, off: turned.refused ?? null, run: () => run(turned) }, ...offered];
  }, [row.actions, row.name, run]));
}

function useTitle(row: WorkerRow): void {
  const title = plain([row.name, row.task, 'Fleet', 'Adjutant'].filter(Boolean).join(' · '));
  useEffect(() => {
    document.title = title;
  }, [title]);
}
