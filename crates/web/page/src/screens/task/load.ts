/** Data that is fetched for what is on screen, and again when its row changed. */
import { useCallback, useEffect, useRef, useState } from 'react';
import type { Answer, Problem } from '../../api/client';
import { useActionsOn } from '../../store/store';

export interface Loaded<T> {
  /** The last answer; it stays while a newer one is fetched. */
  value: T | null;
  problem: Problem | null;
  reload: () => void;
}

/**
 * Fetches while `active`, and again when `version` changes. One request at a time: a change that comes meanwhile is fetched
 * after it, so that a busy task does not pile up requests. A failed one is tried again when the page is live again.
 */
export function useLoaded<T>(active: boolean, version: string | number, load: (signal: AbortSignal) => Promise<Answer<T>>): Loaded<T> {
  const [state, setState] = useState<{ value: T | null; problem: Problem | null }>({ value: null, problem: null });
  const live = useActionsOn();
  const latest = useRef(load);
  latest.current = load;
  const abort = useRef<AbortController | null>(null);
  const again = useRef(false);
  const fetched = useRef<string | number | null>(null);

  const run = useCallback(() => {
    if (abort.current) {
      again.current = true;
      return;
    }
    const controller = new AbortController();
    abort.current = controller;
    void latest.current(controller.signal).then((answer) => {
      if (controller.signal.aborted) return;
      abort.current = null;
      // What is on screen stays if only the connection is gone.
      setState((before) => (answer.ok ? { value: answer.value, problem: null }
        : { value: answer.problem.status === 0 ? before.value : null, problem: answer.problem }));
      if (again.current) {
        again.current = false;
        run();
      }
    });
  }, []);

  useEffect(() => () => {
    abort.current?.abort();
    abort.current = null;
    fetched.current = null;
  }, []);

  const failed = state.problem?.status === 0;
  useEffect(() => {
    if (!active) return;
    const mark = `${version}`;
    if (fetched.current === mark && !(failed && live)) return;
    fetched.current = mark;
    run();
  }, [active, version, live, failed, run]);

  return { ...state, reload: run };
}
