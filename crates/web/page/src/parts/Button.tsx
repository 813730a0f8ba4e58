/** A button. One that is off stays where it is, with a dashed edge, and says why. */
import type { ButtonHTMLAttributes, ReactNode } from 'react';
import { useActionsOn } from '../store/store';
import { KeyCaps } from './KeyCap';
import { Glyph } from './Glyph';

interface Props extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'type'> {
  look?: 'plain' | 'primary' | 'quiet' | 'no';
  /** 32, 28 or 24 px. */
  size?: 'normal' | 'dense' | 'tiny';
  glyph?: string;
  /** The action in the table of keys whose caps are shown. */
  action?: string;
  /** It changes something: off unless the page is live. */
  acts?: boolean;
  /** Why it is off, in the words of a rule. It stays focusable, so that the reason can be read. */
  off?: string | null | undefined;
  submit?: boolean;
  children?: ReactNode;
}

export function Button({ look = 'plain', size = 'normal', glyph, action, acts = false, off, submit = false, className, children, onClick, title, ...rest }: Props) {
  const live = useActionsOn();
  const why = off ?? (acts && !live ? 'The page is not live: actions are off until it is.' : null);
  const icon = children === undefined || children === null;
  const classes = ['btn', look !== 'plain' && look, size !== 'normal' && size, icon && 'icon', className];
  return (
    <button
      {...rest}
      type={submit ? 'submit' : 'button'}
      className={classes.filter(Boolean).join(' ')}
      aria-disabled={why ? true : undefined}
      title={why ?? title}
      onClick={why ? (event) => event.preventDefault() : onClick}
    >
      {glyph && <Glyph name={glyph} size={14} />}
      {!icon && <span>{children}</span>}
      {action && <KeyCaps action={action} />}
    </button>
  );
}
