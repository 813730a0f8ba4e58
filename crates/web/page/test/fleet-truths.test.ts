import { describe, expect, test } from 'vitest';
import type { components } from '../src/api/types';
import type { QueueRow, TaskRow, Terms, WorkerRow } from '../src/api/view';
import { truthsOf, type Known } from '../src/screens/fleet/truths';
import { nextWaiting, stepFrom } from '../src/screens/fleet/use-order';

type Schemas = components['schemas'];

const row = { id: 'A', seq: 9, name: 'A', state: 'working', attention: 'work', text: 'Edit', tone: '', activity: { state: 'step' }, task: 'ta-1', run: 'ta-1.1', turn: 7, maxTurns: 50, since: '2026-11-18T10:00:00Z' } as WorkerRow;
const run = { id: 'ta-1.1', task: 'ta-1', state: 'running', suspended: false, pauseReason: null, lastError: null, meta: { hasActiveTask: true } } as Schemas['Run'];
const task = { id: 'ta-1', status: 'IN_PROGRESS', lease: { worker: 'A' }, branch: 'agent/A-ta-1', tip: '31ed415a0' } as unknown as Schemas['Task'];
const taskRow = { id: 'ta-1', status: 'IN_PROGRESS', since: '2026-11-18T10:00:00Z' } as TaskRow;
const terms = {
  statuses: [{ id: 'IN_PROGRESS', label: 'In progress', final: false }, { id: 'DONE', label: 'Done', final: true }],
  workerStates: [{ id: 'working', label: 'Working', glyph: '' }], queueSteps: [{ id: 'testing', label: 'Testing', glyph: 'clock' }],
} as unknown as Terms;
const known: Known = { row, fleetRuns: true, fleetWanted: true, worker: null, run, task, taskRow, queueRow: null, terms, comparable: true };
const of = (changes: Partial<Known>) => truthsOf({ ...known, ...changes });
const wrong = (changes: Partial<Known>) => of(changes).truths.filter((truth) => truth.wrong).map((truth) => truth.what);

describe('four truths', () => {
  test('that agree are told with their evidence, and nothing is marked', () => {
    const { truths, contradictions } = of({});
    expect(contradictions).toEqual([]);
    expect(truths.map(({ what, state, evidence }) => [what, state, evidence])).toEqual([
      ['process', 'working', 'Edit'],
      ['run', 'running', 'ta-1.1, turn 7 of 50'],
      ['task', 'In progress', 'ta-1; lease of A; branch agent/A-ta-1'],
      ['landing', 'not offered', 'its branch is at 31ed415'],
    ]);
    expect(truths.some((truth) => truth.wrong)).toBe(false);
  });

  test('a worker at work whose run is over contradicts it', () => {
    const over = { ...run, state: 'completed', meta: { ...run.meta, hasActiveTask: false } };
    expect(wrong({ run: over })).toEqual(['process', 'run']);
    expect(of({ run: over }).contradictions).toEqual(['A is at work, but its run ta-1.1 is completed.']);
  });

  test('a lease of somebody else, or of nobody, contradicts the process', () => {
    expect(of({ task: { ...task, lease: { worker: 'B' } } }).contradictions).toEqual(["A has ta-1, but its lease is B's."]);
    expect(of({ task: { ...task, lease: null } as unknown as Schemas['Task'] }).contradictions).toEqual(['A is at work on ta-1, but nobody has its lease.']);
  });

  test('a caller that is not told the lease is told nothing wrong', () => {
    const { lease: _, ...without } = task;
    expect(of({ task: without as Schemas['Task'] }).contradictions).toEqual([]);
  });

  test('a task that is done and worked on, or on main and not done, is marked', () => {
    expect(wrong({ taskRow: { ...taskRow, status: 'DONE' } })).toEqual(['process', 'task']);
    const landed = { ...task, landed: { tip: '31ed415a0', merge: '8b8dd330ea', oldMain: 'a2' } } as Schemas['Task'];
    expect(wrong({ task: landed })).toEqual(['task', 'landing']);
    expect(of({ task: landed }).truths[3]).toMatchObject({ state: 'on main', evidence: 'merge 8b8dd33 of 31ed415' });
  });

  test('work of a fleet whose process is gone is marked; one that was stopped goes on from there', () => {
    expect(wrong({ fleetRuns: false })).toEqual(['process']);
    expect(of({ fleetRuns: false, fleetWanted: false })).toMatchObject({ contradictions: [], truths: [{ state: 'none', evidence: 'no fleet runs; last: Edit' }, {}, {}, {}] });
  });

  test('answers that may be newer than the rows are not compared with them', () => {
    expect(of({ comparable: false, task: { ...task, lease: { worker: 'B' } } }).contradictions).toEqual([]);
  });

  test('a worker without a task has no run, no task and no landing', () => {
    const idle = { ...row, state: 'idle', activity: { state: 'idle' }, task: null, run: null, text: '' } as WorkerRow;
    expect(of({ row: idle, run: null, task: null, taskRow: null }).truths.map((truth) => truth.state)).toEqual(['idle', 'none', 'none', 'none']);
  });

  test('a place in the queue is where its landing is', () => {
    const queueRow = { id: 'ta-1', task: 'ta-1', state: 'testing', rank: 3, text: 'testing 0:41 of about 1:10', since: null } as unknown as QueueRow;
    expect(of({ queueRow, row: { ...row, activity: { state: 'idle' } } }).truths[3]).toMatchObject({ state: 'testing', evidence: 'place 3: testing 0:41 of about 1:10', glyph: 'clock' });
  });
});

describe('the order of workers', () => {
  const order = ['F', 'H', 'D', 'A'];
  const waits = (id: string) => id === 'F' || id === 'D';

  test('the next that waits is the one after this one, round and round', () => {
    expect(nextWaiting(order, null, waits)).toBe('F');
    expect(nextWaiting(order, 'F', waits)).toBe('D');
    expect(nextWaiting(order, 'D', waits)).toBe('F');
    expect(nextWaiting(order, 'A', () => false)).toBeNull();
  });

  test('next and previous stop at the ends', () => {
    expect(stepFrom(order, null, 1)).toBe('F');
    expect(stepFrom(order, 'A', 1)).toBe('A');
    expect(stepFrom(order, 'F', -1)).toBe('F');
    expect(stepFrom(order, 'F', 1)).toBe('H');
  });
});
