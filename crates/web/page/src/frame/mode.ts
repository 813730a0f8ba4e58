/** A mode that a view is in, such as moving a card: the foot says it instead of the facts. */
import { useEffect, useSyncExternalStore, type ReactNode } from 'react';

let mode: ReactNode = null;
const listeners = new Set<() => void>();

function set(next: ReactNode): void {
  mode = next;
  for (const listener of listeners) listener();
}

export function useMode(): ReactNode {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, () => mode);
}

/** Says a mode for as long as the component is shown with one. */
export function useSetMode(next: ReactNode): void {
  useEffect(() => {
    set(next);
    return () => set(null);
  }, [next]);
}
