/** What the columns list now, by the filter and the grouping. */
import { useMemo } from 'react';
import { useShallow } from 'zustand/react/shallow';
import { shallow } from 'zustand/shallow';
import { useStore, useTaskIds } from '../../store/store';
import { entries, isFiltered, isPlain, matcher, same, type Wish } from './cards';
import { useBoard } from './state';

export function useWish(): Wish {
  return useBoard(useShallow(({ filter, agent, group }) => ({ filter, agent, group })));
}

/** The entries of a column: a new array exactly if they changed. Head and list of a column read the same. */
export function useEntries(status: string): readonly string[] {
  const ids = useTaskIds(status);
  const wish = useWish();
  // A plain list depends on no row but on the order alone.
  const version = useStore((state) => (isPlain(wish) ? 0 : state.version));
  return useMemo(() => shared(status, ids, wish, version), [status, ids, wish, version]);
}

const made = new Map<string, { ids: readonly string[]; wish: Wish; version: number; list: readonly string[] }>();

function shared(status: string, ids: readonly string[], wish: Wish, version: number): readonly string[] {
  const before = made.get(status);
  const asked = before && before.ids === ids && before.version === version && shallow(before.wish, wish);
  if (before && asked) return before.list;
  const list = same(before?.list ?? [], entriesNow(ids, wish));
  made.set(status, { ids, wish, version, list });
  return list;
}

export function entriesNow(ids: readonly string[], wish: Wish): readonly string[] {
  const { rows } = useStore.getState();
  return entries(ids, (id) => rows.row('tasks', id), wish);
}

/** How many tasks the filter leaves, and how many there are. */
export function useTotals(): { found: number | null; all: number } {
  const wish = useWish();
  const all = useStore((state) => state.rows.count('tasks'));
  const found = useStore((state) => {
    if (!isFiltered(wish)) return null;
    const fits = matcher(wish);
    let count = 0;
    for (const row of state.rows.all('tasks').values()) count += Number(fits(row));
    return count;
  });
  return { found, all };
}
