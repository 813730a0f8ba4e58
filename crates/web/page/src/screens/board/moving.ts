/** The mode in which a card is moved: picked up, led over the targets, dropped or put back. Pure: `step` returns what to say and to do. */
import type { Move, Terms } from '../../api/view';

export interface Target {
  status: string;
  label: string;
  allowed: boolean;
  /** The words of the rule, or what the move asks for. */
  words: string;
}

export interface Moving {
  task: string;
  title: string;
  from: string;
  fromLabel: string;
  by: 'keys' | 'pointer';
  /** Every other status, in the order of the columns. */
  targets: readonly Target[];
  /** How many of them stand before the column that it came from. */
  home: number;
  /** Where it is held now; null: over the column that it came from, or over none. */
  at: string | null;
}

export type Event =
  | { kind: 'pick'; task: string; title: string; from: string; by: Moving['by']; terms: Pick<Terms, 'statuses' | 'moves'> }
  | { kind: 'walk'; by: 1 | -1 }
  | { kind: 'over'; status: string | null }
  | { kind: 'drop' }
  | { kind: 'cancel' }
  /** The row of the task has this status now. */
  | { kind: 'row'; status: string | null; label: string };

export interface Step {
  moving: Moving | null;
  /** What a screen reader is told. */
  say?: string;
  /** The move to request. */
  move?: { task: string; from: string; to: string };
  /** A rule of the terms forbids it: nothing is requested. */
  refused?: { task: string; from: string; to: string; words: string };
  /** Somebody else moved the card that was in the hand. */
  taken?: { task: string; label: string };
}

export function targetsOf(terms: Pick<Terms, 'statuses' | 'moves'>, from: string): Target[] {
  return terms.statuses.filter(({ id }) => id !== from).map(({ id, label }) => {
    const move = moveOf(terms, from, id);
    return { status: id, label, allowed: move?.allowed ?? false, words: move?.words ?? '' };
  });
}

export function moveOf(terms: Pick<Terms, 'moves'>, from: string, to: string): Move | undefined {
  return terms.moves.find((move) => move.from === from && move.to === to);
}

export function allowed(moving: Moving): Target[] {
  return moving.targets.filter((target) => target.allowed);
}

export function step(moving: Moving | null, event: Event): Step {
  if (event.kind === 'pick') return pick(event);
  if (!moving) return { moving };
  switch (event.kind) {
    case 'walk':
      return walk(moving, event.by);
    case 'over':
      return { moving: moving.at === event.status ? moving : { ...moving, at: event.status === moving.from ? null : event.status } };
    case 'drop':
      return drop(moving);
    case 'cancel':
      return { moving: null, say: `${moving.task} is back in ${moving.fromLabel}.` };
    case 'row':
      return event.status === moving.from ? { moving } : { moving: null, taken: { task: moving.task, label: event.label } };
  }
}

/** Where it is held, in words: `Review, 1 of 4 targets. Asks for: Result.` */
export function place(moving: Moving): string {
  const ways = allowed(moving);
  const target = moving.targets.find((each) => each.status === moving.at);
  if (!target) return `${moving.fromLabel}, where it was. ${count(ways.length)}.`;
  if (!target.allowed) return `${target.label}: ${target.words}`;
  return `${target.label}, ${ways.indexOf(target) + 1} of ${count(ways.length)}. ${target.words}`.trimEnd();
}

function pick(event: Extract<Event, { kind: 'pick' }>): Step {
  const { task, title, from, by, terms } = event;
  const fromLabel = terms.statuses.find((status) => status.id === from)?.label ?? from;
  const home = Math.max(0, terms.statuses.findIndex((status) => status.id === from));
  const moving: Moving = { task, title, from, fromLabel, by, targets: targetsOf(terms, from), home, at: null };
  const ways = allowed(moving).length;
  if (ways === 0 && by === 'keys') {
    const words = [...new Set(moving.targets.map((target) => target.words))];
    return { moving: null, say: `${task} cannot be moved. ${words.length === 1 ? words[0] : `No move leads out of ${fromLabel}.`}` };
  }
  return { moving, say: `${task} ${title} is in your hand. ${count(ways)}.` };
}

/** Only allowed targets and the place where it was are stops; the walk goes around. */
function walk(moving: Moving, by: 1 | -1): Step {
  const stops: (string | null)[] = allowed(moving).map((target) => target.status);
  stops.splice(moving.targets.slice(0, moving.home).filter((target) => target.allowed).length, 0, null);
  const at = stops[(stops.indexOf(moving.at) + by + stops.length) % stops.length] ?? null;
  const next = { ...moving, at };
  return { moving: next, say: place(next) };
}

function drop(moving: Moving): Step {
  const { task, from, at } = moving;
  const target = moving.targets.find((each) => each.status === at);
  if (!target) return step(moving, { kind: 'cancel' });
  if (!target.allowed) return { moving: null, refused: { task, from, to: target.status, words: target.words } };
  return { moving: null, move: { task, from, to: target.status } };
}

function count(targets: number): string {
  return targets === 1 ? '1 target' : `${targets} targets`;
}
