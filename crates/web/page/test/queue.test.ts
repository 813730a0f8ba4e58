import { expect, test } from 'vitest';
import { exampleView } from '../src/dev/fixture';
import { EXAMPLE_TERMS } from '../src/dev/terms';
import { allLandedAt, expectedTimes, isOverdue, nextRow, stepsOf } from '../src/screens/queue/steps';
import type { QueueRow } from '../src/api/view';

const NOW = Date.parse('2026-11-18T12:00:00Z');
const example = exampleView(NOW).queue;
const [sample] = example;

function row(id: string, state: QueueRow['state'], expectedSeconds: number | null, ago: number | null = null): QueueRow {
  if (!sample) throw new Error('the example has no queue');
  return { ...sample, id, task: id, state, expectedSeconds, since: ago === null ? null : new Date(NOW - ago * 1000).toISOString() };
}

const seconds = (rows: QueueRow[]) => [...expectedTimes(rows, NOW)].map(([id, at]) => [id, (at - NOW) / 1000]);

test('groups come in the order of the server and hold every row once', () => {
  const steps = stepsOf(example, EXAMPLE_TERMS.queueSteps);
  expect(steps.map((step) => [step.label, step.rows.length])).toEqual([['Landing', 2], ['Testing', 4], ['Waiting', 4], ['Held up', 0]]);
  expect(stepsOf(example, []).map((step) => step.rows.length)).toEqual([10]);
});

test('each row is expected after those in front of it', () => {
  expect(seconds([row('a', 'testing', 70, 41), row('b', 'waits', 70), row('c', 'waits', 70)])).toEqual([['a', 29], ['b', 99], ['c', 169]]);
});

test('a step that takes longer than expected is due now, not in the past', () => {
  const rows = [row('a', 'landing', 70, 500), row('b', 'waits', 70), row('c', 'held', 70, 500)];
  expect(seconds(rows)).toEqual([['a', 0], ['b', 70]]);
  expect(rows.map((each) => isOverdue(each, NOW))).toEqual([true, false, false]);
});

test('a row that is held up has no time and delays nobody', () => {
  const rows = [row('a', 'held', 70, 600), row('b', 'waits', 70), row('c', 'held', 70, 5)];
  expect(seconds(rows)).toEqual([['b', 70]]);
  expect(allLandedAt(rows, NOW)).toBe(NOW + 70_000);
});

test('behind a row of which nothing is known, nothing is known', () => {
  const rows = [row('a', 'testing', 70, 10), row('b', 'waits', null), row('c', 'waits', 70)];
  expect(seconds(rows)).toEqual([['a', 60]]);
  expect([allLandedAt(rows, NOW), allLandedAt([], NOW)]).toEqual([null, null]);
});

test('steps of the cursor end at both ends, and begin at the first row', () => {
  const rows = [row('a', 'waits', 1), row('b', 'waits', 1)];
  expect([nextRow(rows, null, 1), nextRow(rows, 'b', 1), nextRow(rows, 'a', -1), nextRow([], null, 1)]).toEqual(['a', 'b', 'a', null]);
});
