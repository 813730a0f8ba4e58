import { expect, test } from 'vitest';
import { actionsOn, initial, nextTryIn, step, type Connection, type ConnectionEvent } from '../src/store/connection';

/** Events without their moment and attempt: the test says when, and the current attempt is meant. */
type Short = 'start' | 'byte' | 'event' | 'failed' | 'refused' | 'tick' | 'check' | 'signed-in';

/** Plays events at seconds and returns the last state. Between them the timer ticks twice a second, as in the page. */
function play(state: Connection, ...events: [number, Short, number?][]): Connection {
  for (const [second, type, extra] of events) {
    state = ticks(state, second);
    state = step(state, event(type, second * 1000, state.attempt, extra));
  }
  return state;
}

function ticks(state: Connection, until: number): Connection {
  for (let at = (state.lastTickAt ?? until * 1000) + 500; at < until * 1000; at += 500) state = step(state, { type: 'tick', at });
  return state;
}

function event(type: Short, at: number, attempt: number, extra = 7): ConnectionEvent {
  if (type === 'event') return { type, at, attempt, seq: extra };
  if (type === 'failed') return { type, at, attempt, reason: 'gone', retryAfterMs: extra === 7 ? undefined : extra };
  if (type === 'byte' || type === 'refused') return { type, at, attempt };
  return { type, at };
}

const live = play(initial, [0, 'start'], [1, 'event', 7]);

test('a page is live only after an event of its stream', () => {
  const opened = play(initial, [0, 'start']);
  expect(opened).toMatchObject({ phase: 'opening', attempt: 1, tryingSince: 0 });
  expect(play(opened, [1, 'byte']).phase).toBe('opening');
  expect(live).toMatchObject({ phase: 'live', seq: 7, failures: 0, tryingSince: null, nextTryAt: null });
});

test('a lost connection is reconnecting at once, stale 10 s after the last byte, and live again by the next event', () => {
  const lost = play(live, [2, 'failed']);
  expect(lost).toMatchObject({ phase: 'reconnecting', nextTryAt: 3000, seq: 7 });
  expect(actionsOn(live)).toBe(true);
  expect(actionsOn(lost)).toBe(false);
  const later = play(lost, [10, 'tick']);
  expect(later.phase).toBe('reconnecting');
  const stale = play(later, [11, 'tick']);
  expect(stale).toMatchObject({ phase: 'stale', seq: 7, lastByteAt: 1000 });
  expect(play(stale, [12, 'event', 9])).toMatchObject({ phase: 'live', seq: 9, failures: 0 });
});

test('six seconds without a byte open a new stream', () => {
  const silent = play(live, [7, 'tick']);
  expect(silent).toMatchObject({ phase: 'reconnecting', attempt: live.attempt + 1, tryingSince: 7000 });
});

test('a byte every few seconds keeps the page live', () => {
  let state = live;
  for (let second = 4; second < 60; second += 3) state = play(state, [second, 'byte']);
  expect(state).toMatchObject({ phase: 'live', attempt: live.attempt });
});

test('tries come after 1, 2, 4, 8, 10 and again 10 s', () => {
  let state = live;
  let second = 2;
  const waits: number[] = [];
  for (let tries = 0; tries < 6; tries += 1) {
    state = play(state, [second, 'failed']);
    const next = state.nextTryAt ?? 0;
    waits.push(next / 1000 - second);
    second = next / 1000;
    state = play(state, [second, 'tick']);
    expect(state.tryingSince, `try ${tries}`).toBe(next);
  }
  expect(waits).toEqual([1, 2, 4, 8, 10, 10]);
});

test('the countdown counts whole seconds and never shows 0', () => {
  const lost = play(live, [2, 'failed'], [3, 'tick'], [3, 'failed']);
  expect(lost.nextTryAt).toBe(5000);
  expect([3000, 3001, 4000, 4999, 5400].map((now) => nextTryIn(lost, now))).toEqual([2, 2, 1, 1, 1]);
  expect(nextTryIn(play(lost, [5, 'tick']), 5000)).toBe(null);
});

test('the server may ask for a longer wait, not for a shorter one', () => {
  expect(play(live, [2, 'failed', 30_000]).nextTryAt).toBe(32_000);
  expect(play(live, [2, 'failed', 10]).nextTryAt).toBe(3000);
});

test('a try that gets no answer in 6 s has failed', () => {
  const trying = play(live, [2, 'failed'], [3, 'tick']);
  expect(trying.tryingSince).toBe(3000);
  expect(play(trying, [8, 'tick']).tryingSince).toBe(3000);
  expect(play(trying, [9, 'tick'])).toMatchObject({ tryingSince: null, failures: 2, nextTryAt: 11_000 });
});

test('after a restart of the server the page goes on from its last record', () => {
  const stale = play(live, [2, 'failed'], [3, 'tick'], [3, 'failed'], [5, 'tick'], [5, 'failed'], [9, 'tick'], [9, 'failed'], [14, 'tick']);
  expect(stale).toMatchObject({ phase: 'stale', seq: 7, nextTryAt: 17_000 });
  expect(play(stale, [17, 'tick'], [17.2, 'event', 12])).toMatchObject({ phase: 'live', seq: 12 });
});

test('a timer that comes late has slept: the stream is opened anew, and old data is stale at once', () => {
  const woken = step({ ...live, lastTickAt: 1500 }, { type: 'tick', at: 3_600_000 });
  expect(woken).toMatchObject({ phase: 'stale', attempt: live.attempt + 1, tryingSince: 3_600_000 });
  const shortly = step({ ...live, lastTickAt: 1500 }, { type: 'tick', at: 7000 });
  expect(shortly).toMatchObject({ phase: 'reconnecting', attempt: live.attempt + 1 });
});

test('what a stream of before the sleep still delivers is not taken', () => {
  const woken = step({ ...live, lastTickAt: 1500 }, { type: 'tick', at: 3_600_000 });
  const late = step(woken, { type: 'event', at: 3_600_001, attempt: live.attempt, seq: 8 });
  expect(late).toBe(woken);
});

test('showing the page again checks at once, unless data has just arrived', () => {
  expect(play(live, [2, 'check'])).toMatchObject({ phase: 'live', attempt: live.attempt });
  const waiting = play(live, [2, 'failed'], [3, 'tick'], [3, 'failed'], [3.2, 'check']);
  expect(waiting).toMatchObject({ phase: 'reconnecting', tryingSince: 3200, nextTryAt: null, failures: 0 });
});

test('a check does not interrupt a try that has just begun', () => {
  const trying = play(live, [2, 'failed'], [3, 'tick']);
  expect(play(trying, [3.1, 'check']).attempt).toBe(trying.attempt);
});

test('a page whose session has ended tries nothing until somebody signs in', () => {
  const out = play(live, [2, 'refused']);
  expect(out).toMatchObject({ phase: 'signed-out', tryingSince: null, nextTryAt: null });
  expect(play(out, [60, 'tick'], [61, 'check'])).toMatchObject({ phase: 'signed-out', attempt: out.attempt });
  expect(play(out, [62, 'signed-in'])).toMatchObject({ phase: 'opening', attempt: out.attempt + 1, tryingSince: 62_000 });
});

test('a clock that is set back does not keep the page from becoming stale', () => {
  const noon: Connection = { ...live, lastByteAt: 3_600_000, lastTickAt: 3_600_000 };
  const back = step(noon, { type: 'tick', at: 1000 });
  expect(back.lastByteAt).toBe(1000);
  expect(play(back, [1.5, 'failed'], [11, 'tick']).phase).toBe('stale');
});

test('a page that never had data does not call it stale', () => {
  const never = play(initial, [0, 'start'], [0.1, 'failed'], [30, 'tick']);
  expect(never).toMatchObject({ phase: 'reconnecting', seq: null });
});
