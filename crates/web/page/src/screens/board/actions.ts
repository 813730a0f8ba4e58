/** What can be done on the board: keys and palette read it from here. While a card is in the hand, the same keys lead it. */
import { useMemo } from 'react';
import { useLocation } from 'wouter';
import { announce } from '../../frame/announce';
import { useActions, type Action } from '../../keys/actions';
import { useRow, useStore, useTerms } from '../../store/store';
import type { ColumnState } from './columns';
import { focusBeside, focusNext, focusWaiting } from './focus';
import { moving, pickUp } from './hand';
import { startMove } from './moves';
import { targetsOf } from './moving';
import { setBoard, setLook, useBoard } from './state';

export function useBoardActions(columns: readonly ColumnState[], narrow: boolean): void {
  const held = useBoard((state) => state.moving !== null);
  const [, go] = useLocation();
  const focused = useBoard((state) => state.focused) ?? '';
  const status = useRow('tasks', focused)?.status;
  const terms = useTerms();

  useActions(useMemo<Action[]>(() => [
    { id: 'next', label: 'Next card', group: 'This view', run: () => focusNext(columns, 1) },
    { id: 'previous', label: 'Card before', group: 'This view', run: () => focusNext(columns, -1) },
    { id: 'left', label: 'Column to the left', group: 'This view', run: () => focusBeside(columns, -1) },
    { id: 'right', label: 'Column to the right', group: 'This view', run: () => focusBeside(columns, 1) },
    { id: 'next.waiting', label: 'Next task that waits for you', group: 'This view', run: () => showWaiting(columns) },
  ], [columns]));

  useActions(useMemo<Action[]>(() => {
    const off = status ? null : 'No card is focused.';
    const group = status ? `On ${focused}` : 'This view';
    const on: Action[] = [
      { id: 'open', label: status ? `Open ${focused}` : 'Open a card', group, off, run: () => go(`/task/${encodeURIComponent(focused)}`) },
      { id: 'why', label: status ? `Why ${focused} is where it is` : 'Why a card is where it is', group, off, run: () => setBoard({ drawer: focused }) },
      {
        id: 'board.move', label: status ? `Move ${focused}` : 'Move a card', group, off, acts: true,
        run: () => (narrow ? setBoard({ dialog: { kind: 'targets', task: focused } }) : pickUp(focused, 'keys')),
      },
    ];
    if (!status || !terms) return on;
    on.push({ id: 'task.edit', label: `Edit ${focused}`, group, glyph: 'pen', acts: true, run: () => setBoard({ dialog: { kind: 'edit', task: focused } }) });
    for (const target of targetsOf(terms, status)) {
      on.push({
        id: `move ${target.status}`, label: `Move ${focused} to ${target.label}`, group: `Move ${focused}`, acts: true, hint: target.words,
        glyph: terms.statuses.find((each) => each.id === target.status)?.glyph, off: target.allowed ? null : target.words,
        run: () => void startMove({ task: focused, from: status, to: target.status }),
      });
    }
    return on;
  }, [focused, status, terms, go, narrow]));

  const drawer = useBoard((state) => state.drawer !== null);
  useActions(useMemo<Action[]>(() => (drawer ? [
    { id: 'back', label: 'Close what is beside the board', group: 'This view', run: () => setBoard({ drawer: null }) },
  ] : []), [drawer]));

  useActions(useMemo<Action[]>(() => (held ? [
    { id: 'left', label: 'Target to the left', group: 'In your hand', run: () => moving({ kind: 'walk', by: -1 }) },
    { id: 'right', label: 'Target to the right', group: 'In your hand', run: () => moving({ kind: 'walk', by: 1 }) },
    { id: 'previous', label: 'Target before', group: 'In your hand', run: () => moving({ kind: 'walk', by: -1 }) },
    { id: 'next', label: 'Next target', group: 'In your hand', run: () => moving({ kind: 'walk', by: 1 }) },
    { id: 'open', label: 'Drop it', group: 'In your hand', acts: true, run: () => moving({ kind: 'drop' }) },
    { id: 'board.move', label: 'Drop it', group: 'In your hand', acts: true, run: () => moving({ kind: 'drop' }) },
    { id: 'back', label: 'Put it back', group: 'In your hand', run: () => moving({ kind: 'cancel' }) },
  ] : []), [held]));
}

/** Its column is opened, if it is folded or not the one in sight. */
function showWaiting(columns: readonly ColumnState[]): void {
  const task = focusWaiting();
  if (task === null) return announce('No task of the board waits for you.');
  const status = useStore.getState().rows.row('tasks', task)?.status ?? '';
  setBoard({ shown: status });
  if (columns.find((each) => each.id === status)?.state !== 'open') setLook({ choices: { ...useBoard.getState().choices, [status]: 'open' } });
}
