/** One task on the board. It knows no rule: lines, tones and glyphs come with the row. */
import type { HTMLAttributes, ReactNode, Ref } from 'react';
import { Link } from 'wouter';
import type { CardLine, TaskRow } from '../api/view';
import { Age } from './Age';
import { Glyph } from './Glyph';
import { Plain } from './plain';

interface Props extends HTMLAttributes<HTMLElement> {
  task: TaskRow;
  /** The shared reason of its column, which stands at the head of the column and as a sign here. */
  sign?: { glyph: string; text: string } | undefined;
  state?: 'plain' | 'focused' | 'hand' | 'ghost';
  /** Its title leads to the task. */
  linked?: boolean;
  /** Its links are stops of the Tab key. */
  tabs?: boolean;
  /** Lines in place of those of the row. */
  lines?: readonly CardLine[];
  /** Shows what waits for it. */
  onHoldsUp?: (() => void) | undefined;
  ref?: Ref<HTMLElement>;
  children?: ReactNode;
}

const STATES = { plain: '', focused: 'sel', hand: 'hand', ghost: 'ghost' } as const;

export function Slip({ task, sign, state = 'plain', linked = false, tabs = false, lines, onHoldsUp, className, ref, children, ...rest }: Props) {
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
      <h3>
        {linked ? <Link href={taskPath(task.id)} draggable={false} tabIndex={-1}><Plain text={task.title} /></Link> : <Plain text={task.title} />}
      </h3>
      {(lines ?? task.lines).map((line, index) => <SlipLine key={index} line={line} names={task.waitsFor} tabs={tabs} />)}
      <Meta task={task} tabs={tabs} onHoldsUp={onHoldsUp} />
      {children}
    </article>
  );
}

/** Links the tasks that the line names, and `names` where it does. `tabs`: these links are stops of the Tab key. */
export function SlipLine({ line, names = [], tabs = false }: { line: CardLine; names?: readonly string[] | undefined; tabs?: boolean }) {
  // A reason that asks for a person has two lines; activity has one.
  return (
    <div className={`line ${line.tone}`}>
      <Glyph name={line.glyph} size={12} />
      <span className={line.tone ? 'two' : 'cut'}>{pieces({ text: line.text, tasks: [...(line.tasks ?? []), ...names] }).map((piece, index) => (
        piece.task
          ? <Link key={index} className="ref" href={taskPath(piece.task)} draggable={false} tabIndex={tabs ? 0 : -1}>{piece.text}</Link>
          : <Plain key={index} text={piece.text} />
      ))}</span>
    </div>
  );
}

function taskPath(id: string): string {
  return `/task/${encodeURIComponent(id)}`;
}

/** A line in pieces: the tasks that it names, and the text around them. */
export function pieces({ text, tasks = [] }: Pick<CardLine, 'text' | 'tasks'>): { text: string; task?: string }[] {
  const out: { text: string; task?: string }[] = [];
  // A name ends where no further character of a name follows: `ta-1` is not named by `ta-11`.
  for (const piece of text.split(/([A-Za-z0-9_][A-Za-z0-9_.-]*[A-Za-z0-9_]|[A-Za-z0-9_])/)) {
    if (tasks.includes(piece)) out.push({ text: piece, task: piece });
    else if (out.length > 0 && !out[out.length - 1]?.task) out[out.length - 1] = { text: (out[out.length - 1]?.text ?? '') + piece };
    else if (piece !== '') out.push({ text: piece });
  }
  return out;
}

function Meta({ task, tabs, onHoldsUp }: { task: TaskRow; tabs: boolean; onHoldsUp: (() => void) | undefined }) {
  const who = [task.agent, task.model].filter(Boolean).join(' ');
  const holds = onHoldsUp && task.holdsUp ? `holds up ${task.holdsUp}` : null;
  if (!who && !task.added && !task.removed && !task.cost && !holds) return null;
  return (
    <div className="meta">
      {who && <span className="cut">{who}</span>}
      {(task.added || task.removed) ? (
        <span>
          {task.added ? <span className="plus">+{task.added}</span> : null} {task.removed ? <span className="minus">−{task.removed}</span> : null}
        </span>
      ) : null}
      {task.cost && <span>{task.cost}</span>}
      {holds && <button type="button" className="ref" tabIndex={tabs ? 0 : -1} onClick={onHoldsUp}>{holds}</button>}
    </div>
  );
}
