/** Everything that can be done now. Each screen registers its actions while it is shown; keys, palette and help read them here. */
import { useEffect, useSyncExternalStore } from 'react';
import { useStore } from '../store/store';
import { actionsOn } from '../store/connection';

export interface Action {
  /** As in the table of keys, if it has a key there. */
  id: string;
  /** What the palette shows. */
  label: string;
  /** Head of its group in the palette: `On ta-1`, `Go to`, `This view`. Groups come in the order in which they were registered last. */
  group: string;
  glyph?: string | undefined;
  /** A few words beside the label: what it asks for, or what it saves. */
  hint?: string | undefined;
  /** It changes something, so it is off unless the page is live. */
  acts?: boolean | undefined;
  /** Why a rule forbids it. It is listed all the same. */
  off?: string | null | undefined;
  run: () => void;
}

let registrations: { actions: readonly Action[] }[] = [];
let all: readonly Action[] = [];
const listeners = new Set<() => void>();

function changed(): void {
  // What was registered last is nearest to what is focused.
  all = registrations.flatMap((each) => each.actions);
  for (const listener of listeners) listener();
}

export function register(actions: readonly Action[]): () => void {
  const registration = { actions };
  registrations = [registration, ...registrations];
  changed();
  return () => {
    registrations = registrations.filter((each) => each !== registration);
    changed();
  };
}

/** Registers actions for as long as the component is shown. Build the list with `useMemo`: a new list registers again. */
export function useActions(actions: readonly Action[]): void {
  useEffect(() => register(actions), [actions]);
}

export function currentActions(): readonly Action[] {
  return all;
}

export function useAllActions(): readonly Action[] {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, currentActions);
}

/** Why an action cannot be done now; null if it can. */
export function whyOff(action: Action, live = actionsOn(useStore.getState().connection)): string | null {
  return action.off ?? (action.acts && !live ? 'The page is not live: actions are off until it is.' : null);
}

/** Does it, unless it is off. Returns the reason if it is. */
export function perform(id: string): string | null | undefined {
  const action = all.find((each) => each.id === id);
  if (!action) return undefined;
  const why = whyOff(action);
  if (why === null) action.run();
  return why;
}
