import './inbox.css';
import { useEffect, useMemo, useRef } from 'react';
import { Link, useLocation } from 'wouter';
import { useActions } from '../../keys/actions';
import { Button } from '../../parts/Button';
import { Glyph } from '../../parts/Glyph';
import { Plain } from '../../parts/plain';
import { Case } from './Case';
import { DecideForm } from './DecideForm';
import { hides, lastHeld } from './decisions';
import { useHeld, watch } from './hold';
import { List } from './List';
import { PickedBar } from './PickedBar';
import { useFacts } from '../../store/store';
import { placeOf, waysOf } from './rows';
import { sayRefused, undoLast } from './Undo';
import { useInbox, type InboxState } from './use-inbox';
import { DecidePhone } from './Ways';

export default function Inbox() {
  const inbox = useInbox();
  useEffect(() => watch(sayRefused), []);
  useInboxActions(inbox);
  const pane = inbox.narrow && inbox.row !== undefined ? 'detail' : 'list';
  return (
    <div className="panes inbox" data-pane={pane}>
      {(!inbox.narrow || pane === 'list') && (
        <section className="pane list" aria-label="Inbox">
          <h1 className="hide">Inbox</h1>
          <List inbox={inbox} />
          {inbox.narrow && <PickedBar inbox={inbox} />}
        </section>
      )}
      {(!inbox.narrow || pane === 'detail') && <Detail inbox={inbox} />}
      {inbox.asked && <DecideForm asked={inbox.asked} onFill={inbox.fill} onCancel={inbox.closeForm} />}
    </div>
  );
}

function Detail({ inbox }: { inbox: InboxState }) {
  const { row } = inbox;
  return (
    <section className="pane detail" aria-label="Question">
      {inbox.narrow && <Pager inbox={inbox} />}
      <div className="scroll">
        {row && <Case row={row} inbox={inbox} />}
        {row === null && <Gone inbox={inbox} />}
      </div>
      {row && <DecidePhone row={row} inbox={inbox} />}
      {!inbox.narrow && <PickedBar inbox={inbox} />}
    </section>
  );
}

/** The row of this address is not in the list: it stays in its place, so that nothing is decided instead of it. */
function Gone({ inbox }: { inbox: InboxState }) {
  const { decisions, left } = useHeld();
  const id = inbox.cursor.focused;
  const mine = decisions.find((each) => each.id === id && hides(each));
  const text = mine?.text ?? left.find((each) => each.id === id)?.text ?? decisions.find((each) => each.id === id)?.text;
  const why = mine ? 'You have decided it.' : 'It was decided elsewhere, or nothing depends on it now.';
  return (
    <div className="case">
      <h1>{text === undefined ? 'Nothing waits at this address' : <Plain text={text} />}</h1>
      <p className="dim">{mine || text === undefined ? why : `It does not wait any more. ${why}`}</p>
      {inbox.cursor.shown.length > 0 && <p className="gone-next"><Button action="next" onClick={() => inbox.step(1)}>Next question</Button></p>}
    </div>
  );
}

function Pager({ inbox }: { inbox: InboxState }) {
  const { shown, place } = inbox.cursor;
  return (
    <div className="pager">
      <Link className="btn quiet" href="/inbox"><Glyph name="left" />Inbox</Link>
      <span className="push small dim">{inbox.row ? `${place + 1} of ${shown.length}` : ''}</span>
      <Button look="quiet" glyph="up" aria-label="Previous" onClick={() => inbox.step(-1)} />
      <Button look="quiet" glyph="down" aria-label="Next" onClick={() => inbox.step(1)} />
    </div>
  );
}

/** Keys and palette. Each is run by its name in the table of keys. */
function useInboxActions(inbox: InboxState): void {
  const [, go] = useLocation();
  const { decisions } = useHeld();
  const current = useRef(inbox);
  current.current = inbox;
  const repeated = useRepeated();
  const project = useFacts()?.project ?? '';
  const { row, narrow } = inbox;
  const several = inbox.picked.length;
  const held = lastHeld(decisions);
  const yes = row ? waysOf(row.actions).yes?.label : undefined;
  const no = row ? waysOf(row.actions).no?.label : undefined;
  const none = several === 0 && !row ? 'no row is focused' : null;
  const hint = several > 0 ? `${several} selected` : undefined;
  const group = several > 0 ? 'On the selected rows' : 'On this question';
  useActions(useMemo(() => [
    { id: 'approve', label: yes ?? 'Yes', group, hint, acts: true, off: none ?? (several === 0 && !yes ? 'there is no yes to this' : null), run: () => current.current.answer('yes', repeated.current) },
    { id: 'deny', label: no ?? 'No', group, hint, acts: true, off: none ?? (several === 0 && !no ? 'there is no no to this' : null), run: () => current.current.answer('no', repeated.current) },
    { id: 'select', label: 'Select, to decide several at once', group: 'On this question', off: row ? null : 'no row is focused', run: () => row && current.current.pick(row.id) },
    { id: 'undo', label: 'Undo the last decision', group: 'This view', off: held ? null : 'nothing is held', run: () => undoLast(held ? [held] : []) },
    { id: 'next', label: 'Next', group: 'This view', run: () => current.current.step(1) },
    { id: 'previous', label: 'Previous', group: 'This view', run: () => current.current.step(-1) },
    { id: 'open', label: 'Open its task', group: 'On this question', off: row?.task ? null : 'it is about no task', run: () => row?.task && go(placeOf(row, project, `/task/${row.task}`)) },
    { id: 'back', label: several > 0 ? 'Clear the selection' : 'Back to the list', group: 'This view', run: () => (several > 0 ? current.current.clear() : narrow && go('/inbox')) },
  ], [yes, no, group, hint, none, several, row, held, narrow, go, project, repeated]));
}

/** Whether the last key is held down: it decides nothing then. */
function useRepeated() {
  const repeated = useRef(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => { repeated.current = event.repeat; };
    window.addEventListener('keydown', onKey, true);
    return () => window.removeEventListener('keydown', onKey, true);
  }, []);
  return repeated;
}
