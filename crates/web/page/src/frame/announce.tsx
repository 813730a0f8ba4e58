/** What a screen reader is told: the result of a move, a refusal, a change of the connection. One region for the whole page. */
import { useSyncExternalStore } from 'react';

let said = { text: '', count: 0 };
const listeners = new Set<() => void>();

export function announce(text: string): void {
  said = { text, count: said.count + 1 };
  for (const listener of listeners) listener();
}

export function Announcer() {
  const { text, count } = useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, () => said);
  // The same words twice in a row are only read again if the element is new.
  return <div className="hide" aria-live="assertive" role="status"><span key={count}>{text}</span></div>;
}
