/** Everything that the screen shows of one task, from the store and from the routes. */
import { useMemo } from 'react';
import { useRow, useStore, useTerms } from '../../store/store';
import { ask, askAll, part } from './ask';
import { parsePatch, type DiffFile } from './diff/parse';
import { useViewed } from './diff/viewed';
import { useLoaded } from './load';
import { useTalk } from './talk';
import type { Reviewed, Run, Task, TaskDiff, TaskWhy, TestRun } from './types';
import { waysOf } from './ways';

const NO_FILES: readonly DiffFile[] = [];

/** `tab` says what is on screen; the rail is taken for always there. */
export function useTask(id: string, tab: string) {
  const row = useRow('tasks', id);
  const waiting = useRow('waiting', row?.waiting ?? '');
  const worker = useRow('workers', row?.worker ?? '');
  const queue = useRow('queue', id);
  const terms = useTerms();
  const base = `/tasks/${part(id)}`;
  const seq = row?.seq ?? 0;
  const about = `${seq} ${waiting?.seq ?? 0} ${queue?.seq ?? 0}`;

  const task = useLoaded(true, seq, (signal) => ask<Task>('get', base, undefined, signal));
  const reviewed = useLoaded(true, seq, (signal) => ask<Reviewed>('get', `${base}/review`, undefined, signal));
  const why = useLoaded(true, about, (signal) => ask<TaskWhy>('get', `${base}/why`, undefined, signal));
  const runs = useLoaded(true, seq, (signal) => askAll<Run>(`/runs?task=${part(id)}`, signal));
  const tests = useLoaded(true, seq, (signal) => askAll<TestRun>(`${base}/tests`, signal));
  const onReview = tab === 'review';
  const diff = useLoaded(onReview, seq, (signal) => ask<TaskDiff>('get', `${base}/diff`, undefined, signal));
  // A receipt comes with the agent's next step, which the row of its worker shows first.
  const talk = useTalk(id, `${about} ${worker?.seq ?? 0}`);
  const patch = diff.value && !diff.value.cutAt ? diff.value.diff : '';
  const files = useMemo(() => (patch ? parsePatch(patch) : NO_FILES), [patch]);
  const viewed = useViewed(id, files);
  const ways = useMemo(() => (row ? waysOf(row, terms, waiting, worker, queue) : { yes: null, no: null, others: [] }), [row, terms, waiting, worker, queue]);
  return { id, row, waiting, worker, queue, terms, task, reviewed, why, runs, tests, diff, talk, files, viewed, ways };
}

export type TaskData = ReturnType<typeof useTask>;

/** Ids of the tasks that wait for this one. A new dependency changes `holdsUp` of its row, so the row's `seq` is enough to look again. */
export function useDependents(id: string, seq: number): readonly string[] {
  return useMemo(() => {
    const found: string[] = [];
    for (const row of useStore.getState().rows.all('tasks').values()) if (row.waitsFor?.includes(id)) found.push(row.id);
    return found;
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [id, seq]);
}
