/** What the inbox shows of the rows that wait: groups, addresses, the two answers. Pure. */
import type { Action, WaitingRow } from '../../api/view';
import type { Shown } from './rest';

/** What is asked, as one text. If it changes, the question is another one. */
export function markOf(row: WaitingRow): string {
  return JSON.stringify([row.kind, row.text, row.question, row.call?.tool, row.call?.input, row.actions.map((action) => [action.code, action.request])]);
}

export interface Group {
  key: string;
  /** Empty for the first group, which needs no head. */
  name: string;
  words: string;
  rows: readonly WaitingRow[];
}

/** Rows for a person: those of this project, then of the others. Rows that wait for a service come last: nobody can answer them. */
export function groupsOf(rows: readonly WaitingRow[], project: string): Group[] {
  const people = rows.filter((row) => row.who !== 'service');
  const projects = [...new Set(people.map((row) => row.project))].sort((a, b) => Number(b === project) - Number(a === project));
  const groups = projects.map((name): Group => ({
    key: `project ${name}`,
    name: name === project ? '' : name,
    words: name === project ? '' : 'another project',
    rows: people.filter((row) => row.project === name),
  }));
  const services = rows.filter((row) => row.who === 'service');
  if (services.length > 0) groups.push({ key: 'service', name: 'Waiting for a service', words: 'continues without you', rows: services });
  return groups;
}

export function shownOf(groups: readonly Group[]): Shown[] {
  return groups.flatMap((group) => group.rows.map((row) => ({ id: row.id, mark: markOf(row) })));
}

export function addressOf(id: string): string {
  return `/inbox/${encodeURIComponent(id)}`;
}

/** The row of an address: by its id, or by the approval or question that it is about. The router has decoded all but reserved signs. */
export function rowOf(rows: Iterable<WaitingRow>, part: string): WaitingRow | undefined {
  const all = [...rows];
  const is = (id: string | null) => id !== null && (id === part || decodeURI(encodeURIComponent(id)) === part);
  return all.find((row) => is(row.id)) ?? all.find((row) => is(row.approval) || is(row.request));
}

/** Where the project of a row is served, if it is another than that of the page. */
export function baseOfRow(row: WaitingRow, project: string, base: string): string {
  return row.project === project ? base : `/p/${encodeURIComponent(row.project)}`;
}

/** An address of the row's own project: `~` leaves the base of this page. */
export function placeOf(row: WaitingRow, project: string, path: string): string {
  return row.project === project ? path : `~/p/${encodeURIComponent(row.project)}${path}`;
}

export interface Ways {
  yes: Action | undefined;
  no: Action | undefined;
  others: Action[];
}

/** The first yes and the first no are the two buttons; all others stand below them. */
export function waysOf(actions: readonly Action[]): Ways {
  const yes = actions.find((action) => action.answer === 'yes');
  const no = actions.find((action) => action.answer === 'no');
  return { yes, no, others: actions.filter((action) => action !== yes && action !== no) };
}

export function needsForm(action: Action): boolean {
  return (action.fields ?? []).length > 0;
}

export type Together = { label: string; why: null; form: boolean } | { label: string; why: string; form: boolean };

/** One answer for several rows: all or none. `why` says why it cannot be given to all of them. */
export function together(rows: readonly WaitingRow[], answer: 'yes' | 'no'): Together {
  const actions = rows.map((row) => waysOf(row.actions)[answer]);
  const labels = new Set(actions.map((action) => action?.label));
  const [only] = [...labels];
  const label = `${labels.size === 1 && only ? only : answer === 'yes' ? 'Yes to' : 'No to'} ${rows.length}`;
  const form = actions.some((action) => action && needsForm(action));
  const without = rows.find((_, index) => !actions[index]?.request);
  if (without) return { label, form, why: `“${without.text}” has no such answer here.` };
  const refused = actions.find((action) => action?.refused)?.refused;
  if (refused) return { label, form, why: refused };
  const fields = new Set(actions.map((action) => JSON.stringify(action?.fields ?? [])));
  if (fields.size > 1) return { label, form, why: 'They ask for different texts: answer them one by one.' };
  if (actions.some((action) => action?.fields?.some((field) => field.required))) return { label, form, why: 'Each needs a text of its own.' };
  return { label, form, why: null };
}

/** Whole, in the order in which the agent wrote it. */
export function inputText(input: unknown): string {
  return JSON.stringify(input, null, 2);
}

/** The title of a case, and the words before it. A question that its sentence ends with stands alone, so that it is not read twice. */
export function titleOf(row: WaitingRow): { title: string; before: string; question: string | null } {
  const { text, question } = row;
  if (!question || question === text) return { title: text, before: '', question: null };
  if (text.endsWith(question)) return { title: question, before: text.slice(0, -question.length).trim(), question: null };
  return { title: text, before: '', question };
}
