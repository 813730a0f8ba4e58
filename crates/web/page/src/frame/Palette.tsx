/** Every action, and every task by name. What is focused comes first; what a rule forbids is listed with the rule's words. */
import { useId, useMemo, useState, type KeyboardEvent } from 'react';
import { useLocation } from 'wouter';
import { useAllActions, whyOff, type Action } from '../keys/actions';
import { Glyph } from '../parts/Glyph';
import { KeyCaps } from '../parts/KeyCap';
import { useModal } from '../parts/modal';
import { Plain, plain } from '../parts/plain';
import { useActionsOn, useStore, useTerms } from '../store/store';
import { announce } from './announce';
import { closeOverlay, openHelp } from './palette-state';
import { foundTasks, grouped, type Group } from './search';

const TASKS_SHOWN = 8;

export function Palette() {
  const box = useModal(closeOverlay);
  const id = useId();
  const [query, setQuery] = useState('');
  const [chosen, choose] = useState(0);
  const live = useActionsOn();
  const groups = useGroups(query);
  const flat = groups.flatMap((group) => group.actions);
  const at = Math.min(chosen, Math.max(0, flat.length - 1));

  const perform = (action: Action | undefined) => {
    if (!action) return;
    const why = whyOff(action, live);
    if (why) return announce(why);
    closeOverlay();
    action.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const by = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (by !== 0) choose((at + by + flat.length) % Math.max(1, flat.length));
    else if (event.key === 'Enter' && !event.nativeEvent.isComposing) perform(flat[at]);
    else return;
    event.preventDefault();
  };

  let index = -1;
  return (
    <div className="scrim" onMouseDown={(event) => event.target === event.currentTarget && closeOverlay()}>
      <div ref={box} className="palette" role="dialog" aria-modal="true" aria-label="Search or do" onKeyDown={onKeyDown}>
        <label className="in">
          <Glyph name="search" />
          <input
            data-first
            value={query}
            placeholder="Search or do…"
            role="combobox"
            aria-expanded="true"
            aria-controls={id}
            aria-activedescendant={flat.length > 0 ? `${id}-${at}` : undefined}
            aria-label="Search or do"
            spellCheck={false}
            autoComplete="off"
            onChange={(event) => { setQuery(event.target.value); choose(0); }}
          />
        </label>
        <div id={id} className="results" role="listbox" aria-label="Actions and tasks">
          {groups.map((group) => (
            <div key={group.name} role="group" aria-label={group.name}>
              <div className="head">{group.name}</div>
              {group.actions.map((action) => {
                index += 1;
                const here = index;
                return (
                  <Option key={action.id} id={`${id}-${here}`} action={action} chosen={here === at} off={whyOff(action, live)}
                    onPoint={() => choose(here)} onPick={() => perform(action)} />
                );
              })}
            </div>
          ))}
          {flat.length === 0 && <p className="none dim">Nothing has these words.</p>}
        </div>
        <footer>
          <span><kbd>↑</kbd><kbd>↓</kbd> choose</span><span><kbd>Enter</kbd> do</span>
          <button type="button" className="push" onClick={openHelp}><KeyCaps action="help.open" /> all keys</button>
        </footer>
      </div>
    </div>
  );
}

interface OptionProps { id: string; action: Action; chosen: boolean; off: string | null; onPoint: () => void; onPick: () => void }

function Option({ id, action, chosen, off, onPoint, onPick }: OptionProps) {
  return (
    <div
      id={id}
      role="option"
      className={chosen ? 'option sel' : 'option'}
      aria-selected={chosen}
      aria-disabled={off ? true : undefined}
      ref={chosen ? scrollIntoView : undefined}
      onMouseMove={chosen ? undefined : onPoint}
      onClick={onPick}
    >
      <Glyph name={action.glyph ?? 'arrow'} />
      <span><Plain text={action.label} />{off && <span className="small rule-words">{off}</span>}</span>
      {action.hint && !off && <span className="faint small cut">{action.hint}</span>}
      <span className="push"><KeyCaps action={action.id} /></span>
    </div>
  );
}

function scrollIntoView(element: HTMLElement | null): void {
  element?.scrollIntoView({ block: 'nearest' });
}

function useGroups(query: string): Group[] {
  const actions = useAllActions();
  const [, go] = useLocation();
  const terms = useTerms();
  const version = useStore((state) => state.version);
  return useMemo(() => {
    const groups = grouped(actions, query);
    const tasks = foundTasks(useStore.getState().rows.all('tasks').values(), query, TASKS_SHOWN);
    if (tasks.length > 0) {
      const status = new Map(terms?.statuses.map((each) => [each.id, each]));
      groups.push({
        name: 'Tasks',
        actions: tasks.map((task) => ({
          id: `task ${task.id}`,
          group: 'Tasks',
          label: `${task.id} ${plain(task.title)}`,
          glyph: status.get(task.status)?.glyph,
          hint: status.get(task.status)?.label,
          run: () => go(`/task/${encodeURIComponent(task.id)}`),
        })),
      });
    }
    return groups;
    // `version`: the rows are one object that changes in place.
  }, [actions, query, go, terms, version]);
}
