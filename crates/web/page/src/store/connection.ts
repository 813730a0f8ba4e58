/**
 * What the page knows about its connection, as a pure function of events. It holds no timer and makes no request:
 * store/driver.ts does both, and opens a stream whenever `attempt` grows.
 *
 * Invariants: `live` is only said after an event of the current attempt. `stale` begins 10 s after the last byte, whatever
 * else happens. A signed-out page tries nothing.
 */

/** No byte for so long: the connection is taken for lost. The server sends a heartbeat every 3 s. */
export const SILENCE_MS = 6_000;
/** So long after the last byte the data is stale. */
export const STALE_MS = 10_000;
/** A timer that comes so much later than the one before has slept. */
export const SLEEP_MS = 5_000;
const BACKOFF_S = [1, 2, 4, 8, 10] as const;

export type Phase = 'opening' | 'live' | 'reconnecting' | 'stale' | 'signed-out';

export interface Connection {
  phase: Phase;
  /** Counts the streams that were opened: the driver opens one for each new number and drops events of older ones. */
  attempt: number;
  /** When the attempt under way began; null while the page waits for the next try. */
  tryingSince: number | null;
  nextTryAt: number | null;
  /** Attempts that failed since the page was last live. */
  failures: number;
  /** When the last byte arrived; null before the first. */
  lastByteAt: number | null;
  /** The last record that the page has. */
  seq: number | null;
  /** Why it is not live, in words of the browser or the server. */
  reason: string;
  lastTickAt: number | null;
}

export type ConnectionEvent =
  | { type: 'start'; at: number }
  | { type: 'byte'; at: number; attempt: number }
  /** A view, a change or a heartbeat was read and applied. */
  | { type: 'event'; at: number; attempt: number; seq: number }
  | { type: 'failed'; at: number; attempt: number; reason: string; retryAfterMs?: number | undefined }
  | { type: 'refused'; at: number; attempt: number }
  | { type: 'tick'; at: number }
  /** The page was shown again, came back from the browser's cache, the network is back, or a person asked for a try. */
  | { type: 'check'; at: number }
  | { type: 'signed-in'; at: number };

export const initial: Connection = {
  phase: 'opening', attempt: 0, tryingSince: null, nextTryAt: null, failures: 0, lastByteAt: null, seq: null, reason: '', lastTickAt: null,
};

export function step(state: Connection, event: ConnectionEvent): Connection {
  if ('attempt' in event && event.attempt !== state.attempt) return state;
  switch (event.type) {
    case 'start':
    case 'signed-in':
      return open({ ...state, phase: 'opening', failures: 0, lastTickAt: event.at }, event.at);
    case 'byte':
      return { ...state, lastByteAt: event.at };
    case 'event':
      return {
        ...state, phase: 'live', seq: event.seq, lastByteAt: event.at, failures: 0, tryingSince: null, nextTryAt: null, reason: '',
      };
    case 'failed':
      return failed(state, event.at, event.reason, event.retryAfterMs);
    case 'refused':
      return { ...state, phase: 'signed-out', attempt: state.attempt + 1, tryingSince: null, nextTryAt: null };
    case 'check':
      return check(state, event.at);
    case 'tick':
      return tick(state, event.at);
  }
}

/** Seconds until the next try, at least 1; null while a try is under way or none is needed. */
export function nextTryIn(state: Connection, now: number): number | null {
  return state.nextTryAt === null ? null : Math.max(1, Math.ceil((state.nextTryAt - now) / 1000));
}

/** The page shows what is true now: what is decided on it, is decided on current data. */
export function actionsOn(state: Connection): boolean {
  return state.phase === 'live';
}

function tick(before: Connection, now: number): Connection {
  if (before.phase === 'signed-out' || before.phase === 'opening' && before.attempt === 0) return before;
  const slept = before.lastTickAt !== null && Math.abs(now - before.lastTickAt) > SLEEP_MS;
  let state: Connection = { ...before, lastTickAt: now };
  // The clock was set back: moments in the future would keep the page from ever becoming stale.
  if (state.lastByteAt !== null && state.lastByteAt > now) state.lastByteAt = now;
  if (slept) return check(state, now);
  if (state.phase === 'live' && silence(state, now) >= SILENCE_MS) state = open({ ...state, phase: 'reconnecting', reason: 'no sign of the server' }, now);
  else if (state.tryingSince !== null && now - Math.max(state.tryingSince, state.lastByteAt ?? 0) >= SILENCE_MS) {
    state = failed(state, now, 'the server does not answer');
  } else if (state.nextTryAt !== null && now >= state.nextTryAt) state = open(state, now);
  return aged(state, now);
}

/** Asks at once whether the connection still holds: a stream that was frozen looks open and is not. */
function check(state: Connection, now: number): Connection {
  if (state.phase === 'signed-out') return state;
  const fresh = state.phase === 'live' && silence(state, now) < SLEEP_MS;
  // Several of these events come together when a page is shown again: they ask for one try.
  const justTried = state.tryingSince !== null && now >= state.tryingSince && now - state.tryingSince < 1000;
  if (fresh || justTried) return aged(state, now);
  const phase = state.phase === 'live' ? 'reconnecting' : state.phase;
  return aged(open({ ...state, phase, failures: 0 }, now), now);
}

function open(state: Connection, now: number): Connection {
  return { ...state, attempt: state.attempt + 1, tryingSince: now, nextTryAt: null };
}

function failed(state: Connection, now: number, reason: string, retryAfterMs?: number): Connection {
  const seconds = BACKOFF_S[Math.min(state.failures, BACKOFF_S.length - 1)] ?? 10;
  const wait = Math.max(seconds * 1000, retryAfterMs ?? 0);
  const phase = state.phase === 'live' || state.phase === 'opening' ? 'reconnecting' : state.phase;
  // A new number, so that nothing that the failed stream still says is heard.
  return aged({ ...state, phase, attempt: state.attempt + 1, tryingSince: null, nextTryAt: now + wait, failures: state.failures + 1, reason }, now);
}

function aged(state: Connection, now: number): Connection {
  return state.phase === 'reconnecting' && silence(state, now) >= STALE_MS ? { ...state, phase: 'stale' } : state;
}

function silence(state: Connection, now: number): number {
  return state.lastByteAt === null ? 0 : now - state.lastByteAt;
}
