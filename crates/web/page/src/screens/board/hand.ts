/** The card in the hand: carries out what the steps of moving say. */
import { announce } from '../../frame/announce';
import { plain } from '../../parts/plain';
import { showToast } from '../../parts/Toast';
import { useStore } from '../../store/store';
import { refuse, startMove } from './moves';
import { step, type Event, type Moving } from './moving';
import { setBoard, useBoard } from './state';

/** The one way in which the card in the hand changes. */
export function moving(event: Event): void {
  const next = step(useBoard.getState().moving, event);
  setBoard({ moving: next.moving });
  if (next.say) announce(next.say);
  if (next.move) void startMove(next.move);
  if (next.refused) refuse(next.refused, next.refused.words);
  if (next.taken) {
    showToast({
      glyph: 'back', tone: 'warn', title: `${next.taken.task} is in ${next.taken.label} now.`,
      text: 'It was moved while it was in your hand: by somebody else, or by the fleet. Nothing of yours was sent.',
    });
  }
}

/** Picks up a card, unless it is gone. */
export function pickUp(task: string, by: Moving['by']): void {
  const { rows, terms } = useStore.getState();
  const row = rows.row('tasks', task);
  if (row && terms) moving({ kind: 'pick', task, title: plain(row.title), from: row.status, by, terms });
}
