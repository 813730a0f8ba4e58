/** How many dialogs are open: the keys of the page rest meanwhile. */
import { useEffect, useRef, type RefObject } from 'react';

let open = 0;

export function modalIsOpen(): boolean {
  return open > 0;
}

const FOCUSABLE = 'a[href], button:not([disabled]), input:not([disabled]), textarea:not([disabled]), select:not([disabled]), [tabindex]:not([tabindex="-1"])';

/** Keeps the focus inside, closes on Esc, and gives the focus back to where it was. */
export function useModal(onClose: () => void): RefObject<HTMLDivElement | null> {
  const box = useRef<HTMLDivElement>(null);
  const close = useRef(onClose);
  close.current = onClose;
  useEffect(() => {
    const before = document.activeElement;
    open += 1;
    const inside = () => [...(box.current?.querySelectorAll<HTMLElement>(FOCUSABLE) ?? [])].filter((each) => each.offsetParent !== null);
    if (!box.current?.contains(document.activeElement)) (box.current?.querySelector<HTMLElement>('[data-first]') ?? inside()[0] ?? box.current)?.focus();
    const onKey = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && !event.isComposing) {
        event.preventDefault();
        event.stopPropagation();
        close.current();
      } else if (event.key === 'Tab') trap(event, inside());
    };
    const element = box.current;
    element?.addEventListener('keydown', onKey);
    return () => {
      element?.removeEventListener('keydown', onKey);
      open -= 1;
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return box;
}

function trap(event: KeyboardEvent, inside: HTMLElement[]): void {
  const first = inside[0];
  const last = inside[inside.length - 1];
  if (!first || !last) event.preventDefault();
  else if (event.shiftKey && document.activeElement === first) {
    event.preventDefault();
    last.focus();
  } else if (!event.shiftKey && document.activeElement === last) {
    event.preventDefault();
    first.focus();
  }
}
