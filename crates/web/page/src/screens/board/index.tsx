/** The board: the statuses as columns, moved by pointer and by keys. It knows no rule: moves, words and keys come from the terms. */
import './board.css';
import { monitorForElements } from '@atlaskit/pragmatic-drag-and-drop/element/adapter';
import { useEffect, useMemo, useRef, useState, type CSSProperties } from 'react';
import { NARROW, useMedia } from '../../parts/media';
import { useRow, useStore, useTerms } from '../../store/store';
import { useShallow } from 'zustand/react/shallow';
import { useBoardActions } from './actions';
import { CardDrawer } from './CardDrawer';
import { Column } from './Column';
import { layout, template, weights, type ColumnState } from './columns';
import { Dialogs } from './Dialogs';
import { focusFirst } from './focus';
import { moving as moves, pickUp } from './hand';
import { MovingMode } from './MovingMode';
import { label } from './moves';
import { setBoard, useBoard } from './state';
import { busiest, CardBar, Strip } from './Strip';
import { Tools } from './Tools';

export default function Board() {
  const narrow = useMedia(NARROW);
  const drawer = useBoard((state) => state.drawer);
  const columns = useColumns();
  useBoardActions(columns, narrow);
  usePointer();
  useTakenAway();
  useEffect(() => () => setBoard({ moving: null, dialog: null, drawer: null }), []);
  return (
    <>
      <h1 className="hide">Board</h1>
      <Tools columns={columns} first={() => focusFirst(columns)} />
      {narrow ? <NarrowBoard /> : <WideBoard columns={columns} />}
      <KeyHint />
      <MovingMode />
      {drawer && <CardDrawer key={drawer} task={drawer} />}
      <Dialogs />
    </>
  );
}

function WideBoard({ columns }: { columns: readonly ColumnState[] }) {
  const held = useBoard((state) => state.moving !== null);
  const statuses = new Map(useTerms()?.statuses.map((status) => [status.id as string, status]));
  const column = ({ id, state }: ColumnState) => {
    const status = statuses.get(id);
    return status ? <Column key={id} status={status} folded={state !== 'open'} narrow={false} /> : null;
  };
  const hidden = columns.filter((each) => each.state === 'hidden');
  return (
    <div className={held ? 'board moving' : 'board'} style={{ '--cols': template(columns) } as CSSProperties}>
      {columns.filter((each) => each.state !== 'hidden').map(column)}
      {held && hidden.length > 0 && <div className="dock">{hidden.map(column)}</div>}
    </div>
  );
}

function NarrowBoard() {
  const statuses = useTerms()?.statuses ?? [];
  const chosen = useBoard((state) => state.shown);
  const shown = statuses.find((status) => status.id === chosen) ?? statuses.find((status) => status.id === busiest(statuses));
  // The column that a person looks at stays, wherever most tasks are later.
  useEffect(() => {
    if (shown && chosen === null) setBoard({ shown: shown.id });
  }, [shown, chosen]);
  if (!shown) return null;
  return (
    <>
      <Strip statuses={statuses} shown={shown.id} />
      <div className="board"><Column key={shown.id} status={shown} folded={false} narrow /></div>
      <CardBar />
    </>
  );
}

/** The columns by the room there is. While a card is moved they stay as they are. */
function useColumns(): readonly ColumnState[] {
  const terms = useTerms();
  const width = useWidth();
  const held = useBoard((state) => state.moving !== null);
  const choices = useBoard((state) => state.choices);
  const hideEmpty = useBoard((state) => state.hideEmpty);
  const empty = useStore(useShallow((state) => terms?.statuses.map((status) => state.rows.list('tasks', status.id).length === 0) ?? []));
  const heavy = useMemo(() => (terms ? weights(terms) : new Map<string, number>()), [terms]);
  const spare = useMemo(() => {
    void [width, choices, hideEmpty];
    const { rows } = useStore.getState();
    return new Set(terms?.statuses.filter((status) => rows.list('tasks', status.id).length === 0).map((status) => status.id));
  }, [terms, width, choices, hideEmpty]);
  const before = useRef<readonly ColumnState[]>([]);
  return useMemo(() => {
    if (held) return before.current;
    const input = terms?.statuses.map((status, index) => ({
      id: status.id, final: status.final, weight: heavy.get(status.id) ?? 1, empty: empty[index] ?? false, spare: spare.has(status.id),
    })) ?? [];
    before.current = layout(input, width, choices, hideEmpty);
    return before.current;
  }, [terms, width, held, choices, hideEmpty, empty, heavy, spare]);
}

function useWidth(): number {
  const [width, setWidth] = useState(innerWidth);
  useEffect(() => {
    const main = document.getElementById('main');
    if (!main) return;
    const observer = new ResizeObserver(() => setWidth(main.clientWidth));
    observer.observe(main);
    return () => observer.disconnect();
  }, []);
  return width;
}

/** The pointer leads a card: the library says what is dragged and where it is. */
function usePointer(): void {
  useEffect(() => monitorForElements({
    canMonitor: ({ source }) => typeof source.data['task'] === 'string',
    onDragStart: ({ source }) => pickUp(String(source.data['task']), 'pointer'),
    onDropTargetChange: ({ location }) => moves({ kind: 'over', status: statusAt(location.current) }),
    onDrop: ({ location }) => {
      // Dropped outside of every column, or put back with Esc: it stays where it was.
      const status = statusAt(location.current);
      moves({ kind: 'over', status });
      moves(status === null ? { kind: 'cancel' } : { kind: 'drop' });
    },
  }), []);
}

function statusAt(place: { dropTargets: readonly { data: Record<string | symbol, unknown> }[] }): string | null {
  const status = place.dropTargets[0]?.data['status'];
  return typeof status === 'string' ? status : null;
}

/** Somebody else moved the card in the hand: its row wins. */
function useTakenAway(): void {
  const task = useBoard((state) => state.moving?.task ?? null);
  const status = useRow('tasks', task ?? '')?.status ?? null;
  useEffect(() => {
    if (task !== null) moves({ kind: 'row', status, label: status ? label(status) : 'no column' });
  }, [task, status]);
}

/** What the keys do on a card: read with the card that has the focus. */
function KeyHint() {
  const keys = useTerms()?.keys.filter((row) => ['board.move', 'open', 'why'].includes(row.action)) ?? [];
  return <p id="board-keys" className="hide">{keys.map((row) => `${row.keys[0]}: ${row.words}`).join(', ')}</p>;
}
