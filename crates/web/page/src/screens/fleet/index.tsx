import './fleet.css';
import './log.css';
import { useEffect, useMemo, useState } from 'react';
import { useLocation, useParams } from 'wouter';
import type { WorkerRow } from '../../api/view';
import { announce } from '../../frame/announce';
import { perform, useActions } from '../../keys/actions';
import { Button } from '../../parts/Button';
import { EmptyState } from '../../parts/EmptyState';
import { NARROW, RAIL, useMedia } from '../../parts/media';
import { useRail } from '../../parts/Rail';
import { useCount, useFacts, useRow, useTerms } from '../../store/store';
import { FleetSwitch } from './FleetSwitch';
import { useDetails, useLimits } from './use-details';
import { nextWaiting, shownOrder, somethingWaits, stepFrom } from './use-order';
import { useDoer, type Doer } from './WorkerActions';
import { WorkerList } from './WorkerList';
import { WorkerPane } from './WorkerPane';
import { WorkerRail } from './WorkerRail';

export default function Fleet() {
  const { id } = useParams<{ id?: string }>();
  const open = id === undefined ? null : decoded(id);
  const narrow = useMedia(NARROW);
  const count = useCount('workers');
  const row = useRow('workers', open ?? '');
  const doer = useDoer();
  const { focused, next } = useListKeys(open);
  useFirst(open, narrow);
  return (
    <>
      <h1 className="hide">Fleet</h1>
      <div className={narrow && open !== null ? 'panes fleet one-worker' : 'panes fleet'}>
        {(!narrow || open === null) && (
          <section className="pane list" aria-label="Workers">
            <div className="pane-head">
              <span className="strong">{count} {count === 1 ? 'worker' : 'workers'}</span>
              <span className="push row"><Button size="tiny" action="next.waiting" onClick={next}>Next that waits</Button><FleetSwitch doer={doer} /></span>
            </div>
            {count === 0 ? <NoWorkers /> : <WorkerList open={open} focused={focused} />}
          </section>
        )}
        {row ? <OpenWorker key={row.id} row={row} doer={doer} /> : (!narrow || open !== null) && <NotOpen open={open} count={count} />}
      </div>
      {doer.dialog}
    </>
  );
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function OpenWorker({ row, doer }: { row: WorkerRow; doer: Doer }) {
  const { details, comparable } = useDetails(row);
  const limits = useLimits();
  const { rail, opener } = useRail({
    title: `About ${row.name}`,
    children: <WorkerRail row={row} details={details} comparable={comparable} limits={limits} />,
  });
  const wide = useMedia(RAIL);
  useActions(useMemo(() => [
    { id: 'why', label: `What ${row.name} waits for`, group: `On ${row.name}`, glyph: 'clock', run: () => showWhy(wide) },
  ], [row.name, wide]));
  return (
    <>
      <WorkerPane row={row} details={details} doer={doer} opener={opener} />
      {rail}
    </>
  );
}

function showWhy(wide: boolean): void {
  if (!wide && !document.getElementById('fleet-why')) perform('rail.toggle');
  // The drawer is there after the next rendering.
  requestAnimationFrame(() => {
    const why = document.getElementById('fleet-why');
    why?.scrollIntoView({ block: 'nearest' });
    why?.focus();
    if (!why) announce('It waits for nothing.');
  });
}

function NotOpen({ open, count }: { open: string | null; count: number }) {
  if (open === null) return count === 0 ? <section className="pane main" /> : <section className="pane main"><EmptyState glyph="fleet" title="No worker is open" /></section>;
  return <section className="pane main"><EmptyState glyph="worker.idle" title={`There is no worker ${open}`}>It may have retired: a fleet with nothing to do has fewer workers.</EmptyState></section>;
}

function NoWorkers() {
  const facts = useFacts();
  return <EmptyState glyph="fleet" title="No workers">{facts?.running ? 'The fleet adds them when there is work.' : 'Start the fleet, and its workers come here.'}</EmptyState>;
}

/** An address without a worker opens the first by attention, once: later changes of the order open nothing. */
function useFirst(open: string | null, narrow: boolean): void {
  const [, go] = useLocation();
  const terms = useTerms();
  const count = useCount('workers');
  const first = open === null && !narrow && count > 0 ? shownOrder(terms)[0] : undefined;
  useEffect(() => {
    if (first !== undefined) go(`/fleet/${encodeURIComponent(first)}${location.search}`, { replace: true });
  }, [first, go]);
}

function useListKeys(open: string | null): { focused: string | null; next: () => void } {
  const [, go] = useLocation();
  const terms = useTerms();
  const narrow = useMedia(NARROW);
  const [pointed, point] = useState<string | null>(null);
  const focused = pointed ?? open;
  const actions = useMemo(() => {
    const show = (id: string | null) => id !== null && go(`/fleet/${encodeURIComponent(id)}`);
    const move = (by: 1 | -1) => {
      const id = stepFrom(shownOrder(terms), focused, by);
      point(id);
      if (id !== null) document.querySelector(`[data-worker="${CSS.escape(id)}"]`)?.scrollIntoView({ block: 'nearest' });
      // Beside the list the worker is shown as the focus moves.
      if (!narrow) show(id);
    };
    const next = () => {
      const id = nextWaiting(shownOrder(terms), focused, somethingWaits);
      if (id === null) return announce('No worker waits for you.');
      point(id);
      show(id);
    };
    return [
      { id: 'next', label: 'Next worker', group: 'This view', glyph: 'down', run: () => move(1) },
      { id: 'previous', label: 'Previous worker', group: 'This view', glyph: 'up', run: () => move(-1) },
      { id: 'open', label: 'Open the worker', group: 'This view', glyph: 'arrow', run: () => show(focused) },
      { id: 'next.waiting', label: 'Next that waits', group: 'This view', glyph: 'task.NEEDS_APPROVAL', run: next },
      { id: 'back', label: 'All workers', group: 'This view', glyph: 'back', run: () => narrow && go('/fleet') },
    ];
  }, [terms, focused, go, narrow]);
  useActions(actions);
  useEffect(() => point(null), [open]);
  return { focused: pointed === open ? null : pointed, next: () => actions.find((action) => action.id === 'next.waiting')?.run() };
}
