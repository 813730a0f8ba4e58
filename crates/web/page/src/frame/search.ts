/** What the palette lists for a query: actions by their words, then tasks by title and id. Pure. */
import type { Action } from '../keys/actions';
import type { TaskRow } from '../api/view';

/** Every word of the query begins a word of the text, or stands inside it. Higher is better; 0: no match. */
export function score(text: string, query: string): number {
  const lower = text.toLowerCase();
  let sum = 0;
  for (const word of query.toLowerCase().split(/\s+/).filter(Boolean)) {
    const at = lower.indexOf(word);
    if (at === -1) return 0;
    sum += at === 0 ? 4 : /[\s\-/.:,(]/.test(lower[at - 1] ?? '') ? 3 : 1;
  }
  return sum || 1;
}

export interface Group {
  name: string;
  actions: Action[];
}

/** Groups keep their order; inside a group the best come first, unless nothing is typed. */
export function grouped(actions: readonly Action[], query: string): Group[] {
  const groups = new Map<string, { action: Action; score: number }[]>();
  const seen = new Set<string>();
  for (const action of actions) {
    if (seen.has(action.id)) continue;
    seen.add(action.id);
    const points = score(`${action.label} ${action.group}`, query);
    if (points === 0) continue;
    const list = groups.get(action.group);
    if (list) list.push({ action, score: points });
    else groups.set(action.group, [{ action, score: points }]);
  }
  return [...groups].map(([name, list]) => ({
    name,
    actions: (query ? list.sort((a, b) => b.score - a.score) : list).map((each) => each.action),
  }));
}

/** The best tasks for a query; none if nothing is typed. */
export function foundTasks(tasks: Iterable<TaskRow>, query: string, limit: number): TaskRow[] {
  if (!query.trim()) return [];
  const found: { task: TaskRow; score: number }[] = [];
  for (const task of tasks) {
    const points = score(`${task.id} ${task.title}`, query);
    if (points > 0) found.push({ task, score: task.id === query.trim() ? points + 10 : points });
  }
  return found.sort((a, b) => b.score - a.score).slice(0, limit).map((each) => each.task);
}
