/** What people said to the agent of a task, with what became of it, from the records of the task. */
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useActionsOn, useStore } from '../../store/store';
import type { MessageRow } from './fold';
import { Latest } from './latest';
import { messagesOf, unsettled, type Record } from './receipts';
import { ask } from './requests';

const NONE: readonly MessageRow[] = [];
const PAGE = 1000;

/** By task: what was said about the task before stays in the transcript when the worker has another one. */
type Held = ReadonlyMap<string, readonly MessageRow[]>;

/**
 * `said`: how many comments the task has, so that those of others are read, too. `seq`: of the worker's row.
 * Whether a message was given to the program is known a moment after it was sent, and changes no row: until then each new record
 * of the log is a reason to look. After that it is a change of the worker, as long as something may still become of one.
 */
export function useMessages(task: string | null, said: number, seq: number): { messages: readonly MessageRow[]; look: () => void } {
  const live = useActionsOn();
  const [held, setHeld] = useState<Held>(new Map());
  const [looked, setLooked] = useState(0);
  const messages = useMemo(() => [...held.values()].flat(), [held]);
  const current = (task !== null && held.get(task)) || NONE;
  const sent = current.some((message) => message.receipt.state === 'queued' && message.receipt.words === 'sent');
  const logSeq = useStore((state) => (sent ? state.connection.seq : null));
  const rowSeq = unsettled(current) ? seq : null;

  const reader = useRef<Latest | null>(null);
  useEffect(() => {
    if (task === null) return;
    const records: Record[] = [];
    const latest = new Latest(async (signal) => {
      const fresh = await readRecords(task, records[records.length - 1]?.seq ?? 0, signal);
      if (signal.aborted || fresh === null) return;
      for (const record of fresh) records.push(record);
      if (fresh.length > 0) setHeld((before) => new Map(before).set(task, messagesOf(records)));
    });
    reader.current = latest;
    return () => latest.stop();
  }, [task]);
  useEffect(() => {
    if (live && said + looked > 0) reader.current?.ask();
  }, [task, live, said, looked, logSeq, rowSeq]);
  return { messages, look: useCallback(() => setLooked((count) => count + 1), []) };
}

async function readRecords(task: string, after: number, signal: AbortSignal): Promise<Record[] | null> {
  const found: Record[] = [];
  let from = String(after);
  for (;;) {
    const answer = await ask('get', '/tasks/{task}/history', { path: { task }, query: { all: true, after: from, limit: PAGE }, signal });
    if (!answer.ok || signal.aborted) return null;
    for (const item of answer.value.items) if ('seq' in item) found.push(item);
    if (answer.value.next === null) return found;
    from = answer.value.next;
  }
}
