/**
 * Example data for looking at screens without a server: `npm run dev`, then any address with `?fixture`.
 * `fixture=stale`, `fixture=reconnecting`, `fixture=signed-out` and `fixture=first` show these states. Not in the product.
 */
import type { Connection } from '../store/connection';
import { initial } from '../store/connection';
import { stopClock } from '../store/clock';
import { putView, setConnection, setPerson, setTerms } from '../store/store';
import type { TaskRow, View } from '../api/view';
import { EXAMPLE_ACTIONS, EXAMPLE_CALL } from './example-actions';
import { EXAMPLE_QUEUE, EXAMPLE_WAITING, EXAMPLE_WORKERS } from './example-rows';
import { EXAMPLE_TASKS } from './example-tasks';
import { EXAMPLE_TERMS } from './terms';

const SEQ = 1204;

export function playFixture(): void {
  const which = new URLSearchParams(location.search).get('fixture');
  const now = Date.now();
  setTerms(EXAMPLE_TERMS);
  setPerson({
    kind: 'person', name: 'local', role: 'human', readsOnly: false, run: null, task: null, outside: false, seat: null, channels: [], channel: null, questionSeconds: 0,
  });
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
      ...task, seq: 900 + rank, status: status as TaskRow['status'], rank, type: 'task' as const, priority: task.priority ?? 2, since: ago(task.age), lines: task.lines ?? [],
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
    workers: firstRun ? [] : EXAMPLE_WORKERS.map(({ age, ...worker }) => ({
      ...worker, seq: 1, since: ago(age), activity: { state: 'step' as const }, run: worker.task && `${worker.task}.1`, turn: 7, maxTurns: 50, lastError: null,
      costUsd: 0.07, waiting: null, actions: EXAMPLE_ACTIONS.worker,
    })),
    waiting: firstRun ? [] : EXAMPLE_WAITING.map(({ age, ...waiting }, rank) => ({
      ...waiting, id: `w${rank}`, seq: 1, rank, since: ago(age), severity: 'urgent' as const, who: 'person' as const, worker: rank === 0 ? 'F' : null,
      approval: rank === 0 ? 'q7' : null, request: null, channel: null, call: rank === 0 ? EXAMPLE_CALL : null, question: null,
      actions: rank === 0 ? EXAMPLE_ACTIONS.approval : EXAMPLE_ACTIONS.review,
    })),
    queue: firstRun ? [] : EXAMPLE_QUEUE.map((row, index) => ({
      ...row, id: row.task, seq: 1, rank: index + 1, approvedBy: 'human:local', approvedAt: ago(300), since: ago(41), command: null, expectedSeconds: 70, actions: [],
    })),
    facts: [{
      id: 'frame', seq: SEQ, project: 'tally', firstRun, running: !firstRun, wanted: !firstRun, workers: 12, working: 7, mainTests: null, tests: [],
      cost: { usd: 41.2, inputTokens: 9_100_000, outputTokens: 410_000, reservedUsd: 1.2, unpricedSteps: 0, estimatedSteps: 0, estimatedUsd: 0, setAsideUsd: 0 },
      machineUse: { processorPercent: 62, memoryUsedBytes: 9.1e9, memoryBytes: 32e9, diskFreeBytes: 214e9, diskBytes: 512e9 }, landedLastHour: 5, actions: [],
      fleet: firstRun ? { text: 'fleet is off', glyph: 'worker.idle' } : { text: 'fleet runs, 7 of 12 at work', glyph: 'worker.working' },
      main: { text: 'main green at', glyph: 'check', commit: '31ed415' },
      money: { text: firstRun ? 'today $0.00' : 'today $4.12', spent: firstRun ? 0 : 4.12, reserved: firstRun ? 0 : 1.2, cap: 20 },
      machine: 'processor 62 % · memory 9.1 of 32 GB · disk 214 GB free',
    }],
  };
}
