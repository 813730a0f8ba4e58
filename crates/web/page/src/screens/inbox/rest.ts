/**
 * Which rows a key decides on. Pure: the screen feeds it with what is shown, and asks it before it decides.
 *
 * Invariant: `targets` is empty unless the rows that would be decided stood at the same places, with the same content, for
 * half a second. So a row that slides under the cursor, or a call that is edited, is never decided by a key meant for another.
 */

export const REST_MS = 500;

export interface Shown {
  id: string;
  /** Changes if the question changes: an edited call is a new question. */
  mark: string;
}

export interface Cursor {
  shown: readonly Shown[];
  focused: string | null;
  /** Where the focused row stands, or stood before it left. */
  place: number;
  /** Selected rows, in the order of the list. They come before the focused one. */
  picked: readonly string[];
  /** Since when the targets stand still. */
  since: number;
}

export type CursorEvent =
  | { type: 'rows'; rows: readonly Shown[]; at: number }
  | { type: 'focus'; id: string | null; at: number }
  | { type: 'pick'; id: string; at: number }
  | { type: 'clear'; at: number }
  /** A key came too early, or it is held down: the time begins again. */
  | { type: 'early'; at: number };

export const noCursor: Cursor = { shown: [], focused: null, place: -1, picked: [], since: 0 };

export function moveCursor(before: Cursor, event: CursorEvent): Cursor {
  const after = moved(before, event);
  return event.type === 'early' || signature(before) !== signature(after) ? { ...after, since: event.at } : after;
}

function moved(cursor: Cursor, event: CursorEvent): Cursor {
  switch (event.type) {
    case 'rows': {
      const place = event.rows.findIndex((row) => row.id === cursor.focused);
      const picked = event.rows.filter((row) => cursor.picked.includes(row.id)).map((row) => row.id);
      // The place of a row that left is kept: the next step goes from there.
      return { ...cursor, shown: event.rows, picked, place: place === -1 ? cursor.place : place };
    }
    case 'focus': {
      const place = cursor.shown.findIndex((row) => row.id === event.id);
      return { ...cursor, focused: event.id, place: place === -1 ? cursor.place : place };
    }
    case 'pick': {
      const wanted = cursor.picked.includes(event.id) ? cursor.picked.filter((id) => id !== event.id) : [...cursor.picked, event.id];
      return { ...cursor, picked: cursor.shown.filter((row) => wanted.includes(row.id)).map((row) => row.id) };
    }
    case 'clear':
      return { ...cursor, picked: [] };
    case 'early':
      return cursor;
  }
}

/** What would be decided, where it stands, and what it asks. */
function signature(cursor: Cursor): string {
  return JSON.stringify(wanted(cursor).map((id) => {
    const place = cursor.shown.findIndex((row) => row.id === id);
    return [id, place, cursor.shown[place]?.mark];
  }));
}

/** The selected rows, or the focused one. */
export function wanted(cursor: Cursor): readonly string[] {
  if (cursor.picked.length > 0) return cursor.picked;
  return cursor.shown.some((row) => row.id === cursor.focused) && cursor.focused !== null ? [cursor.focused] : [];
}

/** The rows that a key decides on now; none if they have not come to rest. */
export function targets(cursor: Cursor, now: number): readonly string[] {
  return now - cursor.since >= REST_MS ? wanted(cursor) : [];
}

/** The row that is next by so many places. After the focused one left, the row that took its place is the next. */
export function stepFrom(cursor: Cursor, by: 1 | -1): string | null {
  const { shown, place } = cursor;
  if (shown.length === 0) return null;
  const here = shown.some((row) => row.id === cursor.focused);
  const next = place === -1 ? 0 : here ? place + by : by === 1 ? place : place - 1;
  return shown[Math.min(Math.max(next, 0), shown.length - 1)]?.id ?? null;
}

/** The row to go to once these are decided: the first that stays below the focused one, or the last above it. */
export function afterDeciding(cursor: Cursor, decided: readonly string[]): string | null {
  const stays = (row: Shown) => !decided.includes(row.id);
  const below = cursor.shown.slice(Math.max(cursor.place, 0)).find(stays);
  return (below ?? cursor.shown.filter(stays).at(-1))?.id ?? null;
}
