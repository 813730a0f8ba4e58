/** One status: its head, the notes that hold for many of its tasks, and its cards. It scrolls alone. */
import { dropTargetForElements } from '@atlaskit/pragmatic-drag-and-drop/element/adapter';
import { useCallback, useEffect, useRef } from 'react';
import type { Terms } from '../../api/view';
import { Glyph } from '../../parts/Glyph';
import { Plain } from '../../parts/plain';
import { Slip } from '../../parts/Slip';
import { VirtualList, type VirtualListHandle } from '../../parts/VirtualList';
import { useRow, useTaskIds } from '../../store/store';
import { Card } from './Card';
import { groupLabel, groupOf, isFiltered, taskCount } from './cards';
import { useEntries, useWish } from './lists';
import { setLook, useBoard } from './state';
import type { Moving, Target } from './moving';

/** Height of a card before it is measured. */
const CARD = 84;

interface Props {
  status: Terms['statuses'][number];
  folded: boolean;
  narrow: boolean;
}

export function Column({ status, folded, narrow }: Props) {
  const box = useRef<HTMLElement>(null);
  const moving = useBoard((state) => state.moving);
  const target = moving?.targets.find((each) => each.status === status.id);
  const from = moving?.from === status.id;
  const at = moving !== null && moving.at === status.id;
  useDropTarget(box, status.id);
  const classes = ['col', folded && 'folded', from && 'from', target?.allowed && 'legal', at && 'at'].filter(Boolean).join(' ');
  return (
    <section ref={box} className={classes} aria-label={status.label} data-status={status.id}>
      <Head status={status} folded={folded} />
      {!folded && !moving && <Notes status={status.id} />}
      {moving && target && <Rule target={target} status={status} at={at} keys={moving.by === 'keys'} />}
      {moving && at && !folded && moving.by === 'keys' && <Hand moving={moving} />}
      {!folded && <Cards status={status} narrow={narrow} />}
    </section>
  );
}

function Head({ status, folded }: { status: Props['status']; folded: boolean }) {
  const inside = <><Glyph name={status.glyph} /><h2>{status.label}</h2><Count status={status.id} /></>;
  if (!folded) return <header title={status.words}>{inside}</header>;
  return (
    <header>
      <button type="button" className="unfold" title={`Open ${status.label}`} onClick={() => setLook({ choices: { ...useBoard.getState().choices, [status.id]: 'open' } })}>
        {inside}
      </button>
    </header>
  );
}

/** `40`, `8/8` where a cap holds, `3 of 40` where a filter does. */
export function Count({ status }: { status: string }) {
  const all = useTaskIds(status).length;
  const found = taskCount(useEntries(status));
  const cap = useRow('columns', status)?.cap ?? null;
  const full = cap !== null && all >= cap;
  const whole = cap === null ? all.toLocaleString('en') : `${all.toLocaleString('en')}/${cap.toLocaleString('en')}`;
  return (
    <span className={full ? 'n full' : 'n'} title={cap === null ? undefined : `At most ${cap} at once${full ? ': it is full' : ''}`}>
      {isFiltered(useWish()) && <span className="of">{found.toLocaleString('en')} of </span>}{whole}
    </span>
  );
}

function Notes({ status }: { status: string }) {
  const notes = useRow('columns', status)?.notes;
  return notes?.map((note) => (
    <div key={note.id} className="col-note"><Glyph name={note.glyph} size={12} /><span><Plain text={note.text} /></span></div>
  ));
}

function Rule({ target, status, at, keys }: { target: Target; status: Props['status']; at: boolean; keys: boolean }) {
  if (!target.allowed) return <div className="rule"><Plain text={target.words || `Nothing leads to ${target.label}.`} /></div>;
  return (
    <div className={at ? 'rule legal at' : 'rule legal'}>
      <b><Plain text={target.words || (at && keys ? 'Enter drops it here.' : 'Asks for nothing.')} /></b>
      <span className="dim"><Plain text={status.words} />{status.final && ' Nothing leads back.'}</span>
    </div>
  );
}

function Hand({ moving }: { moving: Moving }) {
  const task = useRow('tasks', moving.task);
  return task ? <div aria-hidden="true"><Slip task={task} state="hand" lines={[{ text: `from ${moving.fromLabel}`, glyph: 'back', tone: '' }]} /></div> : null;
}

function Cards({ status, narrow }: { status: Props['status']; narrow: boolean }) {
  const list = useEntries(status.id);
  const { group } = useWish();
  const notes = useRow('columns', status.id)?.notes;
  const here = useBoard((state) => (state.focused && list.includes(state.focused) ? state.focused : null));
  const tick = useBoard((state) => (here && state.focused === here ? state.focusTick : 0));
  const held = useBoard((state) => state.moving?.task);
  const handle = useRef<VirtualListHandle>(null);
  const stop = here ?? list.find((entry) => groupOf(entry) === null) ?? null;
  useEffect(() => {
    if (here && tick > 0) handle.current?.scrollTo(here);
  }, [here, tick]);
  const render = useCallback((entry: string) => {
    const key = groupOf(entry);
    if (key !== null) return <div className="group"><Plain text={groupLabel(key, group)} /></div>;
    return <Card id={entry} notes={notes} stop={entry === stop} narrow={narrow} />;
  }, [notes, stop, narrow, group]);
  if (list.length === 0) return <Nothing status={status.id} />;
  return <VirtualList handle={handle} ids={list} estimate={CARD} keep={[stop, held]} render={render} label={status.label} />;
}

function Nothing({ status }: { status: string }) {
  const any = useTaskIds(status).length > 0;
  return <div className="scroll"><p className="none small faint">{any ? 'No task here matches the filter.' : 'No task.'}</p></div>;
}

function useDropTarget(box: React.RefObject<HTMLElement | null>, status: string): void {
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    return dropTargetForElements({ element, getData: () => ({ status }), canDrop: ({ source }) => typeof source.data['task'] === 'string' });
  }, [box, status]);
}
