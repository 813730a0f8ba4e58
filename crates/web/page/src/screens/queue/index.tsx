import './queue.css';
import { useEffect, useMemo, useRef, useState, type ReactNode } from 'react';
import { useLocation } from 'wouter';
import { useShallow } from 'zustand/react/shallow';
import type { QueueRow } from '../../api/view';
import { useActions } from '../../keys/actions';
import { ActionForm } from '../../parts/ActionForm';
import { EmptyState } from '../../parts/EmptyState';
import { Glyph } from '../../parts/Glyph';
import { Plain } from '../../parts/plain';
import { useRail } from '../../parts/Rail';
import { clockTime } from '../../parts/time';
import { useClockText } from '../../store/clock';
import { useFacts, useStore, useTerms } from '../../store/store';
import { QueueRail, toneOf } from './QueueRail';
import { Row } from './Row';
import { allLandedAt, nextRow, stepsOf, type Step } from './steps';
import { useRetry } from './use-retry';

export default function Queue() {
  const rows = useStore(useShallow((state) => state.rows.list('queue').flatMap((id) => state.rows.row('queue', id) ?? [])));
  const terms = useTerms();
  const steps = useMemo(() => stepsOf(rows, terms?.queueSteps ?? []), [rows, terms]);
  const shown = useMemo(() => steps.flatMap((step) => step.rows), [steps]);
  const [focused, focus] = useState<string | null>(null);
  const retry = useRetry();
  const list = useRef<HTMLDivElement>(null);
  useFollow(list, focused);
  const { rail, opener } = useRail({ title: 'Main and landed', children: <QueueRail /> });

  const [, go] = useLocation();
  const row = shown.find((each) => each.id === focused);
  useActions(useMemo(() => {
    const on = row ? `On ${row.task}` : 'This view';
    const none = row ? null : 'no row is focused';
    const action = row?.actions[0];
    return [
      { id: 'open', label: row ? `Open ${row.task}` : 'Open', group: on, off: none, run: () => row && go(`/task/${row.task}`) },
      {
        id: 'queue.retry', label: action?.label ?? 'Try to land now', group: on, acts: true, hint: action?.happens[0],
        off: none ?? (action ? (action.refused ?? null) : 'it waits for nothing that you could do'), run: () => row && action && retry.act(row, action),
      },
      { id: 'next', label: 'Next', group: 'This view', run: () => focus(nextRow(shown, focused, 1)) },
      { id: 'previous', label: 'Previous', group: 'This view', run: () => focus(nextRow(shown, focused, -1)) },
    ];
  }, [row, shown, focused, go, retry]));

  return (
    <div className="panes queue">
      <section className="pane" aria-label="Queue">
        <h1 className="hide">Queue</h1>
        <Sums steps={steps} rows={rows} opener={opener} />
        <div className="scroll" ref={list}>
          <div className="q-head" aria-hidden="true"><span /><span>Place and task</span><span>Now</span><span>Elapsed</span><span>Expected</span></div>
          <MainRow />
          {rows.length === 0 && <EmptyState glyph="queue" title="Nothing is queued">A task that is approved comes here, is merged with main, tested, and lands.</EmptyState>}
          {steps.filter((step) => step.rows.length > 0).map((step) => (
            <section key={step.id} aria-label={step.label}>
              <h2 className="group"><Glyph name={step.glyph} size={14} />{step.label}<span className="faint">{step.rows.length}</span></h2>
              <ol>{step.rows.map((each) => <Row key={each.id} row={each} all={rows} focused={each.id === focused} retry={retry} />)}</ol>
            </section>
          ))}
        </div>
      </section>
      {rail}
      {retry.form && <ActionForm action={retry.form} onDone={retry.closeForm} onCancel={retry.closeForm} />}
    </div>
  );
}

/** Counted from the same rows that stand below. */
function Sums({ steps, rows, opener }: { steps: readonly Step[]; rows: readonly QueueRow[]; opener: ReactNode }) {
  const landed = useFacts()?.landedLastHour;
  const until = useClockText((now) => {
    const at = allLandedAt(rows, now);
    return at === null ? '' : `about ${clockTime(at).slice(0, 5)}`;
  });
  return (
    <div className="sums-bar">
      <dl className="sums">
        {steps.map((step) => <div key={step.id}><dt>{step.label.toLowerCase()}</dt><dd>{step.rows.length}</dd></div>)}
        {until && <div><dt>all landed by</dt><dd>{until}</dd></div>}
        {landed !== undefined && <div className="wide-only"><dt>landed in the last hour</dt><dd>{landed}</dd></div>}
      </dl>
      {opener}
    </div>
  );
}

function MainRow() {
  const facts = useFacts();
  if (!facts) return null;
  return (
    <p className="q-main">
      <Glyph name={facts.main.glyph} size={14} tone={toneOf(facts.mainTests?.state)} />
      <span><b><Plain text={facts.main.text} /></b> <span className="mono dim">{facts.main.commit}</span></span>
    </p>
  );
}

function useFollow(list: React.RefObject<HTMLDivElement | null>, focused: string | null): void {
  useEffect(() => {
    if (focused === null) return;
    const item = list.current?.querySelector<HTMLElement>(`[data-queue="${CSS.escape(focused)}"]`);
    item?.scrollIntoView({ block: 'nearest' });
    item?.querySelector('a')?.focus({ preventScroll: true });
  }, [list, focused]);
}
