/** The one store of the page: connection, rows, terms. Everything that is counted or shown comes from it. */
import { create } from 'zustand';
import type { components } from '../api/types';
import type { Terms, View, ViewChange, TableName, Tables } from '../api/view';
import { actionsOn, initial, type Connection } from './connection';
import { Rows } from './rows';

export type Person = components['schemas']['WhoAsks'];

export interface PageState {
  connection: Connection;
  rows: Rows;
  /** Grows with every change of rows: `rows` itself is one object that is changed in place. */
  version: number;
  terms: Terms | null;
  /** Who looks at the page, as the server knows them. */
  person: Person | null;
  /** The page has had a whole view. */
  loaded: boolean;
}

export const useStore = create<PageState>(() => ({ connection: initial, rows: new Rows(), version: 0, terms: null, person: null, loaded: false }));

export function setConnection(connection: Connection): void {
  if (connection !== useStore.getState().connection) useStore.setState({ connection });
}

export function setTerms(terms: Terms): void {
  useStore.setState({ terms });
}

export function setPerson(person: Person): void {
  useStore.setState({ person });
}

export function putView(view: View): void {
  const { rows, version } = useStore.getState();
  rows.replace(view);
  useStore.setState({ version: version + 1, loaded: true });
}

/** Several changes at once cost one rendering. */
export function putChanges(changes: readonly ViewChange[]): void {
  if (changes.length === 0) return;
  const { rows, version } = useStore.getState();
  for (const change of changes) rows.apply(change);
  useStore.setState({ version: version + 1 });
}

// ---- what components read. Each renders its component again only if what it returns has changed.

/** One row; undefined if it is gone. */
export function useRow<T extends TableName>(table: T, id: string): Tables[T] | undefined {
  return useStore((state) => state.rows.row(table, id));
}

/** Ids of the tasks of a column, in order. */
export function useTaskIds(status: string): readonly string[] {
  return useStore((state) => state.rows.list('tasks', status));
}

/** Ids of the workers of a group, in order. */
export function useWorkerIds(attention: string): readonly string[] {
  return useStore((state) => state.rows.list('workers', attention));
}

/** Ids of everything that waits for a person, over all projects, in order. */
export function useWaitingIds(): readonly string[] {
  return useStore((state) => state.rows.list('waiting'));
}

export function useQueueIds(): readonly string[] {
  return useStore((state) => state.rows.list('queue'));
}

export function useCount(table: TableName): number {
  return useStore((state) => state.rows.count(table));
}

export function useFacts(): Tables['facts'] | undefined {
  return useStore((state) => state.rows.row('facts', 'frame'));
}

export function usePerson(): Person | null {
  return useStore((state) => state.person);
}

export function useTerms(): Terms | null {
  return useStore((state) => state.terms);
}

export function useConnection(): Connection {
  return useStore((state) => state.connection);
}

/** Actions are on: the page is live. Every button that changes something reads it. */
export function useActionsOn(): boolean {
  return useStore((state) => actionsOn(state.connection));
}
