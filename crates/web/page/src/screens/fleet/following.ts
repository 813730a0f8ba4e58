/**
 * Whether the view follows the end of the transcript. Pure. It follows at the end, and stops when the person scrolls up; nothing
 * but the person turns it on again, by going to the end or by its key. New rows never change it.
 */

export interface Following {
  on: boolean;
  /** Rows that came while it was off. */
  unseen: number;
}

export const followingAtFirst: Following = { on: true, unseen: 0 };

/** So near to the end is at the end. */
const END_PX = 24;

export interface ScrollPlace {
  top: number;
  /** Height of the content and of the window on it. */
  content: number;
  window: number;
}

export function atEnd(place: ScrollPlace): boolean {
  return place.content - place.window - place.top <= END_PX;
}

/** `before`: the last scroll position. Only a way up turns it off: a list that grows moves its end away, not the reader. */
export function scrolled(state: Following, before: number, place: ScrollPlace): Following {
  if (atEnd(place)) return state.on && state.unseen === 0 ? state : followingAtFirst;
  return state.on && place.top < before - 1 ? { on: false, unseen: 0 } : state;
}

export function appended(state: Following, rows: number): Following {
  return state.on || rows <= 0 ? state : { on: false, unseen: state.unseen + rows };
}

/** Its key. */
export function toggled(state: Following): Following {
  return state.on ? { on: false, unseen: 0 } : followingAtFirst;
}
