/** Requests a move and says what became of it. The card goes where the stream says that it is, never before. */
import { call, type Problem } from '../../api/client';
import type { Move, TaskRow, Terms } from '../../api/view';
import { announce } from '../../frame/announce';
import { fieldProblems, problemWords } from '../../parts/form';
import { showToast } from '../../parts/Toast';
import { useStore } from '../../store/store';
import { moveOf } from './moving';
import { setBoard, useBoard } from './state';
import { whyButton } from './WhyButton';

export interface Wanted {
  task: string;
  from: string;
  to: string;
}

/** Whether a person is asked first: nothing leads back from where it goes, or there is something that may be said with it. */
export function asksFirst(terms: Pick<Terms, 'statuses'>, move: Pick<Move, 'to' | 'fields'>): boolean {
  return (terms.statuses.find((status) => status.id === move.to)?.final ?? false) || move.fields.some((field) => !field.required);
}

/**
 * Without a form if nothing is missing: the task may have what the move requires. What is missing is said by the server, and
 * asked for then.
 */
export async function startMove(wanted: Wanted): Promise<void> {
  const { terms } = useStore.getState();
  const move = terms && moveOf(terms, wanted.from, wanted.to);
  if (!terms || !move) return;
  if (asksFirst(terms, move)) return setBoard({ dialog: { kind: 'move', ...wanted } });
  await sendMove(wanted, move);
}

async function sendMove(wanted: Wanted, move: Move): Promise<void> {
  onItsWay(wanted.task, wanted.to);
  const answer = await call('post', '/tasks/{task}/transitions', { path: { task: wanted.task }, body: { to: move.to } });
  arrived(wanted.task);
  if (answer.ok) return said(wanted);
  const { at, rest } = fieldProblems(answer.problem, move.fields);
  const asked = Object.keys(at);
  if (asked.length > 0 && rest.length === 0) return setBoard({ dialog: { kind: 'move', ...wanted, fields: asked } });
  refuse(wanted, problemWords(answer.problem));
}

/** The result is spoken; the card itself moves with its row. */
export function said(wanted: Wanted): void {
  announce(`${wanted.task} is in ${label(wanted.to)}.`);
}

export function refusedBy(wanted: Wanted, problem: Problem): void {
  refuse(wanted, problemWords(problem));
}

/** The card is where it was, and says why; so does a toast, which is spoken. */
export function refuse({ task, to }: Wanted, words: string): void {
  const row: TaskRow | undefined = useStore.getState().rows.row('tasks', task);
  setBoard(({ refused }) => ({ refused: { ...refused, [task]: { to, words, seq: row?.seq ?? 0 } } }));
  showToast({
    glyph: 'back', tone: 'bad',
    title: row ? `${task} is back in ${label(row.status)}.` : `${task} was not moved.`,
    text: `${label(to)} was refused: ${words}`,
    action: whyButton(task),
  });
}

export function label(status: string): string {
  return useStore.getState().terms?.statuses.find((each) => each.id === status)?.label ?? status;
}

function onItsWay(task: string, to: string): void {
  setBoard(({ pending, refused: { [task]: _, ...refused } }) => ({ pending: { ...pending, [task]: to }, refused }));
}

function arrived(task: string): void {
  const { [task]: _, ...pending } = useBoard.getState().pending;
  setBoard({ pending });
}
