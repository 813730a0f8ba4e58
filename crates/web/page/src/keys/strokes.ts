/** From key events to actions, by the table of keys. Pure: keys/dispatch.ts listens. */
import type { KeyTerm } from '../api/view';

export interface Pressed {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
  shiftKey: boolean;
}

const NAMES: Readonly<Record<string, string>> = { ' ': 'Space', ArrowUp: '↑', ArrowDown: '↓', ArrowLeft: '←', ArrowRight: '→', Escape: 'Esc' };

/** As the table writes it: `Ctrl+K`, `Shift+↓`, `J`, `?`. Ctrl and the command key of a Mac are one. Null for a modifier alone. */
export function strokeOf(event: Pressed): string | null {
  if (['Control', 'Meta', 'Alt', 'Shift', 'Dead', 'Process', 'Unidentified'].includes(event.key)) return null;
  const name = NAMES[event.key] ?? (event.key.length === 1 ? event.key.toUpperCase() : event.key);
  const letter = event.key.length === 1 && event.key.toLowerCase() !== event.key.toUpperCase();
  // Shift is part of a sign such as `?`; only of a letter or of a named key it is a modifier.
  const shift = event.shiftKey && (letter || event.key.length > 1 || event.key === ' ');
  return [(event.ctrlKey || event.metaKey) && 'Ctrl', event.altKey && 'Alt', shift && 'Shift', name].filter(Boolean).join('+');
}

export type Match = { action: string } | { waits: string } | null;

/** What a stroke does in a view after those that were pressed before it: an action, or the first part of one. */
export function match(keys: readonly KeyTerm[], view: string, before: string, stroke: string): Match {
  const pressed = before ? `${before} ${stroke}` : stroke;
  const here = keys.filter((row) => row.views.length === 0 || row.views.includes(view));
  // A row of this view comes before one that holds everywhere.
  const rows = [...here].sort((a, b) => Number(b.views.length > 0) - Number(a.views.length > 0));
  const whole = rows.find((row) => row.keys.includes(pressed));
  if (whole) return { action: whole.action };
  if (rows.some((row) => row.keys.some((way) => way.startsWith(`${pressed} `)))) return { waits: pressed };
  return before ? match(keys, view, '', stroke) : null;
}

/** A key that is typed into a field is text. */
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return true;
  return target instanceof HTMLInputElement && !['checkbox', 'radio', 'button', 'submit', 'range'].includes(target.type);
}
