/**
 * Four truths about a worker: its process, its run, its task, and where its work is on the way to main. Each is told by another
 * part of the system, with its evidence; if two cannot both be true, both are marked and a sentence says why. Pure.
 */
import type { components } from '../../api/types';
import type { QueueRow, TaskRow, Terms, WorkerRow } from '../../api/view';

type Schemas = components['schemas'];

export interface Known {
  row: WorkerRow;
  /** The fleet's process lives. */
  fleetRuns: boolean;
  /** It was started and not stopped. */
  fleetWanted: boolean;
  /** What was asked for beside the rows; null: not known yet, or there is none. */
  worker: Schemas['Worker'] | null;
  run: Schemas['Run'] | null;
  task: Schemas['Task'] | null;
  taskRow: TaskRow | null;
  queueRow: QueueRow | null;
  terms: Terms | null;
  /** The rows are not older than what was asked for, and the other way round: only then the two can be compared. */
  comparable: boolean;
}

export type What = 'process' | 'run' | 'task' | 'landing';

export interface Truth {
  what: What;
  label: string;
  glyph: string;
  state: string;
  evidence: string;
  /** Who told it; the time follows. */
  source: string;
  at: string | null;
  wrong: boolean;
}

export interface Truths {
  truths: Truth[];
  contradictions: string[];
}

export function truthsOf(known: Known): Truths {
  const found = contradictionsOf(known);
  const wrong = new Set(found.flatMap((each) => each.between));
  const truths = [processOf(known), runOf(known), taskOf(known), landingOf(known)].map((truth) => ({ ...truth, wrong: wrong.has(truth.what) }));
  return { truths, contradictions: found.map((each) => each.text) };
}

type Plain = Omit<Truth, 'wrong'>;

function processOf({ row, worker, fleetRuns, terms }: Known): Plain {
  const label = terms?.workerStates.find((term) => term.id === row.state)?.label ?? row.state;
  const last = worker?.lastAction ?? row.text;
  if (!fleetRuns) {
    return { what: 'process', label: 'Process', glyph: 'worker.idle', state: 'none', evidence: ['no fleet runs', last && `last: ${last}`].filter(Boolean).join('; '), source: 'since', at: row.since };
  }
  const evidence = last;
  return {
    what: 'process', label: 'Process', glyph: `worker.${row.state}`, state: label.toLowerCase(), evidence: evidence || 'has nothing to do',
    source: worker?.session ? `session ${worker.session.slice(0, 8)}, since` : 'since', at: row.since,
  };
}

function runOf({ row, run, worker }: Known): Plain {
  const base = { what: 'run' as const, label: 'Run' };
  if (row.run === null) return { ...base, glyph: 'run.idle', state: 'none', evidence: 'it has no task', source: '', at: null };
  const turns = row.turn !== null && row.maxTurns !== null ? `, turn ${row.turn} of ${row.maxTurns}` : '';
  const state = run?.suspended ? 'suspended' : run?.state ?? 'not known yet';
  const why = run?.pauseReason ? `, ${run.pauseReason.replaceAll('_', ' ')}` : '';
  const failed = run?.lastError ? `; last error: ${run.lastError.message}` : '';
  return {
    ...base, glyph: run ? `run.${state}` : 'run.idle', state, evidence: `${row.run}${turns}${why}${failed}`,
    source: worker?.lastStepAt ? 'last step ended' : worker?.taskAssignedAt ? 'no step has ended yet; its task was given' : '', at: worker?.lastStepAt ?? worker?.taskAssignedAt ?? null,
  };
}

function taskOf({ row, task, taskRow, terms }: Known): Plain {
  const base = { what: 'task' as const, label: 'Task' };
  if (row.task === null) return { ...base, glyph: 'run.idle', state: 'none', evidence: 'no task is given to it', source: '', at: null };
  const status = taskRow?.status ?? task?.status;
  const label = terms?.statuses.find((each) => each.id === status)?.label ?? status ?? 'not known yet';
  const lease = task?.lease ? `lease of ${holder(task.lease)}` : task?.lease === null ? 'no lease' : '';
  const branch = task?.branch ? `branch ${task.branch}` : '';
  return {
    ...base, glyph: status ? `task.${status}` : 'task.INBOX', state: label, evidence: [row.task, lease, branch].filter(Boolean).join('; '),
    source: 'in this status since', at: taskRow?.since ?? null,
  };
}

function landingOf({ row, task, queueRow, terms }: Known): Plain {
  const base = { what: 'landing' as const, label: 'Landing' };
  if (row.task === null) return { ...base, glyph: 'run.idle', state: 'none', evidence: 'nothing to land', source: '', at: null };
  if (task?.landed) {
    return { ...base, glyph: 'check', state: 'on main', evidence: `merge ${task.landed.merge.slice(0, 7)} of ${task.landed.tip.slice(0, 7)}`, source: '', at: null };
  }
  if (queueRow) {
    const step = terms?.queueSteps.find((term) => term.id === queueRow.state);
    return { ...base, glyph: step?.glyph ?? 'queue', state: (step?.label ?? queueRow.state).toLowerCase(), evidence: `place ${queueRow.rank}: ${queueRow.text}`, source: 'since', at: queueRow.since };
  }
  const tip = task?.tip ? `its branch is at ${task.tip.slice(0, 7)}` : task ? 'nothing is committed yet' : 'not in the queue';
  const approved = task?.approved;
  return approved
    ? { ...base, glyph: 'queue', state: 'approved', evidence: tip, source: `by ${approved.by},`, at: approved.at }
    : { ...base, glyph: 'run.idle', state: task ? 'not offered' : 'not known yet', evidence: tip, source: '', at: null };
}

function holder(lease: Schemas['Holder']): string {
  return 'worker' in lease ? lease.worker : lease.agent;
}

interface Contradiction {
  between: What[];
  text: string;
}

/** What an API says is compared with what it says elsewhere; no rule of the machines is repeated here. */
function contradictionsOf({ row, fleetRuns, fleetWanted, run, task, taskRow, queueRow, terms, comparable }: Known): Contradiction[] {
  const found: Contradiction[] = [];
  const say = (between: What[], text: string) => found.push({ between, text });
  const atWork = row.activity.state === 'step' || row.activity.state === 'tests';
  const final = (id: string | undefined) => terms?.statuses.find((status) => status.id === id)?.final === true;
  const label = (id: string | undefined) => terms?.statuses.find((status) => status.id === id)?.label ?? id ?? '';
  // These are rows of the same moment. A fleet that was stopped goes on from there: that is no contradiction.
  if (atWork && fleetWanted && !fleetRuns) say(['process'], `${row.name} is said to be at work, but the fleet's process is gone.`);
  if (row.task !== null && atWork && final(taskRow?.status)) say(['process', 'task'], `${row.name} is at work on ${row.task}, but ${row.task} is ${label(taskRow?.status)}.`);
  if (queueRow && final(taskRow?.status)) say(['task', 'landing'], `${queueRow.task} is in the queue, but it is ${label(taskRow?.status)}.`);
  if (!comparable) return found;
  if (run && run.id === row.run) {
    if (row.activity.state === 'step' && !run.meta.hasActiveTask) say(['process', 'run'], `${row.name} is at work, but its run ${run.id} is ${run.state}.`);
    if (row.task !== null && run.task !== row.task) say(['run', 'task'], `${row.name} has ${row.task}, but its run ${run.id} is of ${run.task}.`);
  }
  if (task && task.id === row.task) {
    // Absent: this caller is not told.
    const { lease } = task;
    if (lease === null && row.activity.state === 'step') say(['process', 'task'], `${row.name} is at work on ${task.id}, but nobody has its lease.`);
    else if (lease && holder(lease) !== row.name) say(['process', 'task'], `${row.name} has ${task.id}, but its lease is ${holder(lease)}'s.`);
    if (task.landed && taskRow && !final(taskRow.status)) say(['task', 'landing'], `${task.id} is on main, but it is ${label(taskRow.status)}.`);
  }
  return found;
}
