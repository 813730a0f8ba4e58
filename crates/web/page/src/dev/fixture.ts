/**
 * Example data for looking at screens without a server: `npm run dev`, then any address with `?fixture`.
 * `fixture=stale`, `fixture=reconnecting`, `fixture=signed-out` and `fixture=first` show these states. Not in the product.
 */
import type { Connection } from '../store/connection';
import { initial } from '../store/connection';
import { stopClock } from '../store/clock';
import { putView, setConnection, setTerms } from '../store/store';
import type { TaskRow, View } from '../api/view';
import { EXAMPLE_QUEUE, EXAMPLE_WAITING, EXAMPLE_WORKERS } from './example-rows';
import { EXAMPLE_TASKS } from './example-tasks';
import { EXAMPLE_TERMS } from './terms';

const SEQ = 1204;

export function playFixture(): void {
  const which = new URLSearchParams(location.search).get('fixture');
  const now = Date.now();
  setTerms(EXAMPLE_TERMS);
  putView(exampleView(which === 'stale' ? now - 130_000 : now, which === 'first'));
  setConnection(connection(which, now));
  if (which === 'stale') stopClock(now - 130_000);
}

function connection(which: string | null, now: number): Connection {
  const live: Connection = { ...initial, phase: 'live', seq: SEQ, lastByteAt: now, attempt: 1 };
  if (which === 'stale') return { ...live, phase: 'stale', lastByteAt: now - 130_000, nextTryAt: now + 9_000, reason: 'Failed to fetch' };
  if (which === 'reconnecting') return { ...live, phase: 'reconnecting', lastByteAt: now - 6_000, nextTryAt: now + 4_000, reason: 'Failed to fetch' };
  if (which === 'signed-out') return { ...live, phase: 'signed-out' };
  return live;
}

export function exampleView(now: number, firstRun = false): View {
  const ago = (seconds: number) => new Date(now - seconds * 1000).toISOString();
  const tasks: TaskRow[] = firstRun ? [] : Object.entries(EXAMPLE_TASKS).flatMap(([status, list]) =>
    list.map((task, rank) => ({
      ...task, seq: 900 + rank, status, rank, priority: task.priority ?? null, since: ago(task.age), lines: task.lines ?? [],
    })));
  return {
    seq: SEQ,
    at: ago(0),
    tasks,
    columns: [
      { id: 'INBOX', seq: 1, cap: null, notes: [{ id: 'cap', text: '31 wait: In progress is full, 8 of 8', glyph: 'cap' }] },
      { id: 'IN_PROGRESS', seq: 1, cap: 8, notes: [] },
      { id: 'REVIEW', seq: 1, cap: 12, notes: [] },
    ],
    workers: firstRun ? [] : EXAMPLE_WORKERS.map(({ age, ...worker }) => ({ ...worker, seq: 1, since: ago(age) })),
    waiting: firstRun ? [] : EXAMPLE_WAITING.map(({ age, frees, ...waiting }, rank) => ({
      ...waiting, id: `w${rank}`, seq: 1, rank, since: ago(age), until: frees ? ago(-frees) : null,
    })),
    queue: firstRun ? [] : EXAMPLE_QUEUE.map((row, index) => ({ ...row, id: row.task, seq: 1, rank: index + 1 })),
    projects: [{ id: 'tally', seq: 1, name: 'tally', waiting: 10 }, { id: 'ledger', seq: 1, name: 'ledger', waiting: 1 }],
    facts: [{
      id: 'frame', seq: SEQ, project: 'tally', person: 'human:local', firstRun,
      fleet: firstRun ? { text: 'fleet is off', glyph: 'worker.idle' } : { text: 'fleet runs, 7 of 12 at work', glyph: 'worker.working' },
      main: { text: 'main green at', glyph: 'check', commit: '31ed415' },
      money: { text: firstRun ? 'today $0.00' : 'today $4.12', spent: firstRun ? 0 : 4.12, reserved: firstRun ? 0 : 1.2, cap: 20 },
      machine: 'processor 62 % · memory 9.1 of 32 GB · disk 214 GB free',
    }],
  };
}
