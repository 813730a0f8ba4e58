/** The secondary pane at the right. Below 1280 px it has no room there, so it is a drawer that its button or a key opens. */
import { useMemo, useState, type ReactNode } from 'react';
import { useActions } from '../keys/actions';
import { Button } from './Button';
import { Drawer } from './Drawer';
import { RAIL, useMedia } from './media';

interface Props {
  title: string;
  children: ReactNode;
}

export interface RailParts {
  /** The pane; null if there is no room or it is closed. Put it last into the grid. */
  rail: ReactNode;
  /** Opens the drawer; null if the rail is in sight. */
  opener: ReactNode;
}

/** Both parts, so that the screen places the button where its tools are. */
export function useRail({ title, children }: Props): RailParts {
  const wide = useMedia(RAIL);
  const [open, setOpen] = useState(false);
  useActions(useMemo(() => (wide ? [] : [
    { id: 'rail.toggle', label: open ? `Close ${title}` : `Open ${title}`, group: 'This view', glyph: 'menu', run: () => setOpen(!open) },
  ]), [wide, open, title]));
  if (wide) {
    return { rail: <aside className="pane rail" aria-label={title}><div className="scroll">{children}</div></aside>, opener: null };
  }
  return {
    rail: open ? <Drawer title={title} onClose={() => setOpen(false)}>{children}</Drawer> : null,
    opener: <Button look="quiet" size="dense" glyph="menu" action="rail.toggle" aria-expanded={open} onClick={() => setOpen(!open)}>{title}</Button>,
  };
}
