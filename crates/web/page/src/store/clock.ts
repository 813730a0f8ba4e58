/**
 * The one clock of the page. It shows the server's time, so that ages are right on a machine whose own clock is wrong, and it
 * stands still while the data is stale. Everything that ticks subscribes here: there is one timer.
 */
import { useSyncExternalStore } from 'react';

let offset = 0;
let stoppedAt: number | null = null;
let timer: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<() => void>();

/** Milliseconds, by the server's clock; the moment of the last byte while the data is stale. */
export function serverNow(): number {
  return stoppedAt ?? Date.now() + offset;
}

/** The server said that it is `serverTime` now. A difference below half a second is the way of the message, not of the clocks. */
export function setServerTime(serverTime: number, receivedAt: number): void {
  const next = serverTime - receivedAt;
  if (Number.isFinite(next) && Math.abs(next - offset) > 500) offset = next;
}

/** Stands still at a moment of this machine's clock; null lets it go on. */
export function stopClock(at: number | null): void {
  const next = at === null ? null : at + offset;
  if (next === stoppedAt) return;
  stoppedAt = next;
  for (const listener of listeners) listener();
}

/** Called once a second, and when the clock stops or goes on. */
export function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => listeners.forEach((each) => each()), 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** A text that depends on the time. The component renders again only if the text changes. */
export function useClockText(text: (now: number) => string): string {
  return useSyncExternalStore(subscribe, () => text(serverNow()));
}

/** The same by this machine's clock, which never stops: for the connection itself. */
export function useRealClockText(text: (now: number) => string): string {
  return useSyncExternalStore(subscribe, () => text(Date.now()));
}
