/** The statuses of a narrow screen, with their counts: one column at a time. */
import { useEffect, useRef } from 'react';
import type { Terms } from '../../api/view';
import { Button } from '../../parts/Button';
import { Glyph } from '../../parts/Glyph';
import { useLocation } from 'wouter';
import { useRow, useStore } from '../../store/store';
import { Count } from './Column';
import { setBoard, useBoard } from './state';

export function Strip({ statuses, shown }: { statuses: Terms['statuses']; shown: string }) {
  const bar = useRef<HTMLElement>(null);
  useEffect(() => {
    bar.current?.querySelector('[aria-current]')?.scrollIntoView({ inline: 'center', block: 'nearest' });
  }, [shown]);
  return (
    <nav ref={bar} className="strip" aria-label="Statuses">
      {statuses.map((status) => (
        <button key={status.id} type="button" aria-current={status.id === shown ? 'true' : undefined} onClick={() => setBoard({ shown: status.id, focused: null })}>
          <Glyph name={status.glyph} size={14} />{status.label} <Count status={status.id} />
        </button>
      ))}
    </nav>
  );
}

/** The column with which a narrow screen begins: the one with most tasks that are under way or wait for somebody. */
export function busiest(statuses: Terms['statuses']): string {
  const { rows } = useStore.getState();
  const loud = (status: string) => rows.list('tasks', status).reduce((count, id) => count + Number(rows.row('tasks', id)?.quiet !== true), 0);
  const open = statuses.filter((status) => !status.final);
  return [...open].sort((a, b) => loud(b.id) - loud(a.id) || rows.list('tasks', b.id).length - rows.list('tasks', a.id).length)[0]?.id ?? statuses[0]?.id ?? '';
}

/** What can be done with the chosen card, where a thumb is. */
export function CardBar() {
  const focused = useBoard((state) => state.focused) ?? '';
  const row = useRow('tasks', focused);
  const shown = useBoard((state) => state.shown);
  const [, go] = useLocation();
  if (!row || (shown !== null && row.status !== shown)) return null;
  return (
    <div className="card-bar" role="group" aria-label={`On ${row.id}`}>
      <Button look="primary" acts onClick={() => setBoard({ dialog: { kind: 'targets', task: row.id } })}>Move {row.id}…</Button>
      <Button onClick={() => go(`/task/${encodeURIComponent(row.id)}`)}>Open</Button>
      <Button onClick={() => setBoard({ drawer: row.id })}>Why</Button>
    </div>
  );
}
