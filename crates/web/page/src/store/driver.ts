/** Carries out what the connection asks for: opens and drops streams, keeps the timer, and feeds the store. */
import { base } from '../api/base';
import { request } from '../api/client';
import { keyHeader } from '../api/session';
import { readEvents, type ServerEvent } from '../api/sse';
import type { Heartbeat, Terms, View, ViewChange } from '../api/view';
import { setServerTime, stopClock } from './clock';
import { initial, step, type Connection, type ConnectionEvent } from './connection';
import { putChanges, putView, setConnection, setPerson, setTerms, useStore, type Person } from './store';

const TICK_MS = 500;

let connection: Connection = initial;
let current: AbortController | undefined;
let changes: ViewChange[] = [];
let flushPlanned = false;

/** Opens the stream and keeps it for as long as the page lives. */
export function startConnection(): void {
  send({ type: 'start', at: Date.now() });
  setInterval(() => send({ type: 'tick', at: Date.now() }), TICK_MS);
  document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && checkNow());
  window.addEventListener('pageshow', checkNow);
  window.addEventListener('online', checkNow);
}

/** A person or the browser asks whether the connection holds. */
export function checkNow(): void {
  send({ type: 'check', at: Date.now() });
}

function send(event: ConnectionEvent): void {
  const before = connection;
  connection = step(before, event);
  if (connection.attempt !== before.attempt) {
    current?.abort();
    current = undefined;
    if (connection.tryingSince !== null) void follow(connection.attempt);
  }
  stopClock(connection.phase === 'stale' || connection.phase === 'signed-out' ? connection.lastByteAt : null);
  // A tick and a byte alone change nothing that is shown; the countdown of the next try reads the clock.
  if (shown(before) !== shown(connection)) setConnection(connection);
}

function shown(state: Connection): string {
  return `${state.phase} ${state.seq} ${state.nextTryAt} ${state.failures} ${state.reason}`;
}

async function follow(attempt: number): Promise<void> {
  const abort = new AbortController();
  current = abort;
  try {
    if (!useStore.getState().terms) await loadTerms(abort.signal);
    const after = useStore.getState().loaded && connection.seq !== null ? `?after=${connection.seq}` : '';
    const answer = await fetch(`${base}/api/v1/view${after}`, {
      headers: { accept: 'text/event-stream', ...keyHeader() },
      cache: 'no-store',
      signal: abort.signal,
    });
    if (answer.status === 401) return send({ type: 'refused', at: Date.now(), attempt });
    if (!answer.ok || !answer.body) return fail(attempt, `the server answered ${answer.status}`, answer.headers.get('retry-after'));
    await readEvents(answer.body, (event) => take(event, attempt), () => send({ type: 'byte', at: Date.now(), attempt }));
    fail(attempt, 'the server ended the connection');
  } catch (error) {
    if (!abort.signal.aborted) fail(attempt, error instanceof Error ? error.message : String(error));
  }
}

async function loadTerms(signal: AbortSignal): Promise<void> {
  const person = await request<Person>('get', '/caller', undefined, signal);
  if (person.ok) setPerson(person.value);
  const answer = await request<Terms>('get', '/terms', undefined, signal);
  // Without a session, the stream says so next.
  if (answer.ok) setTerms(answer.value);
  else if (answer.problem.status !== 401) throw new Error(answer.problem.detail);
}

function fail(attempt: number, reason: string, retryAfter?: string | null): void {
  const seconds = Number(retryAfter);
  send({ type: 'failed', at: Date.now(), attempt, reason, retryAfterMs: Number.isFinite(seconds) ? seconds * 1000 : undefined });
}

function take(event: ServerEvent, attempt: number): void {
  if (attempt !== connection.attempt) return;
  const value = JSON.parse(event.data) as View | ViewChange | Heartbeat;
  const at = Date.now();
  setServerTime(Date.parse(value.at), at);
  if (event.event === 'view') {
    changes = [];
    putView(value as View);
  } else if (event.event === 'change') {
    changes.push(value as ViewChange);
    planFlush();
  }
  send({ type: 'event', at, attempt, seq: value.seq });
}

/** Changes of one frame are applied together. A hidden page draws no frames, so it uses a timer. */
function planFlush(): void {
  if (flushPlanned) return;
  flushPlanned = true;
  if (document.visibilityState === 'visible') requestAnimationFrame(flush);
  else setTimeout(flush, 100);
}

function flush(): void {
  flushPlanned = false;
  const taken = changes;
  changes = [];
  putChanges(taken);
}
