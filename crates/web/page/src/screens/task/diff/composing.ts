/** The comment that is being written. One for each task, kept while the page is open: a change of tab or view loses nothing. */
import { useCallback, useState } from 'react';
import type { Place } from '../talk';

export interface Composing extends Place {
  text: string;
  /** The draft that it changes; null for a new one. */
  draft: string | null;
}

const unsaved = new Map<string, Composing>();

export function useComposing(task: string): [Composing | null, (next: Composing | null) => void] {
  const [composing, setComposing] = useState<Composing | null>(() => unsaved.get(task) ?? null);
  const set = useCallback((next: Composing | null) => {
    if (next) unsaved.set(task, next);
    else unsaved.delete(task);
    setComposing(next);
  }, [task]);
  return [composing, set];
}
