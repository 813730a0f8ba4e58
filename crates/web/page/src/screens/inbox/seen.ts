/** Which rows were looked at: kept in this browser, by id, for as long as they wait. */
import { useSyncExternalStore } from 'react';
import { base } from '../../api/base';

const STORED = `adj-inbox-seen${base}`;

/** Ids of rows that still wait; the oldest first. */
export function withSeen(seen: readonly string[], id: string, waiting: (id: string) => boolean): readonly string[] {
  return seen.includes(id) ? seen : [...seen.filter(waiting), id];
}

let seen: readonly string[] = load();
const listeners = new Set<() => void>();

function load(): readonly string[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(STORED) ?? '[]');
    return Array.isArray(stored) ? stored.filter((id): id is string => typeof id === 'string') : [];
  } catch {
    return [];
  }
}

export function markSeen(id: string, waiting: (id: string) => boolean): void {
  const after = withSeen(seen, id, waiting);
  if (after === seen) return;
  seen = after;
  try {
    localStorage.setItem(STORED, JSON.stringify(seen));
  } catch {
    // It is kept until the page is closed.
  }
  for (const listener of listeners) listener();
}

export function useSeen(id: string): boolean {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, () => seen.includes(id));
}
