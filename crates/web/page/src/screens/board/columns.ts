/** Which columns are open, folded or hidden, and how wide they are. Pure. */
import type { Terms } from '../../api/view';

/** Below this an open column is not readable: it folds. */
export const COLUMN_MIN = 176;
/** As `--column-folded`. */
export const COLUMN_FOLDED = 40;

export type Choice = 'open' | 'folded';
export type Choices = Readonly<Record<string, Choice>>;

export interface ColumnInput {
  id: string;
  final: boolean;
  weight: number;
  /** It has no task now: it can hide. */
  empty: boolean;
  /** It had no task when the layout was made: it folds before others. A task that comes or goes later folds nothing. */
  spare: boolean;
}

export interface ColumnState {
  id: string;
  weight: number;
  state: 'open' | 'folded' | 'hidden';
}

/**
 * The share of each column: .92 to 1.22. The more moves lead out of a status, the more there is to read and to decide in it.
 * It depends on the terms alone, so no column changes its width because of a task.
 */
export function weights(terms: Pick<Terms, 'statuses' | 'moves'>): Map<string, number> {
  const ways = new Map(terms.statuses.map(({ id }) => [id as string, terms.moves.filter((move) => move.from === id && move.allowed).length]));
  const most = Math.max(1, ...ways.values());
  return new Map([...ways].map(([id, count]) => [id, 0.92 + 0.3 * (count / most) ** 1.5]));
}

/**
 * Folds columns until the others have room: spare ones first, then those of least weight, from the right. A column of finished
 * tasks folds as soon as its share is too narrow; the others share what there is as long as each has the least width.
 */
export function layout(columns: readonly ColumnInput[], width: number, choices: Choices, hideEmpty: boolean): ColumnState[] {
  const hidden = new Set(columns.filter((each) => hideEmpty && each.empty && choices[each.id] !== 'open').map((each) => each.id));
  let open = columns.filter((each) => !hidden.has(each.id) && choices[each.id] !== 'folded');
  const shown = columns.length - hidden.size;
  const first = [...open].sort((a, b) =>
    Number(choices[a.id] === 'open') - Number(choices[b.id] === 'open')
    || Number(b.spare) - Number(a.spare)
    || a.weight - b.weight
    || columns.indexOf(b) - columns.indexOf(a));
  while (open.length > 1) {
    const room = width - COLUMN_FOLDED * (shown - open.length);
    const sum = open.reduce((total, each) => total + each.weight, 0);
    const narrow = (each: ColumnInput) => (each.final && choices[each.id] !== 'open' ? (room * each.weight) / sum < COLUMN_MIN : false);
    const next = room < open.length * COLUMN_MIN ? first.find((each) => open.includes(each)) : first.find((each) => open.includes(each) && narrow(each));
    if (!next) break;
    open = open.filter((each) => each !== next);
  }
  return columns.map(({ id, weight }) => ({ id, weight, state: hidden.has(id) ? 'hidden' : open.some((each) => each.id === id) ? 'open' : 'folded' }));
}

/** The value of `grid-template-columns`. */
export function template(columns: readonly ColumnState[]): string {
  return columns
    .filter((each) => each.state !== 'hidden')
    .map((each) => (each.state === 'open' ? `minmax(min(${COLUMN_MIN}px, 100%), ${each.weight.toFixed(3)}fr)` : `${COLUMN_FOLDED}px`))
    .join(' ');
}
