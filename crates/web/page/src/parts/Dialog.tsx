/** A dialog over the page. The focus stays inside, Esc and the ground beside it close it. */
import { useId, type ReactNode } from 'react';
import { createPortal } from 'react-dom';
import { Button } from './Button';
import { useModal } from './modal';

interface Props {
  title: string;
  onClose: () => void;
  wide?: boolean;
  /** The buttons, the main one last. */
  footer?: ReactNode;
  children: ReactNode;
}

export function Dialog({ title, onClose, wide = false, footer, children }: Props) {
  const box = useModal(onClose);
  const id = useId();
  return createPortal(
    <div className="scrim" onMouseDown={(event) => event.target === event.currentTarget && onClose()}>
      <div ref={box} className={wide ? 'dialog wide' : 'dialog'} role="dialog" aria-modal="true" aria-labelledby={id} tabIndex={-1}>
        <header>
          <h2 id={id}>{title}</h2>
          <Button look="quiet" size="tiny" glyph="x" className="push" aria-label="Close" onClick={onClose} />
        </header>
        <div className="body">{children}</div>
        {footer && <footer>{footer}</footer>}
      </div>
    </div>,
    document.body,
  );
}
