/** Keeps decisions until they take effect, sends them, and remembers what left by itself. It lives longer than the screen. */
import { useSyncExternalStore } from 'react';
import { useStore } from '../../store/store';
import { decide, dueGroups, hides, nextDue, type Decision, type DecisionEvent, type Decisions, type Draft } from './decisions';
import { markOf } from './rows';
import { deliver } from './send';

/** A row that left without a decision of this page. */
export interface Left {
  id: string;
  text: string;
}

interface Held {
  decisions: Decisions;
  left: readonly Left[];
}

/** So long a result stays in the list. */
const SHOWN_MS = 20_000;
/** The view follows an answer within a moment. A row that is still there after so long is shown again. */
const FOLLOWS_MS = 3000;

let held: Held = { decisions: [], left: [] };
let timer: ReturnType<typeof setTimeout> | undefined;
let known = new Map<string, string>();
let screens = 0;
const listeners = new Set<() => void>();
let onRefused: (refused: readonly Decision[], of: number) => void = () => undefined;

function set(next: Held): void {
  if (next.decisions === held.decisions && next.left === held.left) return;
  held = next;
  for (const listener of listeners) listener();
}

function apply(event: DecisionEvent): void {
  set({ ...held, decisions: decide(held.decisions, event) });
}

export function useHeld(): Held {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, () => held);
}

/** Takes effect in five seconds, unless it is undone. */
export function hold(drafts: readonly Draft[]): void {
  apply({ type: 'decide', drafts, at: Date.now() });
  plan();
}

/** Takes back the last decision, with all that were made together with it. Returns them. */
export function undo(group: number): readonly Decision[] {
  const back = held.decisions.filter((each) => each.group === group && each.state === 'held');
  apply({ type: 'undo', group });
  return back;
}

/** Sends at once what is held: the page is left or hidden, so nobody can undo it any more. */
export function sendNow(): void {
  if (useStore.getState().connection.phase !== 'live') return;
  for (const group of new Set(held.decisions.filter((each) => each.state === 'held').map((each) => each.group))) void send(group);
}

export function forget(decision: Decision): void {
  apply({ type: 'forget', id: decision.id, group: decision.group });
}

/** While the inbox is shown. `refused` is called for each group of which something was refused. */
export function watch(refused: (refused: readonly Decision[], of: number) => void): () => void {
  onRefused = refused;
  screens += 1;
  known = waiting();
  return () => {
    screens -= 1;
    sendNow();
    if (screens === 0) set({ ...held, left: [] });
  };
}

function waiting(): Map<string, string> {
  return new Map([...useStore.getState().rows.all('waiting')].map(([id, row]) => [id, row.text]));
}

async function send(group: number): Promise<void> {
  const batch = held.decisions.filter((each) => each.group === group && each.state === 'held');
  apply({ type: 'start', group });
  await Promise.all(batch.map(async (each) => {
    const refused = await deliver(each.sending);
    apply({ type: 'answer', id: each.id, group, refused });
    look();
    if (refused !== null) return;
    const waits = () => useStore.getState().rows.row('waiting', each.id) !== undefined;
    setTimeout(() => apply({ type: 'overdue', id: each.id, group, waits: waits() }), FOLLOWS_MS);
    setTimeout(() => forget(each), SHOWN_MS);
  }));
  const refused = held.decisions.filter((each) => each.group === group && each.state === 'refused');
  if (refused.length > 0) onRefused(refused, batch.length);
}

function plan(): void {
  clearTimeout(timer);
  const due = nextDue(held.decisions);
  if (due !== null) timer = setTimeout(settle, Math.max(0, due - Date.now()));
}

/** Sends what is due while the page is live. While it reconnects, decisions stay held; if the data is stale, they are given back. */
function settle(): void {
  const { phase } = useStore.getState().connection;
  if (phase === 'stale' || phase === 'signed-out') apply({ type: 'lost' });
  if (phase !== 'live') return;
  for (const group of dueGroups(held.decisions, Date.now())) void send(group);
  plan();
}

/** The view has changed: what was decided elsewhere is not sent, and what left by itself is named. */
function look(): void {
  const { rows } = useStore.getState();
  const mark = (id: string) => {
    const row = rows.row('waiting', id);
    return row ? markOf(row) : null;
  };
  const before = held.decisions;
  apply({ type: 'view', mark });
  for (const each of held.decisions) {
    if (each.state === 'moot' && before.some((old) => old.id === each.id && old.state === 'held')) setTimeout(() => forget(each), SHOWN_MS);
  }
  if (screens > 0) noteLeft();
}

function noteLeft(): void {
  const now = waiting();
  const mine = (id: string) => held.decisions.some((each) => each.id === id && (hides(each) || each.state === 'moot'));
  const left = [...known].filter(([id]) => !now.has(id) && !mine(id)).map(([id, text]): Left => ({ id, text }));
  known = now;
  const kept = held.left.filter((each) => !now.has(each.id));
  if (left.length === 0 && kept.length === held.left.length) return;
  set({ ...held, left: [...left, ...kept].slice(0, 5) });
  if (left.length > 0) setTimeout(() => set({ ...held, left: held.left.filter((each) => !left.includes(each)) }), SHOWN_MS);
}

if (typeof document !== 'undefined') {
  let version = -1;
  useStore.subscribe((state, before) => {
    if (state.version !== version) {
      version = state.version;
      look();
    }
    if (state.connection.phase !== before.connection.phase) settle();
  });
  window.addEventListener('pagehide', sendNow);
  document.addEventListener('visibilitychange', () => document.visibilityState === 'hidden' && sendNow());
}
