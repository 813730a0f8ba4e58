/** A new task, and the change of what one says. */
import { useEffect, useState } from 'react';
import { call } from '../../api/client';
import { announce } from '../../frame/announce';
import { ActionDialog, type FormAction } from '../../parts/ActionForm';
import { Dialog } from '../../parts/Dialog';
import { problemWords, type FormField, type Values } from '../../parts/form';
import { Plain } from '../../parts/plain';
import { useTerms } from '../../store/store';
import { setBoard } from './state';

const PRIORITIES = ['0', '1', '2', '3', '4'];

function fieldsOf(agents: readonly string[]): { title: FormField; body: FormField; priority: FormField; agent: FormField } {
  return {
    title: { name: 'title', label: 'Title', kind: 'line', required: true, text: 'The work to do, in one line.' },
    body: { name: 'body', label: 'Text', kind: 'text', required: false, text: 'What to do, and how to know that it is done.' },
    priority: { name: 'priority', label: 'Priority', kind: 'choice', required: false, short: true, choices: PRIORITIES, text: '0 is the most urgent.' },
    agent: { name: 'agent', label: 'Agent', kind: 'choice', required: false, short: true, choices: [...agents], text: "If not the fleet's." },
  };
}

export function NewTask({ onClose }: { onClose: () => void }) {
  const terms = useTerms();
  const { title, body, priority, agent } = fieldsOf(terms?.agents ?? []);
  const action: FormAction = {
    code: 'add_task', label: 'Add task', happens: [],
    request: { method: 'POST', path: '/tasks', body: {} },
    fields: [
      title, body,
      { name: 'type', label: 'Type', kind: 'choice', required: false, short: true, choices: terms?.types ?? [], text: 'What kind of work.' },
      priority, agent,
      { name: 'dependsOn', label: 'Depends on', kind: 'tasks', required: false, text: 'Tasks that must be done first.' },
    ],
  };
  const done = (value: unknown) => {
    onClose();
    const id = (value as { id?: string } | undefined)?.id;
    if (!id) return;
    announce(`${id} is added.`);
    setBoard(({ focusTick }) => ({ focused: id, focusTick: focusTick + 1 }));
  };
  return (
    <ActionDialog title="New task" action={action} onCancel={onClose} onDone={done} body={(values) => withNumber(values, ['title', 'body', 'type', 'priority', 'agent', 'dependsOn'])} />
  );
}

interface Loaded {
  values: Values;
}

export function EditTask({ task, onClose }: { task: string; onClose: () => void }) {
  const terms = useTerms();
  const [loaded, setLoaded] = useState<Loaded | string | null>(null);
  useEffect(() => {
    const gone = new AbortController();
    void call('get', '/tasks/{task}', { path: { task }, signal: gone.signal }).then((answer) => {
      if (gone.signal.aborted) return;
      if (!answer.ok) return setLoaded(problemWords(answer.problem));
      const { title, body, priority, agent } = answer.value;
      setLoaded({ values: { title, body: body ?? '', priority: String(priority), agent: agent ?? '' } });
    });
    return () => gone.abort();
  }, [task]);
  if (loaded === null || typeof loaded === 'string') {
    return <Dialog title={`Edit ${task}`} onClose={onClose}><p className="dim">{loaded === null ? 'Loading…' : <Plain text={loaded} />}</p></Dialog>;
  }
  const fields = fieldsOf(terms?.agents ?? []);
  const action: FormAction = {
    code: 'edit_task', label: 'Save', happens: [],
    request: { method: 'PATCH', path: `/tasks/${encodeURIComponent(task)}`, body: {} },
    fields: [fields.title, fields.body, { ...fields.priority, required: true }, fields.agent],
  };
  // Only what was changed is sent: what somebody else changed meanwhile stays.
  const changed = (values: Values) => {
    const names = Object.keys(values).filter((name) => values[name] !== loaded.values[name]);
    return names.length === 0 ? undefined : withNumber(values, names, true);
  };
  return (
    <ActionDialog title={`Edit ${task}`} action={action} values={loaded.values} onCancel={onClose} body={changed} onDone={(value) => { onClose(); announce(value ? `${task} is changed.` : `Nothing of ${task} was changed.`); }} />
  );
}

/** `empty`: an empty value is sent, which takes away what there is. */
function withNumber(values: Values, names: readonly string[], empty = false): Record<string, unknown> {
  const filled = names.filter((name) => empty || (values[name]?.length ?? 0) > 0);
  return Object.fromEntries(filled.map((name) => [name, name === 'priority' ? Number(values[name]) : values[name]]));
}
