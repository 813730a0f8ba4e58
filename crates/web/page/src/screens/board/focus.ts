/** Which card gets the focus next. */
import { useStore } from '../../store/store';
import { groupOf } from './cards';
import type { ColumnState } from './columns';
import { entriesNow } from './lists';
import { focusCard, useBoard } from './state';

function tasksOf(status: string): string[] {
  return entriesNow(useStore.getState().rows.list('tasks', status), useBoard.getState()).filter((entry) => groupOf(entry) === null);
}

export function focusFirst(columns: readonly ColumnState[]): void {
  for (const { id, state } of columns) {
    const first = state === 'open' ? tasksOf(id)[0] : undefined;
    if (first) return focusCard(first);
  }
}

/** The card below or above in its column. */
export function focusNext(columns: readonly ColumnState[], by: 1 | -1): void {
  const { focused } = useBoard.getState();
  const row = focused ? useStore.getState().rows.row('tasks', focused) : undefined;
  if (!focused || !row || !columns.some((each) => each.id === row.status && each.state === 'open')) return focusFirst(columns);
  const list = tasksOf(row.status);
  const next = list[list.indexOf(focused) + by];
  focusCard(next ?? focused);
}

/** The card of the next column that has one, at the same height on the screen: columns scroll alone. */
export function focusBeside(columns: readonly ColumnState[], by: 1 | -1): void {
  const { focused } = useBoard.getState();
  const row = focused ? useStore.getState().rows.row('tasks', focused) : undefined;
  if (!row) return focusFirst(columns);
  const at = columns.findIndex((each) => each.id === row.status);
  for (let index = at + by; index >= 0 && index < columns.length; index += by) {
    const column = columns[index];
    if (!column || column.state !== 'open') continue;
    const list = tasksOf(column.id);
    if (list.length > 0) return focusCard(atHeight(column.id, focused ?? '') ?? list[0] ?? '');
  }
}

function atHeight(status: string, focused: string): string | null {
  const top = document.querySelector(`.card[data-task="${CSS.escape(focused)}"]`)?.getBoundingClientRect().top;
  const column = document.querySelector(`.col[data-status="${CSS.escape(status)}"] .scroll`);
  if (top === undefined || !column) return null;
  const box = column.getBoundingClientRect();
  let best: { id: string; distance: number } | null = null;
  for (const card of column.querySelectorAll<HTMLElement>('.card')) {
    const at = card.getBoundingClientRect();
    if (at.bottom <= box.top || at.top >= box.bottom) continue;
    const distance = Math.abs(at.top - top);
    if (!best || distance < best.distance) best = { id: card.dataset['task'] ?? '', distance };
  }
  return best?.id ?? null;
}

/** The next task that waits for a person, in the order of the inbox. */
export function focusWaiting(): string | null {
  const { rows } = useStore.getState();
  const { focused } = useBoard.getState();
  const tasks = [...new Set(rows.list('waiting').flatMap((id) => rows.row('waiting', id)?.task ?? []))].filter((task) => rows.row('tasks', task));
  const next = tasks[(tasks.indexOf(focused ?? '') + 1) % Math.max(1, tasks.length)];
  if (next) focusCard(next);
  return next ?? null;
}
