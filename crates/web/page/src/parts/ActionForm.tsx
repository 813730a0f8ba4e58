/**
 * A form for an action of the API: what happens, the fields that are asked for, and the request. Put it into a `Dialog`, or use
 * `ActionDialog`. Problems of the server stand at their fields; one that belongs to no field stands above the buttons.
 */
import './action-form.css';
import { useEffect, useRef, useState, type FormEvent, type ReactNode } from 'react';
import { request, type Problem } from '../api/client';
import type { Action } from '../api/view';
import { announce } from '../frame/announce';
import { Button } from './Button';
import { Dialog } from './Dialog';
import { FieldInput } from './FieldInput';
import { bodyOf, fieldProblems, initialValues, missing, problemWords, type FormField, type Messages, type Value, type Values } from './form';
import { Glyph } from './Glyph';
import { Plain } from './plain';

/** An action whose fields may also choose among the tasks of the page. */
export type FormAction = Omit<Action, 'fields'> & { fields?: readonly FormField[] };

interface Props {
  action: FormAction;
  /** It was done; `value` is what the server answered. */
  onDone: (value: unknown) => void;
  onCancel: () => void;
  /** What the fields begin with, by their names. */
  values?: Values;
  /** The server knows best what is missing: an empty field is left out and not refused here. */
  lenient?: boolean;
  /** A rule refused it, and nothing that can be typed here would help. Without it, the form says so itself. */
  onRefused?: (problem: Problem) => void;
  /** What is sent, where it is not the action's body with the values. Undefined: there is nothing to send. */
  body?: (values: Values) => Record<string, unknown> | undefined;
  /** Stands above the fields: what it is about. */
  about?: ReactNode;
  /** Stands between the fields and the buttons. */
  children?: ReactNode;
}

export function ActionForm({ action, onDone, onCancel, values: given, lenient = false, onRefused, body, about, children }: Props) {
  const fields = action.fields ?? [];
  const [values, setValues] = useState<Values>(() => initialValues(fields, given));
  const [messages, setMessages] = useState<Messages>({});
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const [first] = Object.keys(messages);

  // The first field that is wrong gets the focus, each time something was found wrong.
  useEffect(() => {
    if (first) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [first, messages]);

  const set = (name: string, value: Value) => {
    setValues((before) => ({ ...before, [name]: value }));
    setMessages(({ [name]: _, ...others }) => others);
  };
  const say = (found: Messages, rest: string | null) => {
    setMessages(found);
    setProblem(rest);
    announce([...Object.values(found), rest].filter(Boolean).join(' '));
  };

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (busy || action.refused || !action.request) return;
    const found = lenient ? {} : missing(fields, values);
    if (Object.keys(found).length > 0) return say(found, null);
    const { method, path } = action.request;
    const sends = body ? body(values) : bodyOf(action.request.body, fields, values);
    if (!sends) return onDone(undefined);
    setBusy(true);
    const answer = await request(method, path, method.toUpperCase() === 'DELETE' && Object.keys(sends).length === 0 ? undefined : sends);
    setBusy(false);
    if (answer.ok) return onDone(answer.value);
    const { at, rest } = fieldProblems(answer.problem, fields);
    const helps = Object.keys(at).length > 0 && rest.length === 0;
    const rule = answer.problem.status >= 400 && answer.problem.status < 500;
    if (!helps && rule && onRefused) return onRefused(answer.problem);
    say(at, rest.length > 0 ? rest.join(' ') : helps ? null : problemWords(answer.problem));
  };

  return (
    <form ref={form} className="action-form" noValidate onSubmit={(event) => void submit(event)}>
      {about && <p>{about}</p>}
      {action.happens.length > 0 && (
        <ul className="happens">{action.happens.map((text, index) => <li key={index}><Plain text={text} /></li>)}</ul>
      )}
      {fields.map((field, index) => (
        <FieldInput key={field.name} field={field} value={values[field.name]} message={messages[field.name]} first={index === 0} onChange={(value) => set(field.name, value)} />
      ))}
      {children}
      {(problem ?? action.refused) && <p className="problem"><Glyph name="back" size={14} tone="bad" /><span><Plain text={problem ?? action.refused ?? ''} /></span></p>}
      <div className="buttons">
        <Button onClick={onCancel}>Cancel</Button>
        <Button look={action.endsWork ? 'no' : 'primary'} submit acts off={action.refused ?? (busy ? 'It is being done.' : null)}>{action.label}</Button>
      </div>
    </form>
  );
}

/** The form in a dialog whose title is the action, or what is given. */
export function ActionDialog({ title, ...props }: Props & { title?: string }) {
  return (
    <Dialog title={title ?? props.action.label} onClose={props.onCancel}>
      <ActionForm {...props} />
    </Dialog>
  );
}
