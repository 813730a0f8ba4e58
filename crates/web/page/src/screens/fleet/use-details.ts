/** What the rows do not have, asked for again when the row of the worker or of its task has grown, one request at a time. */
import { useEffect, useRef, useState } from 'react';
import type { components } from '../../api/types';
import type { WorkerRow } from '../../api/view';
import { useClockText } from '../../store/clock';
import { useActionsOn, useRow } from '../../store/store';
import { Latest } from './latest';
import { ask } from './requests';

type Schemas = components['schemas'];

export interface Details {
  worker: Schemas['Worker'] | null;
  run: Schemas['Run'] | null;
  task: Schemas['Task'] | null;
  why: Schemas['WorkerWhy'] | null;
}

const NOTHING: Details = { worker: null, run: null, task: null, why: null };
/** A change that the server made before it answered is in the rows by then: it sends a sign of life every three seconds. */
const SETTLED_MS = 3_000;

interface Held {
  of: string;
  /** The newest of both rows when it was asked for. */
  seq: number;
  at: number;
  details: Details;
}

export function useDetails(row: WorkerRow): { details: Details; comparable: boolean } {
  const taskSeq = useRow('tasks', row.task ?? '')?.seq ?? 0;
  const live = useActionsOn();
  const [held, setHeld] = useState<Held | null>(null);
  const seq = Math.max(row.seq, taskSeq);
  const wanted = useRef({ row, seq });
  wanted.current = { row, seq };

  const reader = useRef<Latest | null>(null);
  useEffect(() => {
    const latest = new Latest(async (signal) => {
      const { row: asked, seq: at } = wanted.current;
      const details = await read(asked, signal);
      if (!signal.aborted) setHeld({ of: asked.id, seq: at, at: Date.now(), details });
    });
    reader.current = latest;
    return () => latest.stop();
  }, [row.id]);
  useEffect(() => {
    if (live) reader.current?.ask();
  }, [row.id, seq, live]);

  const settled = useClockText(() => (held !== null && Date.now() - held.at >= SETTLED_MS ? 'yes' : ''));
  const mine = held?.of === row.id ? held : null;
  return { details: mine?.details ?? NOTHING, comparable: mine !== null && mine.seq === seq && live && settled !== '' };
}

async function read(row: WorkerRow, signal: AbortSignal): Promise<Details> {
  const [worker, why, run, task] = await Promise.all([
    ask('get', '/workers/{worker}', { path: { worker: row.id }, signal }),
    ask('get', '/workers/{worker}/why', { path: { worker: row.id }, signal }),
    row.run === null ? null : ask('get', '/runs/{run}', { path: { run: row.run }, signal }),
    row.task === null ? null : ask('get', '/tasks/{task}', { path: { task: row.task }, signal }),
  ]);
  return {
    worker: worker.ok ? worker.value : null, why: why.ok ? why.value : null,
    run: run?.ok ? run.value : null, task: task?.ok ? task.value : null,
  };
}

export interface Limits {
  task: number | null;
  run: number | null;
}

/** What may be spent, by the settings in force; they change only with the project's own records. */
export function useLimits(): Limits {
  const live = useActionsOn();
  const [limits, setLimits] = useState<Limits>({ task: null, run: null });
  useEffect(() => {
    if (!live) return;
    const abort = new AbortController();
    void ask('get', '/config', { signal: abort.signal }).then((answer) => {
      if (answer.ok && !abort.signal.aborted) setLimits(limitsOf(answer.value.settings));
    });
    return () => abort.abort();
  }, [live]);
  return limits;
}

/** Amounts of the settings are millionths of a dollar. */
function limitsOf(settings: unknown): Limits {
  const budget = (settings as { budget?: { task?: unknown; run?: unknown } } | null)?.budget;
  const dollars = (amount: unknown) => (typeof amount === 'number' ? amount / 1_000_000 : null);
  return { task: dollars(budget?.task), run: dollars(budget?.run) };
}
