import { expect, test } from 'vitest';
import { OrderedGroups } from '../src/store/ordered';
import { Rows } from '../src/store/rows';
import { exampleView } from '../src/dev/fixture';
import type { TaskRow, ViewChange } from '../src/api/view';

const view = exampleView(Date.parse('2026-11-18T12:00:00Z'));

function loaded(): Rows {
  const rows = new Rows();
  rows.replace(view);
  return rows;
}

function change(tasks: TaskRow[]): ViewChange {
  return { seq: 2, at: view.at, tasks, gone: {} };
}

test('counts and lists come from the same rows', () => {
  const rows = loaded();
  expect([rows.count('tasks'), rows.count('workers'), rows.count('waiting'), rows.count('queue')]).toEqual([77, 12, 11, 10]);
  const listed = ['INBOX', 'ASSIGNED', 'IN_PROGRESS', 'REVIEW', 'NEEDS_APPROVAL', 'BLOCKED', 'DONE', 'CANCELED'].map((status) => rows.list('tasks', status).length);
  expect(listed).toEqual([40, 3, 8, 11, 2, 2, 9, 2]);
});

test('a task that moves leaves one list and enters the other at its rank', () => {
  const rows = loaded();
  const task = rows.row('tasks', 'ta-1');
  if (!task) throw new Error('the example has no ta-1');
  rows.apply(change([{ ...task, status: 'REVIEW', rank: 0.5 }]));
  expect(rows.list('tasks', 'IN_PROGRESS')).not.toContain('ta-1');
  expect(rows.list('tasks', 'REVIEW').slice(0, 3)).toEqual(['ta-8', 'ta-1', 'ta-2']);
});

test('only lists that changed are new', () => {
  const rows = loaded();
  const before = { inbox: rows.list('tasks', 'INBOX'), work: rows.list('tasks', 'IN_PROGRESS') };
  const task = rows.row('tasks', 'ta-1');
  if (!task) throw new Error('the example has no ta-1');
  rows.apply(change([{ ...task, title: 'Add a sum' }]));
  expect(rows.list('tasks', 'IN_PROGRESS')).toBe(before.work);
  rows.apply(change([{ ...task, rank: 99 }]));
  expect(rows.list('tasks', 'IN_PROGRESS')).not.toBe(before.work);
  expect(rows.list('tasks', 'INBOX')).toBe(before.inbox);
});

test('a row that is gone is in no list', () => {
  const rows = loaded();
  rows.apply({ ...change([]), gone: { queue: ['ta-2', 'unknown'] } });
  expect([rows.row('queue', 'ta-2'), rows.count('queue')]).toEqual([undefined, 9]);
  expect(rows.list('queue')[0]).toBe('ta-3');
});

test('a whole view replaces everything', () => {
  const rows = loaded();
  rows.replace({ ...view, tasks: view.tasks.slice(0, 1), workers: [] });
  expect([rows.count('tasks'), rows.count('workers'), rows.list('tasks', 'DONE').length, rows.list('workers', 'work').length]).toEqual([1, 0, 0, 0]);
});

test('insertions one by one give the same order as one sort', () => {
  // Ranks repeat, so that ids decide too.
  const places = Array.from({ length: 500 }, (_, index) => ({ id: `t${(index * 7919) % 500}`, group: `g${index % 3}`, rank: (index * 31) % 17 }));
  const sorted = new OrderedGroups();
  sorted.replace(places);
  const inserted = new OrderedGroups();
  for (const place of places) inserted.set({ ...place, group: 'before', rank: -place.rank });
  for (const place of places) inserted.set(place);
  for (const group of ['g0', 'g1', 'g2']) expect(inserted.of(group)).toEqual(sorted.of(group));
  expect(inserted.of('before')).toEqual([]);
});

test('what waits for a service is not counted as waiting for people', () => {
  const rows = loaded();
  const row = rows.row('waiting', 'w0');
  if (!row) throw new Error('the example has no w0');
  rows.apply({ ...change([]), waiting: [{ ...row, who: 'service' }] });
  expect(rows.count('waiting')).toBe(10);
});
