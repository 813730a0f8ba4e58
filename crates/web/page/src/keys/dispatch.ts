/** Listens to the keyboard once, for the whole page. */
import { useEffect } from 'react';
import { announce } from '../frame/announce';
import { modalIsOpen } from '../parts/modal';
import { useStore } from '../store/store';
import { currentActions, perform } from './actions';
import { isTyping, match, strokeOf } from './strokes';

/** Two strokes belong together if no more time than this lies between them. */
const SEQUENCE_MS = 1200;

export function useKeyDispatch(view: string): void {
  useEffect(() => {
    let before = '';
    let at = 0;
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing || modalIsOpen()) return;
      const stroke = strokeOf(event);
      // While typing, only a chord with Ctrl is a command.
      if (!stroke || (isTyping(event.target) && !stroke.startsWith('Ctrl+'))) return;
      const now = performance.now();
      const found = match(useStore.getState().terms?.keys ?? [], view, now - at < SEQUENCE_MS ? before : '', stroke);
      before = '';
      if (!found) return;
      if ('waits' in found) {
        before = found.waits;
        at = now;
        event.preventDefault();
        return;
      }
      // A focused button or link is pressed by Enter and Space itself.
      if ((stroke === 'Enter' || stroke === 'Space') && pressable(event.target)) return;
      if (!currentActions().some((action) => action.id === found.action)) return;
      event.preventDefault();
      const why = perform(found.action);
      if (why) announce(why);
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, [view]);
}

function pressable(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('button, a[href], summary, [role="menuitem"], [role="tab"], [role="checkbox"]') === target;
}
