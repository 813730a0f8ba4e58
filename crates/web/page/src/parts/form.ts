/** Forms that are built from the fields of an action: values, what is missing, the body of the request, problems at their fields. Pure. */
import type { Problem } from '../api/client';
import type { Field } from '../api/view';

/** A field of the API, or a choice among the tasks of the store. */
export type FormField = Omit<Field, 'kind'> & {
  kind: Field['kind'] | 'tasks';
  /** It stands in one line with others. */
  short?: boolean;
};

export interface Check {
  item: string;
  answer: string;
}
export type Value = string | string[] | Check[];
export type Values = Readonly<Record<string, Value>>;
/** Messages by the name of the field. */
export type Messages = Readonly<Record<string, string>>;

export function emptyValue(field: FormField): Value {
  switch (field.kind) {
    case 'choices':
    case 'tasks':
      return [];
    case 'list':
      return Array.from({ length: Math.max(1, field.items?.[0] ?? 1) }, () => '');
    case 'checklist':
      return field.choices && field.choices.length > 0 ? field.choices.map((item) => ({ item, answer: '' })) : [{ item: '', answer: '' }];
    default:
      return '';
  }
}

export function initialValues(fields: readonly FormField[], given: Values = {}): Values {
  return Object.fromEntries(fields.map((field) => [field.name, given[field.name] ?? emptyValue(field)]));
}

/** What the server gets for a value; undefined if nothing was filled in. */
export function sent(field: FormField, value: Value | undefined): unknown {
  if (value === undefined) return undefined;
  if (typeof value === 'string') {
    const text = field.kind === 'text' ? value : value.trim();
    if (text.trim() === '') return undefined;
    return field.kind === 'number' ? Number(text) : text;
  }
  if (field.kind === 'checklist') {
    const items = (value as Check[]).filter((check) => check.item.trim() !== '' || check.answer.trim() !== '');
    return items.length === 0 ? undefined : { items: items.map((check) => ({ item: check.item.trim(), answer: check.answer.trim() })) };
  }
  const items = (value as string[]).map((item) => item.trim()).filter(Boolean);
  return items.length === 0 ? undefined : items;
}

/** What is missing or wrong before anything is sent. */
export function missing(fields: readonly FormField[], values: Values): Messages {
  const out: Record<string, string> = {};
  for (const field of fields) {
    const message = wrong(field, sent(field, values[field.name]), values[field.name]);
    if (message) out[field.name] = message;
  }
  return out;
}

function wrong(field: FormField, value: unknown, typed: Value | undefined): string | null {
  if (value === undefined) return field.required ? field.text || `${field.label} is required.` : null;
  if (field.kind === 'number' && !Number.isFinite(value)) return 'This is not a number.';
  if (field.kind === 'list') {
    const [least, most] = field.items ?? [0, Infinity];
    const count = (value as string[]).length;
    if (count < (least ?? 0)) return `At least ${least} items: ${count} ${count === 1 ? 'is' : 'are'} there.`;
    if (count > (most ?? Infinity)) return `At most ${most} items: ${count} are there.`;
  }
  if (field.kind === 'checklist' && Array.isArray(typed)) {
    const open = (typed as Check[]).filter((check) => (check.item.trim() === '') !== (check.answer.trim() === '')).length;
    if (open > 0) return open === 1 ? '1 item has no question or no answer.' : `${open} items have no question or no answer.`;
  }
  return null;
}

/** The body of the request: that of the action, with what was filled in. A name with dots is a member inside another one. */
export function bodyOf(body: Readonly<Record<string, unknown>> | undefined, fields: readonly FormField[], values: Values): Record<string, unknown> {
  const out = structuredClone({ ...body });
  for (const field of fields) {
    const value = sent(field, values[field.name]);
    if (value === undefined) continue;
    const names = field.name.split('.');
    const last = names.pop() ?? field.name;
    let inside: Record<string, unknown> = out;
    for (const name of names) {
      const next = inside[name];
      inside = inside[name] = isObject(next) ? next : {};
    }
    // What the action brings for the same member stays: the kind of a checklist, for example.
    inside[last] = isObject(value) && isObject(inside[last]) ? { ...inside[last], ...value } : value;
  }
  // A member that only the form could complete is not sent half.
  for (const field of fields) {
    if (field.kind === 'checklist' && sent(field, values[field.name]) === undefined) delete out[field.name];
  }
  return out;
}

/** Problems of the server at their fields, and those that belong to none. An error may name the field, or what it is inside of. */
export function fieldProblems(problem: Problem, fields: readonly Pick<FormField, 'name'>[]): { at: Messages; rest: string[] } {
  const at: Record<string, string> = {};
  const rest: string[] = [];
  for (const { field, message } of problem.errors ?? []) {
    const found = fields.find(({ name }) => name === field || name.startsWith(`${field}.`) || field.startsWith(`${name}.`) || field.startsWith(`${name}[`));
    if (!found) rest.push(message);
    else at[found.name] = at[found.name] ? `${at[found.name]} ${message}` : message;
  }
  return { at, rest };
}

/** A problem in one sentence: the words of its rules, or its detail. */
export function problemWords(problem: Problem): string {
  const words = (problem.errors ?? []).map((error) => error.message).filter(Boolean);
  return [words.length > 0 ? words.join('; ') : problem.detail || problem.title, problem.hint].filter(Boolean).map((text) => sentence(String(text))).join(' ');
}

function sentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

/** `tool_failures` as people read it. */
export function choiceLabel(choice: string): string {
  return choice.replace(/_/g, ' ');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
