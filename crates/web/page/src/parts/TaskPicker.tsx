/** Chooses tasks by typing words of their titles or ids. */
import { useEffect, useId, useRef, useState, type KeyboardEvent } from 'react';
import { foundTasks } from '../frame/search';
import { announce } from '../frame/announce';
import { useRow, useStore, useTerms } from '../store/store';
import { Button } from './Button';
import { Glyph } from './Glyph';
import { Plain } from './plain';

const SHOWN = 8;

interface Props {
  id?: string;
  chosen: readonly string[];
  onChange: (chosen: string[]) => void;
  /** Tasks that cannot be chosen. */
  without?: readonly string[];
  'aria-invalid'?: true;
  'aria-describedby'?: string;
  'data-first'?: true;
}

export function TaskPicker({ id, chosen, onChange, without = [], ...control }: Props) {
  const list = useId();
  const [query, setQuery] = useState('');
  const [at, setAt] = useState(0);
  const glyphs = new Map(useTerms()?.statuses.map((status) => [status.id as string, status]));
  const found = foundTasks(useStore.getState().rows.all('tasks').values(), query, SHOWN + chosen.length + without.length)
    .filter((task) => !chosen.includes(task.id) && !without.includes(task.id)).slice(0, SHOWN);
  // In a dialog the list may begin below its edge.
  const box = useRef<HTMLDivElement>(null);
  const shown = found.length > 0;
  useEffect(() => {
    if (shown) box.current?.scrollIntoView({ block: 'nearest' });
  }, [shown]);
  const choose = (task: string | undefined) => {
    if (!task) return;
    onChange([...chosen, task]);
    setQuery('');
    setAt(0);
    announce(`${task} is chosen.`);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (found.length === 0 || event.nativeEvent.isComposing) return;
    if (event.key === 'ArrowDown') setAt((at + 1) % found.length);
    else if (event.key === 'ArrowUp') setAt((at - 1 + found.length) % found.length);
    else if (event.key === 'Enter') choose(found[at]?.id);
    else if (event.key === 'Escape') {
      setQuery('');
      event.stopPropagation();
    } else return;
    event.preventDefault();
  };
  return (
    <div ref={box} className="picker">
      {chosen.length > 0 && (
        <ul className="chosen">{chosen.map((task) => <Chosen key={task} task={task} onRemove={() => onChange(chosen.filter((each) => each !== task))} />)}</ul>
      )}
      <input
        {...control}
        id={id}
        className="input"
        role="combobox"
        aria-expanded={found.length > 0}
        aria-controls={list}
        aria-activedescendant={found.length > 0 ? `${list}-${at}` : undefined}
        autoComplete="off"
        spellCheck={false}
        placeholder="Title or id of a task"
        value={query}
        onChange={(event) => { setQuery(event.target.value); setAt(0); }}
        onKeyDown={onKeyDown}
        onBlur={() => setQuery('')}
      />
      <div id={list} role="listbox" aria-label="Tasks" className="found" hidden={found.length === 0}>
        {found.map((task, index) => (
          <div
            key={task.id}
            id={`${list}-${index}`}
            role="option"
            aria-selected={index === at}
            className={index === at ? 'sel' : undefined}
            // The field keeps the focus, so that the choice is made before it is left.
            onMouseDown={(event) => { event.preventDefault(); choose(task.id); }}
          >
            <Glyph name={glyphs.get(task.status)?.glyph ?? ''} size={14} /><span className="id">{task.id}</span><span className="cut"><Plain text={task.title} /></span>
          </div>
        ))}
      </div>
      {query.trim() !== '' && found.length === 0 && <p className="small dim">No task has these words.</p>}
    </div>
  );
}

function Chosen({ task, onRemove }: { task: string; onRemove: () => void }) {
  const row = useRow('tasks', task);
  return (
    <li>
      <span className="id">{task}</span><span className="cut">{row && <Plain text={row.title} />}</span>
      <Button look="quiet" size="tiny" glyph="x" aria-label={`Remove ${task}`} onClick={onRemove} />
    </li>
  );
}
