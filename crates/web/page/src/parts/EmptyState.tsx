/** What a list or a pane says when it has nothing: what would be here, and what brings it here. */
import type { ReactNode } from 'react';
import { Glyph } from './Glyph';

interface Props {
  glyph?: string;
  title: string;
  children?: ReactNode;
}

export function EmptyState({ glyph, title, children }: Props) {
  return (
    <div className="empty">
      {glyph && <Glyph name={glyph} tone="faint" />}
      <p className="strong">{title}</p>
      {children && <div className="dim">{children}</div>}
    </div>
  );
}
