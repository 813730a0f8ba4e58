import { expect, test } from 'vitest';
import { baseOf } from '../src/api/base';
import { foundTasks, grouped, score } from '../src/frame/search';
import { exampleView } from '../src/dev/fixture';
import { countdown, longAge, shortAge } from '../src/parts/time';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

test('ages are short on a card and longer in a sentence', () => {
  expect([0, 59_999, MINUTE, HOUR - 1, HOUR, 24 * HOUR, -5].map(shortAge)).toEqual(['0 s', '59 s', '1 m', '59 m', '1 h', '1 d', '0 s']);
  expect([40_000, 130_000, 2 * MINUTE, 38 * MINUTE, 65 * MINUTE, 26 * HOUR].map(longAge)).toEqual(['40 s', '2 min 10 s', '2 min', '38 min', '1 h 5 min', '1 d 2 h']);
});

test('a countdown ends at 0:00', () => {
  expect([192_000, 191_001, 400, 0, -9000, HOUR + 5 * MINUTE].map(countdown)).toEqual(['3:12', '3:12', '0:01', '0:00', '0:00', '1:05:00']);
});

test('the base is that of the project', () => {
  expect(['/', '/board', '/p/tally', '/p/tally/', '/p/tally/task/ta-1', '/plan'].map(baseOf)).toEqual(['', '', '/p/tally', '/p/tally', '/p/tally', '']);
});

test('every word of a query must be found, and a beginning is better than a middle', () => {
  expect(score('ta-17 Keep fixtures out of the tree', 'tree keep')).toBeGreaterThan(0);
  expect(score('ta-17 Keep fixtures out of the tree', 'tree gone')).toBe(0);
  expect(score('Move to Review', 'rev')).toBeGreaterThan(score('Preview', 'rev'));
});

test('a task is found by its exact id first', () => {
  const tasks = exampleView(0).tasks;
  expect(foundTasks(tasks, 'ta-1', 3)[0]?.id).toBe('ta-1');
  expect(foundTasks(tasks, ' ', 3)).toEqual([]);
});

test('groups of actions keep their order, and an action is listed once', () => {
  const action = (id: string, group: string, label: string) => ({ id, group, label, run: () => undefined });
  const actions = [action('a', 'On ta-1', 'Move to Review'), action('b', 'Go to', 'Review'), action('a', 'Page', 'Move to Review')];
  expect(grouped(actions, '').map((group) => [group.name, group.actions.length])).toEqual([['On ta-1', 1], ['Go to', 1]]);
  expect(grouped(actions, 'go rev').map((group) => group.name)).toEqual(['Go to']);
});
