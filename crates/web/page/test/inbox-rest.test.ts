import { expect, test } from 'vitest';
import { afterDeciding, moveCursor, noCursor, stepFrom, targets, type Cursor, type CursorEvent, type Shown } from '../src/screens/inbox/rest';

const rows = (ids: string, marks: Record<string, string> = {}): Shown[] => [...ids].map((id) => ({ id, mark: marks[id] ?? 'asks' }));

function after(...events: CursorEvent[]): Cursor {
  return events.reduce(moveCursor, noCursor);
}

const shown = (ids: string, at = 0, marks = {}): CursorEvent => ({ type: 'rows', rows: rows(ids, marks), at });
const focus = (id: string | null, at: number): CursorEvent => ({ type: 'focus', id, at });
const pick = (id: string, at: number): CursorEvent => ({ type: 'pick', id, at });

test('a key decides on the focused row after half a second, and not before', () => {
  const cursor = after(shown('abc'), focus('b', 100));
  expect([100, 599, 600, 9000].map((now) => targets(cursor, now))).toEqual([[], [], ['b'], ['b']]);
});

test('without a focused row a key decides nothing', () => {
  expect(targets(after(shown('abc')), 9000)).toEqual([]);
  expect(targets(after(shown('abc'), focus(null, 0)), 9000)).toEqual([]);
});

test('a row that enters above moves the focused one: the time begins again', () => {
  const cursor = after(shown('abc'), focus('b', 0), shown('xabc', 1000));
  expect([targets(cursor, 1499), targets(cursor, 1500)]).toEqual([[], ['b']]);
});

test('a row that enters below changes nothing', () => {
  expect(targets(after(shown('abc'), focus('b', 0), shown('abcx', 1000)), 1001)).toEqual(['b']);
});

test('an edited call is a new question: the time begins again', () => {
  const cursor = after(shown('abc'), focus('b', 0), shown('abc', 1000, { b: 'asks for more' }));
  expect([targets(cursor, 1001), targets(cursor, 1500)]).toEqual([[], ['b']]);
});

test('a focused row that left is not replaced by the one that took its place', () => {
  const cursor = after(shown('abc'), focus('b', 0), shown('ac', 1000));
  expect(targets(cursor, 9000)).toEqual([]);
  expect([stepFrom(cursor, 1), stepFrom(cursor, -1)]).toEqual(['c', 'a']);
});

test('a key that comes too early begins the time again, so that a held key never decides', () => {
  let cursor = after(shown('abc'), focus('b', 0));
  for (let at = 30; at < 3000; at += 30) {
    expect(targets(cursor, at)).toEqual([]);
    cursor = moveCursor(cursor, { type: 'early', at });
  }
});

test('selected rows are decided instead of the focused one, in the order of the list', () => {
  const cursor = after(shown('abcd'), focus('b', 0), pick('d', 10), pick('a', 20));
  expect([targets(cursor, 519), targets(cursor, 520)]).toEqual([[], ['a', 'd']]);
  expect(targets(moveCursor(cursor, { type: 'clear', at: 600 }), 1100)).toEqual(['b']);
});

test('focusing another row does not disturb a selection at rest', () => {
  expect(targets(after(shown('abcd'), focus('b', 0), pick('a', 10), focus('c', 1000)), 1001)).toEqual(['a']);
});

test('a selected row that leaves is taken out, and the time begins again', () => {
  const cursor = after(shown('abcd'), pick('a', 0), pick('d', 0), shown('abc', 1000));
  expect([targets(cursor, 1001), targets(cursor, 1500)]).toEqual([[], ['a']]);
  expect(moveCursor(cursor, shown('abcd', 2000)).picked).toEqual(['a']);
});

test('a row that is not shown cannot be selected, and a second time takes it out', () => {
  expect(after(shown('ab'), pick('z', 0)).picked).toEqual([]);
  expect(after(shown('ab'), pick('a', 0), pick('a', 1)).picked).toEqual([]);
});

test('steps end at both ends of the list', () => {
  expect([stepFrom(after(shown('abc'), focus('c', 0)), 1), stepFrom(after(shown('abc'), focus('a', 0)), -1)]).toEqual(['c', 'a']);
  expect([stepFrom(after(shown('abc')), 1), stepFrom(noCursor, 1)]).toEqual(['a', null]);
});

test('after a decision the row below is next, or the last one above', () => {
  expect(afterDeciding(after(shown('abcd'), focus('b', 0)), ['b'])).toBe('c');
  expect(afterDeciding(after(shown('abcd'), focus('d', 0)), ['c', 'd'])).toBe('b');
  expect(afterDeciding(after(shown('ab'), focus('a', 0)), ['a', 'b'])).toBe(null);
});
