/** Groups, totals and expected times of the queue, from its rows. Pure. */
import type { QueueRow, Terms } from '../../api/view';

export interface Step {
  id: string;
  label: string;
  glyph: string;
  rows: readonly QueueRow[];
}

/** One group for each step that the server knows, in its order; inside a group by place. */
export function stepsOf(rows: readonly QueueRow[], terms: Terms['queueSteps']): Step[] {
  const known = terms.map(({ id, label, glyph }): Step => ({ id, label, glyph, rows: rows.filter((row) => row.state === id) }));
  const other = rows.filter((row) => !terms.some((term) => term.id === row.state));
  return other.length > 0 ? [...known, { id: 'other', label: other[0]?.state ?? '', glyph: 'queue', rows: other }] : known;
}

/** A step runs: the row has a beginning, and nothing is in its way. */
export function isActive(row: QueueRow): boolean {
  return row.state === 'landing' || row.state === 'testing';
}

/** How long the step has taken, in milliseconds; null while it has not begun. */
export function elapsedOf(row: QueueRow, now: number): number | null {
  const since = row.since === null ? NaN : Date.parse(row.since);
  return Number.isNaN(since) ? null : Math.max(0, now - since);
}

/** The step takes longer than the server expects. */
export function isOverdue(row: QueueRow, now: number): boolean {
  return isActive(row) && row.expectedSeconds !== null && (elapsedOf(row, now) ?? 0) > row.expectedSeconds * 1000;
}

/**
 * When each row is expected in main, by the server's medians: those in front land first, one after the other. A row that is held
 * up has no time, and takes none from those behind it. Unknown from the first row on of which nothing is known.
 */
export function expectedTimes(rows: readonly QueueRow[], now: number): ReadonlyMap<string, number> {
  const times = new Map<string, number>();
  let at = now;
  for (const row of rows) {
    if (row.state === 'held') continue;
    if (row.expectedSeconds === null) break;
    const whole = row.expectedSeconds * 1000;
    at += isActive(row) ? Math.max(0, whole - (elapsedOf(row, now) ?? 0)) : whole;
    times.set(row.id, at);
  }
  return times;
}

/** When all that are not held up are expected in main; null if that is not known. */
export function allLandedAt(rows: readonly QueueRow[], now: number): number | null {
  const times = expectedTimes(rows, now);
  const last = rows.filter((row) => row.state !== 'held').at(-1);
  return (last && times.get(last.id)) ?? null;
}

export function nextRow(rows: readonly QueueRow[], focused: string | null, by: 1 | -1): string | null {
  const here = rows.findIndex((row) => row.id === focused);
  const next = here === -1 ? 0 : Math.min(Math.max(here + by, 0), rows.length - 1);
  return rows[next]?.id ?? null;
}
