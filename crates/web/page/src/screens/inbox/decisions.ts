/**
 * Decisions of this page that wait until they take effect, and what became of them. Pure: hold.ts keeps the time and sends.
 *
 * Invariant: a decision is sent only while its row is in the view and asks the same question as when it was decided.
 */

export const HOLD_MS = 5000;

export interface Sending {
  /** Where the project of the row is served: empty, or `/p/NAME`. */
  base: string;
  method: string;
  path: string;
  body: Record<string, unknown>;
}

/**
 * `held`: it can be undone. `sending`: the request is under way. `sent`: the server took it; its row leaves with the next records.
 * `refused`, `changed`, `unsent`: nothing happened, and the row waits again. `still`: the server took it, and the row waits all the
 * same. `moot`: its row left before it was sent.
 */
export type State = 'held' | 'sending' | 'sent' | 'refused' | 'changed' | 'unsent' | 'still' | 'moot';

export interface Decision {
  /** The row. */
  id: string;
  /** Decisions that were made together, and are undone together. */
  group: number;
  /** What was chosen: the word on its button. */
  label: string;
  /** What it was about. */
  text: string;
  mark: string;
  sending: Sending;
  dueAt: number;
  state: State;
  /** Why, where it did not take effect. */
  note: string;
}

export type Draft = Pick<Decision, 'id' | 'label' | 'text' | 'mark' | 'sending'>;

export type DecisionEvent =
  | { type: 'decide'; drafts: readonly Draft[]; at: number }
  | { type: 'undo'; group: number }
  /** The view has changed. `mark` is that of a row, or null if it is gone. */
  | { type: 'view'; mark: (id: string) => string | null }
  | { type: 'start'; group: number }
  | { type: 'answer'; id: string; group: number; refused: string | null }
  /** Time enough has passed for the view to show what became of it. `waits`: its row is still there. */
  | { type: 'overdue'; id: string; group: number; waits: boolean }
  | { type: 'lost' }
  | { type: 'forget'; id: string; group: number };

export type Decisions = readonly Decision[];

export function decide(list: Decisions, event: DecisionEvent): Decisions {
  switch (event.type) {
    case 'decide': {
      const group = Math.max(0, ...list.map((each) => each.group)) + 1;
      const ids = event.drafts.map((draft) => draft.id);
      // An older result of the same row says nothing any more.
      const others = list.filter((each) => hides(each) || !ids.includes(each.id));
      const fresh = event.drafts.filter((draft) => !others.some((each) => each.id === draft.id));
      return [...others, ...fresh.map((draft): Decision => ({ ...draft, group, dueAt: event.at + HOLD_MS, state: 'held', note: '' }))];
    }
    case 'undo':
      return list.filter((each) => !(each.group === event.group && each.state === 'held'));
    case 'view':
      return changed(list, list.flatMap((each) => {
        const after = seen(each, event.mark(each.id));
        return after ? [after] : [];
      }));
    case 'start':
      return list.map((each) => (each.group === event.group && each.state === 'held' ? { ...each, state: 'sending' } : each));
    case 'answer':
      return list.map((each) => {
        if (each.id !== event.id || each.group !== event.group) return each;
        return event.refused === null ? { ...each, state: 'sent' } : { ...each, state: 'refused', note: event.refused };
      });
    case 'overdue':
      return list.map((each) => {
        if (each.id !== event.id || each.group !== event.group || each.state !== 'sent' || !event.waits) return each;
        return { ...each, state: 'still', note: 'The server took it, and this waits all the same.' };
      });
    case 'lost':
      return changed(list, list.map((each) => (each.state === 'held' ? { ...each, state: 'unsent', note: 'The connection was lost before it was sent.' } : each)));
    case 'forget':
      return list.filter((each) => each.id !== event.id || each.group !== event.group);
  }
}

function seen(each: Decision, mark: string | null): Decision | null {
  if (each.state === 'held' && mark === null) return { ...each, state: 'moot', note: 'It was decided elsewhere, or needs no answer any more. Nothing was sent.' };
  if (each.state === 'held' && mark !== each.mark) return { ...each, state: 'changed', note: 'What is asked has changed. Nothing was sent.' };
  // The server took it, and the row asks something else now.
  if (each.state === 'sent' && mark !== null && mark !== each.mark) return null;
  // What did not take effect is said for as long as the row waits.
  if (returned(each) && mark === null) return null;
  return each;
}

function changed(before: Decisions, after: Decision[]): Decisions {
  return before.length === after.length && before.every((each, index) => each === after[index]) ? before : after;
}

/** The row of such a decision is not in the list: it is under "Just decided". */
export function hides(decision: Decision): boolean {
  return decision.state === 'held' || decision.state === 'sending' || decision.state === 'sent';
}

/** Its row is back in the list, with a note. */
export function returned({ state }: Decision): boolean {
  return state === 'refused' || state === 'changed' || state === 'unsent' || state === 'still';
}

/** The decision that Undo takes back: the last one that is held. */
export function lastHeld(list: Decisions): Decision | null {
  return list.filter((each) => each.state === 'held').at(-1) ?? null;
}

/** When the next one takes effect; null if none is held. */
export function nextDue(list: Decisions): number | null {
  const due = list.filter((each) => each.state === 'held').map((each) => each.dueAt);
  return due.length > 0 ? Math.min(...due) : null;
}

/** The groups whose time is up. */
export function dueGroups(list: Decisions, now: number): number[] {
  return [...new Set(list.filter((each) => each.state === 'held' && each.dueAt <= now).map((each) => each.group))];
}
