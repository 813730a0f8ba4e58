/** The workers in the groups of the server, those that wait for a person first. */
import { memo } from 'react';
import { Link } from 'wouter';
import { Age, Countdown } from '../../parts/Age';
import { Glyph } from '../../parts/Glyph';
import { Plain } from '../../parts/plain';
import type { WorkerRow } from '../../api/view';
import { useRow, useTerms, useWorkerIds } from '../../store/store';

interface Props {
  /** The worker that is open. */
  open: string | null;
  /** The one that the keys point at. */
  focused: string | null;
}

export function WorkerList({ open, focused }: Props) {
  const terms = useTerms();
  return (
    <div className="scroll">
      {terms?.attention.map((group) => <Group key={group.id} id={group.id} label={group.label} open={open} focused={focused} />)}
    </div>
  );
}

function Group({ id, label, open, focused }: Props & { id: string; label: string }) {
  const ids = useWorkerIds(id);
  if (ids.length === 0) return null;
  return (
    <section aria-label={label}>
      <h2 className="group">{label} <span className="push faint">{ids.length}</span></h2>
      <ul>{ids.map((worker) => <Line key={worker} id={worker} open={worker === open} focused={worker === focused} />)}</ul>
    </section>
  );
}

const Line = memo(function Line({ id, open, focused }: { id: string; open: boolean; focused: boolean }) {
  const row = useRow('workers', id);
  if (!row) return null;
  return (
    <li>
      <Link href={`/fleet/${encodeURIComponent(id)}`} className={['worker', row.task === null && 'one', open && 'sel', focused && 'is-focus'].filter(Boolean).join(' ')} aria-current={open ? 'true' : undefined} data-worker={id}>
        <StateGlyph row={row} />
        <span className="l1">
          <b><Plain text={row.name} /></b>
          {row.task === null
            ? <span className="cut dim"><Doing row={row} /></span>
            : <span className="cut"><span className="id">{row.task}</span> <Plain text={row.title} /></span>}
        </span>
        <span className="age"><Age since={row.since} /></span>
        {row.task !== null && (
          <span className="l2">
            <span className={`cut said ${row.tone}`}><Doing row={row} /></span>
            <span className="push nowrap faint"><Plain text={row.agent} /></span>
          </span>
        )}
      </Link>
    </li>
  );
});

export function StateGlyph({ row, breathes = false }: { row: WorkerRow; breathes?: boolean }) {
  const label = useTerms()?.workerStates.find((state) => state.id === row.state)?.label ?? row.state;
  const tone = row.tone === 'you' || row.tone === 'bad' ? row.tone : row.attention === 'idle' ? 'faint' : undefined;
  return <><Glyph name={`worker.${row.state}`} tone={tone} breathes={breathes} /><span className="hide">{label}</span></>;
}

/** What it does or asks; a wait that ends by itself says when. */
export function Doing({ row }: { row: WorkerRow }) {
  const until = untilOf(row);
  const label = useTerms()?.workerStates.find((state) => state.id === row.state)?.label ?? row.state;
  return <>{row.text ? <Plain text={row.text} /> : label.toLowerCase()}{until && <>, again in <b><Countdown until={until} /></b></>}</>;
}

/** Where it is answered, if it waits for a person. */
export function inboxOf(row: WorkerRow): string {
  return row.waiting === null ? '/inbox' : `/inbox/${encodeURIComponent(row.waiting)}`;
}

export function untilOf(row: WorkerRow): string | null {
  return 'until' in row.activity ? row.activity.until ?? null : null;
}
