/** One task on the board. It knows no rule: lines, tones and glyphs come with the row. */
import type { HTMLAttributes, ReactNode, Ref } from 'react';
import type { CardLine, TaskRow } from '../api/view';
import { Age } from './Age';
import { Glyph } from './Glyph';
import { Plain } from './plain';

interface Props extends HTMLAttributes<HTMLElement> {
  task: TaskRow;
  /** The shared reason of its column, which stands at the head of the column and as a sign here. */
  sign?: { glyph: string; text: string } | undefined;
  state?: 'plain' | 'focused' | 'hand' | 'ghost';
  ref?: Ref<HTMLElement>;
  children?: ReactNode;
}

const STATES = { plain: '', focused: 'sel', hand: 'hand', ghost: 'ghost' } as const;

export function Slip({ task, sign, state = 'plain', className, ref, children, ...rest }: Props) {
  const classes = ['slip', task.quiet && 'quiet', STATES[state], className].filter(Boolean).join(' ');
  return (
    <article ref={ref} className={classes} data-task={task.id} {...rest}>
      <div className="r1">
        <span className="id">{task.id}</span>
        {task.priority !== null && task.priority < 2 && <span className={task.priority === 0 ? 'tag hot' : 'tag'}>P{task.priority}</span>}
        <span className="age">
          {sign && <span title={sign.text}><Glyph name={sign.glyph} size={12} /><span className="hide">{sign.text}</span></span>}
          <Age since={task.since} />
        </span>
      </div>
      <h3><Plain text={task.title} /></h3>
      {task.lines.map((line, index) => <SlipLine key={index} line={line} />)}
      <Meta task={task} />
      {children}
    </article>
  );
}

export function SlipLine({ line }: { line: CardLine }) {
  // A reason that asks for a person has two lines; activity has one.
  return (
    <div className={`line ${line.tone}`}>
      <Glyph name={line.glyph} size={12} />
      <span className={line.tone ? 'two' : 'cut'}><Plain text={line.text} /></span>
    </div>
  );
}

function Meta({ task }: { task: TaskRow }) {
  const who = [task.agent, task.model].filter(Boolean).join(' ');
  if (!who && !task.added && !task.removed && !task.cost) return null;
  return (
    <div className="meta">
      {who && <span className="cut">{who}</span>}
      {(task.added || task.removed) ? (
        <span>
          {task.added ? <span className="plus">+{task.added}</span> : null} {task.removed ? <span className="minus">−{task.removed}</span> : null}
        </span>
      ) : null}
      {task.cost && <span>{task.cost}</span>}
    </div>
  );
}
