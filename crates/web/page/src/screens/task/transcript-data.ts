/** The entries of a transcript, from the beginning, and what is added to it. */
import { useEffect, useRef, useState } from 'react';
import { useActionsOn } from '../../store/store';
import { ask, part } from './ask';
import type { Entry, Transcript } from './types';

interface Entries {
  entries: readonly Entry[];
  problem: string | null;
  /** Nobody is at work, so nothing follows. */
  resting: boolean;
  /** Everything that there is has been loaded. */
  whole: boolean;
}

/** An answer of a waiting request that comes sooner than this and has nothing was not waited for: asking again would be polling. */
const WAITED_MS = 1000;

export function useEntries(task: string, version: string): Entries {
  const [state, setState] = useState<Entries>({ entries: [], problem: null, resting: true, whole: false });
  const live = useActionsOn();
  const cursor = useRef('0');
  useEffect(() => {
    if (!live) return;
    const abort = new AbortController();
    const load = async () => {
      let wait = false;
      // Only what is new is fetched.
      let after = cursor.current;
      for (;;) {
        const asked = performance.now();
        const answer = await ask<Transcript>('get', `/tasks/${part(task)}/transcript?limit=1000&after=${after}${wait ? '&wait=true' : ''}`, undefined, abort.signal);
        if (abort.signal.aborted) return;
        if (!answer.ok) {
          if (answer.problem.status !== 0) setState((before) => ({ ...before, problem: answer.problem.detail }));
          return;
        }
        const { items, more, next, resting } = answer.value;
        setState((before) => ({ entries: items.length > 0 ? [...before.entries, ...items] : before.entries, problem: null, resting, whole: !more }));
        after = next ?? after;
        cursor.current = after;
        if (more) continue;
        if (resting || (wait && items.length === 0 && performance.now() - asked < WAITED_MS)) return;
        wait = true;
      }
    };
    void load();
    return () => abort.abort();
  }, [task, version, live]);
  return state;
}
