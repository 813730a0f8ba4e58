/** The tool bar: filter, grouping, agents, columns, totals, new task. */
import { useMemo, useRef } from 'react';
import { useActions } from '../../keys/actions';
import { Button } from '../../parts/Button';
import { Glyph } from '../../parts/Glyph';
import { KeyCaps } from '../../parts/KeyCap';
import { Menu, type MenuItem } from '../../parts/Menu';
import { useFacts, useStore, useTerms } from '../../store/store';
import { GROUPINGS } from './cards';
import type { ColumnState } from './columns';
import { useTotals, useWish } from './lists';
import { focusCard, setBoard, setLook, useBoard } from './state';

export function Tools({ columns, first }: { columns: readonly ColumnState[]; first: () => void }) {
  const input = useRef<HTMLInputElement>(null);
  const filter = useBoard((state) => state.filter);
  useActions(useMemo(() => [
    { id: 'filter', label: 'Filter the board', group: 'This view', glyph: 'search', run: () => input.current?.focus() },
    { id: 'task.new', label: 'New task', group: 'This view', glyph: 'plus', acts: true, run: () => setBoard({ dialog: { kind: 'new' } }) },
  ], []));
  return (
    <div className="tools">
      <label className="field dense filter">
        <Glyph name="search" size={14} />
        <input
          ref={input}
          type="search"
          value={filter}
          placeholder="Title or id"
          aria-label="Filter by title or id"
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => setBoard({ filter: event.target.value })}
          onKeyDown={(event) => {
            if (event.nativeEvent.isComposing || !['Escape', 'Enter', 'ArrowDown'].includes(event.key)) return;
            event.preventDefault();
            if (event.key === 'Escape' && filter) return setBoard({ filter: '' });
            const { focused } = useBoard.getState();
            if (event.key === 'Escape' && focused) focusCard(focused);
            else first();
          }}
        />
        {filter ? <Button look="quiet" size="tiny" glyph="x" aria-label="Clear the filter" onClick={() => setBoard({ filter: '' })} /> : <span className="wide-only caps"><KeyCaps action="filter" /></span>}
      </label>
      <span className="wide-only row">
        <GroupMenu /><AgentMenu /><ColumnMenu columns={columns} />
      </span>
      <Totals />
      <Button size="dense" glyph="plus" action="task.new" acts onClick={() => setBoard({ dialog: { kind: 'new' } })}>New task</Button>
    </div>
  );
}

function GroupMenu() {
  const { group } = useWish();
  const items = GROUPINGS.map((each): MenuItem => ({
    id: each, label: each === 'status' ? 'Status alone' : `In each status by ${each}`, checked: each === group, run: () => setLook({ group: each }),
  }));
  return <Menu label="Group" items={items}>Group: {group} <Glyph name="down" size={14} /></Menu>;
}

function AgentMenu() {
  const { agent } = useWish();
  const named = useTerms()?.agents;
  const loaded = useStore((state) => state.loaded);
  const agents = useMemo(() => {
    const rows = loaded ? [...useStore.getState().rows.all('tasks').values()] : [];
    return [...new Set([...(named ?? []), ...rows.flatMap((row) => row.agent ?? [])])].sort();
  }, [named, loaded]);
  const item = (id: string, label: string, value: string | null): MenuItem => ({ id, label, checked: agent === value, run: () => setBoard({ agent: value }) });
  const items = [item('all', 'All agents', null), ...agents.map((each) => item(`agent ${each}`, each, each)), item('none', 'No agent', '')];
  return <Menu label="Agent" items={items}>{agent === null ? 'All agents' : agent || 'No agent'} <Glyph name="down" size={14} /></Menu>;
}

function ColumnMenu({ columns }: { columns: readonly ColumnState[] }) {
  const choices = useBoard((state) => state.choices);
  const hideEmpty = useBoard((state) => state.hideEmpty);
  const labels = new Map(useTerms()?.statuses.map((status) => [status.id as string, status]));
  const folded = columns.filter((each) => each.state !== 'open').length;
  const items: MenuItem[] = [
    ...columns.map(({ id, state }): MenuItem => ({
      id, label: labels.get(id)?.label ?? id, glyph: labels.get(id)?.glyph ?? '', checked: state === 'open',
      run: () => setLook({ choices: { ...choices, [id]: state === 'open' ? 'folded' : 'open' } }),
    })),
    { id: 'empty', label: 'Hide empty columns', checked: hideEmpty, run: () => setLook({ hideEmpty: !hideEmpty }) },
    { id: 'fit', label: 'Fold by the room there is', run: () => setLook({ choices: {}, hideEmpty: false }) },
  ];
  return <Menu label="Columns" items={items}>{folded === 0 ? 'All columns' : folded === 1 ? '1 column folded' : `${folded} columns folded`} <Glyph name="down" size={14} /></Menu>;
}

function Totals() {
  const { found, all } = useTotals();
  const landed = useFacts()?.landedLastHour ?? 0;
  const many = (count: number) => `${count.toLocaleString('en')} ${count === 1 ? 'task' : 'tasks'}`;
  return (
    <span className="push small faint wide-only nowrap totals" role="status">
      {found === null ? many(all) : `${found.toLocaleString('en')} of ${many(all)}`}{found === null && landed > 0 && `, ${landed} landed in the last hour`}
    </span>
  );
}
