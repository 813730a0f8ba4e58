/** Which cards a column lists, and in which groups. Pure. */
import type { TaskRow } from '../../api/view';

export const GROUPINGS = ['status', 'agent', 'priority', 'spec'] as const;
export type Grouping = (typeof GROUPINGS)[number];

export interface Wish {
  /** Words that are all found in title, id or text. */
  filter: string;
  /** Null: all agents. Empty: tasks without one. */
  agent: string | null;
  group: Grouping;
}

/** Nothing is left out and nothing is grouped: the lists of the store are shown as they are. */
export function isPlain(wish: Wish): boolean {
  return wish.filter.trim() === '' && wish.agent === null && wish.group === 'status';
}

export function isFiltered(wish: Wish): boolean {
  return wish.filter.trim() !== '' || wish.agent !== null;
}

export function matcher(wish: Wish): (row: TaskRow) => boolean {
  const words = wish.filter.toLowerCase().split(/\s+/).filter(Boolean);
  return (row) => {
    if (wish.agent !== null && (row.agent ?? '') !== wish.agent) return false;
    if (words.length === 0) return true;
    const text = searched(row);
    return words.every((word) => text.includes(word));
  };
}

/** Rows are replaced, never changed: what is searched of one is made once. */
const texts = new WeakMap<TaskRow, string>();

function searched(row: TaskRow): string {
  let text = texts.get(row);
  if (text === undefined) {
    // A row may bring the task's text one day; it is searched as soon as it does.
    text = `${row.id}\n${row.title}\n${(row as { text?: string }).text ?? ''}`.toLowerCase();
    texts.set(row, text);
  }
  return text;
}

const HEAD = 'group:';

/** An entry of a column is the id of a task or the head of a group. Ids of tasks have no colon. */
export function groupOf(entry: string): string | null {
  return entry.startsWith(HEAD) ? entry.slice(HEAD.length) : null;
}

export function entries(ids: readonly string[], row: (id: string) => TaskRow | undefined, wish: Wish): readonly string[] {
  if (isPlain(wish)) return ids;
  const fits = matcher(wish);
  const found = ids.filter((id) => {
    const task = row(id);
    return task !== undefined && fits(task);
  });
  if (wish.group === 'status') return found;
  const groups = new Map<string, string[]>();
  for (const id of found) {
    const key = keyOf(row(id), wish.group);
    const list = groups.get(key);
    if (list) list.push(id);
    else groups.set(key, [id]);
  }
  // What has no agent or spec comes last.
  const order = [...groups.keys()].sort((a, b) => Number(a === '') - Number(b === '') || a.localeCompare(b, 'en', { numeric: true }));
  return order.flatMap((key) => [HEAD + key, ...(groups.get(key) ?? [])]);
}

/** Tasks among the entries. */
export function taskCount(list: readonly string[]): number {
  return list.reduce((count, entry) => count + Number(groupOf(entry) === null), 0);
}

/** The head of a group: `claude`, `No agent`, `P1`. */
export function groupLabel(key: string, group: Grouping): string {
  if (key !== '') return key;
  return group === 'agent' ? 'No agent' : 'No spec';
}

function keyOf(row: TaskRow | undefined, group: Grouping): string {
  if (!row) return '';
  if (group === 'agent') return row.agent ?? '';
  if (group === 'spec') return row.spec ?? '';
  return `P${row.priority}`;
}

/** The same entries as before are the same array, so that a reader can compare by identity. */
export function same(before: readonly string[], now: readonly string[]): readonly string[] {
  return before.length === now.length && before.every((entry, index) => entry === now[index]) ? before : now;
}
