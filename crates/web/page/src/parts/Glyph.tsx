/** One glyph. The shape is the machine, and a glyph always has its word beside it or in the head of its column. */
import { drawings, shapes } from './drawings';

interface Props {
  /** `task.IN_PROGRESS`, `worker.idle`, or the name of a sign: `search`. */
  name: string;
  /** 16 px, 14 in rails, 12 inside a line. */
  size?: 16 | 14 | 12;
  /** Colour by meaning: `you`, `ok`, `warn`, `bad`, `dim`, `faint`. */
  tone?: string | undefined;
  /** A working glyph breathes only in the pane of the one worker that is open. */
  breathes?: boolean;
}

export function Glyph({ name, size = 16, tone, breathes = false }: Props) {
  const classes = ['g', size === 14 && 's', size === 12 && 'xs', tone, breathes && 'breathe'];
  return (
    <svg className={classes.filter(Boolean).join(' ')} viewBox="0 0 16 16" aria-hidden="true" data-glyph={name}>
      {drawings[name] ?? shapes[name.split('.')[0] ?? ''] ?? null}
    </svg>
  );
}
