/** One card: a slip that can be focused and dragged. */
import { draggable } from '@atlaskit/pragmatic-drag-and-drop/element/adapter';
import { memo, useEffect, useRef } from 'react';
import { useLocation } from 'wouter';
import type { CardLine, ColumnRow } from '../../api/view';
import { actionsOn } from '../../store/connection';
import { useRow, useStore } from '../../store/store';
import { Slip } from '../../parts/Slip';
import { label } from './moves';
import { setBoard, useBoard } from './state';

interface Props {
  id: string;
  notes: ColumnRow['notes'] | undefined;
  /** The one card of its column that the Tab key reaches. */
  stop: boolean;
  narrow: boolean;
}

export const Card = memo(function Card({ id, notes, stop, narrow }: Props) {
  const task = useRow('tasks', id);
  const [, go] = useLocation();
  const element = useRef<HTMLElement>(null);
  const focused = useBoard((state) => state.focused === id);
  const tick = useBoard((state) => (state.focused === id ? state.focusTick : 0));
  const held = useBoard((state) => state.moving?.task === id);
  const pending = useBoard((state) => state.pending[id]);
  const refused = useBoard((state) => state.refused[id]);
  useFocus(element, focused, tick);
  useDraggable(element, id, task !== undefined && !narrow);
  if (!task) return null;
  const note = task.note ? notes?.find((each) => each.id === task.note) : undefined;
  const special = lineOf(held, pending, refused && refused.seq >= task.seq ? refused : undefined);
  return (
    <Slip
      ref={element}
      task={task}
      sign={note && { glyph: note.glyph, text: note.text }}
      state={held || pending ? 'ghost' : focused ? 'focused' : 'plain'}
      linked={!narrow}
      tabs={focused}
      lines={special ? [special, ...(held ? [] : task.lines)] : task.lines}
      onHoldsUp={() => setBoard({ focused: id, drawer: id })}
      className="card"
      tabIndex={stop ? 0 : -1}
      aria-describedby="board-keys"
      onFocus={() => setBoard({ focused: id })}
      onClick={() => setBoard({ focused: id })}
      onDoubleClick={() => !narrow && go(`/task/${encodeURIComponent(id)}`)}
    />
  );
});

function lineOf(held: boolean, pending: string | undefined, refused: { to: string; words: string } | undefined): CardLine | null {
  if (held) return { text: 'in your hand', glyph: 'pen', tone: '' };
  if (pending) return { text: `on its way to ${label(pending)}`, glyph: 'arrow', tone: '' };
  if (refused) return { text: `${label(refused.to)} refused: ${refused.words}`, glyph: 'back', tone: 'bad' };
  return null;
}

/** The focus follows its card: by keys, and into another column where its element is a new one. */
function useFocus(element: React.RefObject<HTMLElement | null>, focused: boolean, tick: number): void {
  const done = useRef(-1);
  useEffect(() => {
    if (!focused || done.current === tick) return;
    // The element that had the focus was removed, or a key asks for it. A card takes the focus from nothing else.
    const lost = document.activeElement === document.body || document.activeElement === null;
    if (lost || (tick > 0 && (done.current !== -1 || isCard(document.activeElement)))) element.current?.focus({ preventScroll: true });
    done.current = tick;
  }, [element, focused, tick]);
}

function isCard(element: Element | null): boolean {
  return element?.classList.contains('card') ?? false;
}

function useDraggable(element: React.RefObject<HTMLElement | null>, task: string, on: boolean): void {
  useEffect(() => {
    const card = element.current;
    if (!card || !on) return;
    return draggable({
      element: card,
      getInitialData: () => ({ task }),
      canDrag: () => actionsOn(useStore.getState().connection) && useBoard.getState().moving === null && !useBoard.getState().pending[task],
    });
  }, [element, task, on]);
}
