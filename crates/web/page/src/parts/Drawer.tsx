/** A rail that has no room beside the main pane. It takes the focus but does not keep it: the page behind stays in use. */
import { useEffect, useId, useRef, type ReactNode } from 'react';
import { createPortal } from 'react-dom';
import { Button } from './Button';

interface Props {
  title: string;
  onClose: () => void;
  children: ReactNode;
}

export function Drawer({ title, onClose, children }: Props) {
  const box = useRef<HTMLElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    box.current?.focus();
    return () => {
      if (before instanceof HTMLElement && document.body.contains(before)) before.focus();
    };
  }, []);
  return createPortal(
    <aside
      ref={box}
      className="drawer"
      role="complementary"
      aria-labelledby={id}
      tabIndex={-1}
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return;
        event.preventDefault();
        onClose();
      }}
    >
      <header>
        <h2 id={id}>{title}</h2>
        <Button look="quiet" size="tiny" glyph="x" className="push" aria-label="Close" onClick={onClose} />
      </header>
      <div className="scroll">{children}</div>
    </aside>,
    document.body,
  );
}
