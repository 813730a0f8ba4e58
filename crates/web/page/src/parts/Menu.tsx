/** A button that opens a menu. Arrows move, Enter chooses, Esc closes, a letter jumps. */
import { useCallback, useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';
import { createPortal } from 'react-dom';
import { Glyph } from './Glyph';

export interface MenuItem {
  id: string;
  label: string;
  glyph?: string;
  /** Set for a choice among several, or for a switch. */
  checked?: boolean;
  /** Why it cannot be chosen. */
  off?: string | null;
  run: () => void;
}

interface Props {
  /** What stands on the button, which is its name too: beside a sign or initials, put words into a `<span className="hide">`. */
  children: ReactNode;
  /** Name of the menu. */
  label: string;
  className?: string;
  items: readonly MenuItem[];
}

export function Menu({ children, label, className = 'btn quiet dense', items }: Props) {
  const button = useRef<HTMLButtonElement>(null);
  const [at, setAt] = useState<DOMRect | null>(null);
  const close = useCallback(() => {
    setAt(null);
    button.current?.focus();
  }, []);
  const open = () => setAt(button.current?.getBoundingClientRect() ?? null);
  return (
    <>
      <button
        ref={button}
        type="button"
        className={className}
        aria-haspopup="menu"
        aria-expanded={at !== null}
        onClick={() => (at ? close() : open())}
        onKeyDown={(event) => {
          if (event.key !== 'ArrowDown') return;
          event.preventDefault();
          open();
        }}
      >
        {children}
      </button>
      {at && <OpenMenu label={label} items={items} at={at} onClose={close} />}
    </>
  );
}

function OpenMenu({ label, items, at, onClose }: { label: string; items: readonly MenuItem[]; at: DOMRect; onClose: () => void }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    // Below the button, or above it if there is no room, and never out of the window.
    const size = element.getBoundingClientRect();
    const below = at.bottom + 4;
    element.style.top = `${below + size.height > innerHeight ? Math.max(8, at.top - size.height - 4) : below}px`;
    element.style.left = `${Math.max(8, Math.min(at.left, innerWidth - size.width - 8))}px`;
    (element.querySelector<HTMLElement>('[aria-checked="true"]') ?? element.querySelector<HTMLElement>('[role^="menuitem"]'))?.focus();
    const outside = (event: PointerEvent) => !element.contains(event.target as Node) && onClose();
    window.addEventListener('pointerdown', outside);
    return () => window.removeEventListener('pointerdown', outside);
  }, [at, onClose]);

  const onKeyDown = (event: KeyboardEvent) => {
    const entries = [...(box.current?.querySelectorAll<HTMLElement>('[role^="menuitem"]') ?? [])];
    const here = entries.indexOf(document.activeElement as HTMLElement);
    const go = (index: number) => entries[(index + entries.length) % entries.length]?.focus();
    event.stopPropagation();
    if (event.key === 'Escape' || event.key === 'Tab') onClose();
    else if (event.key === 'ArrowDown') go(here + 1);
    else if (event.key === 'ArrowUp') go(here - 1);
    else if (event.key === 'Home') go(0);
    else if (event.key === 'End') go(-1);
    else if (event.key.length === 1 && event.key !== ' ') {
      const next = [...entries.slice(here + 1), ...entries].find((each) => each.textContent?.toLowerCase().startsWith(event.key.toLowerCase()));
      next?.focus();
    } else return;
    event.preventDefault();
  };

  return createPortal(
    <div ref={box} className="menu" role="menu" aria-label={label} onKeyDown={onKeyDown}>
      {items.map((item) => (
        <button
          key={item.id}
          type="button"
          role={item.checked === undefined ? 'menuitem' : 'menuitemradio'}
          aria-checked={item.checked}
          aria-disabled={item.off ? true : undefined}
          tabIndex={-1}
          onClick={() => {
            if (item.off) return;
            onClose();
            item.run();
          }}
        >
          {item.glyph && <Glyph name={item.glyph} size={14} />}
          <span>{item.label}{item.off && <span className="why-off">{item.off}</span>}</span>
          {item.checked && <span className="push"><Glyph name="check" size={12} /></span>}
        </button>
      ))}
    </div>,
    document.body,
  );
}
