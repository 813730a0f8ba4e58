/** What a person can do with a task: the two answers to what waits, and everything else. The rows and the terms say it; no rule is here. */
import type { Action, Move, QueueRow, TaskRow, Terms, WaitingRow, WorkerRow } from '../../api/view';

export interface Ways {
  yes: Action | null;
  no: Action | null;
  /** Everything else, in the order of the menu. */
  others: Action[];
}

export function waysOf(task: Pick<TaskRow, 'id' | 'status'>, terms: Terms | null, waiting?: WaitingRow, worker?: WorkerRow, queue?: QueueRow): Ways {
  const offered = waiting?.actions ?? [];
  const yes = offered.find((action) => action.answer === 'yes') ?? null;
  const no = offered.find((action) => action.answer === 'no') ?? null;
  const rest = offered.filter((action) => action !== yes && action !== no && !isHere(action, task.id));
  const moves = (terms?.moves ?? []).filter((move) => move.from === task.status).map((move) => moveAction(task.id, move, terms));
  const all = [...rest, ...(worker?.actions ?? []), ...(queue?.actions ?? []), ...moves.filter((each) => !each.refused), ...moves.filter((each) => each.refused)];
  return { yes, no, others: all.filter((action, index) => all.findIndex((other) => same(action, other)) === index) };
}

/** It only leads to the page that is open. */
function isHere(action: Action, task: string): boolean {
  return !action.request && (action.page ?? '').startsWith(`/task/${task}`);
}

function same(one: Action, other: Action): boolean {
  return one.code === other.code && one.label === other.label;
}

function moveAction(task: string, move: Move, terms: Terms | null): Action {
  const label = terms?.statuses.find((status) => status.id === move.to)?.label ?? move.to;
  return {
    code: `move_${move.to}`,
    label: `Move to ${label}`,
    happens: move.allowed && move.words ? [move.words] : [],
    request: { method: 'POST', path: `/tasks/${encodeURIComponent(task)}/transitions`, body: { to: move.to } },
    fields: move.fields ?? [],
    refused: move.allowed ? null : move.words,
  };
}

/** The action of a code that a guard names, among those that can be done here. */
export function byCode(ways: Ways, code: string): Action | undefined {
  return [ways.yes, ways.no, ...ways.others].find((action): action is Action => action?.code === code);
}

/**
 * Why an approval is off although the rules allow it: the request names a commit, and the diff on screen is of another one.
 * Nobody approves what they have not seen.
 */
export function otherTip(action: Action | null, tip: string | null): string | null {
  const wanted = action?.request?.body?.['tip'];
  if (typeof wanted !== 'string' || tip === null || wanted === tip) return null;
  return `The diff on screen is of ${tip.slice(0, 7)}; ${wanted.slice(0, 7)} is being loaded.`;
}
