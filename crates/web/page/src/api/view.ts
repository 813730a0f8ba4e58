/**
 * What `GET /api/v1/view` and `GET /api/v1/terms` answer.
 *
 * Declared here until docs/openapi.json has these types; then this file only names the generated ones.
 */

/** Every row has an id that is unique in its table, and the number of the record that changed it last. */
export interface Row {
  id: string;
  seq: number;
}

/** One line of a card: activity, or a reason. */
export interface CardLine {
  text: string;
  glyph: string;
  /** `bad`, `warn`, `you` or empty. */
  tone: string;
  /** Tasks that the text names, so that they can be links. */
  tasks?: string[];
}

export interface TaskRow extends Row {
  title: string;
  status: string;
  /** Sorts a column: lower comes first. */
  rank: number;
  priority: number | null;
  /** Since when it is in its status. */
  since: string;
  lines: CardLine[];
  /** The column's shared reason that holds for this task too, by its name in `columns[].notes`. */
  note?: string | null;
  agent?: string | null;
  model?: string | null;
  worker?: string | null;
  added?: number;
  removed?: number;
  /** `$0.41`; empty if nothing was spent. */
  cost?: string;
  spec?: string | null;
  /** Not begun, or done: shown in regular weight. */
  quiet?: boolean;
}

export interface ColumnRow extends Row {
  /** Null if no cap holds. */
  cap: number | null;
  notes: { id: string; text: string; glyph: string }[];
}

export interface WorkerRow extends Row {
  name: string;
  state: string;
  /** Which group of the list it stands in, in the order of `terms.attention`. */
  attention: string;
  task: string | null;
  title: string;
  agent: string;
  text: string;
  tone: string;
  since: string;
}

export interface WaitingRow extends Row {
  kind: string;
  glyph: string;
  project: string;
  text: string;
  about: string;
  since: string | null;
  /** When the question expires, if it does. */
  until?: string | null;
  blocks: string[];
  rank: number;
  task: string | null;
}

export interface QueueRow extends Row {
  task: string;
  title: string;
  /** Place in the queue, counted from 1. */
  rank: number;
  state: string;
  text: string;
}

export interface ProjectRow extends Row {
  name: string;
  waiting: number;
}

/** What the frame shows: one row, with the id `frame`. */
export interface Facts extends Row {
  project: string;
  person: string;
  fleet: { text: string; glyph: string };
  main: { text: string; glyph: string; commit: string };
  money: { text: string; spent: number; reserved: number; cap: number | null } | null;
  machine: string;
  /** No task was ever added: the page shows the first steps. */
  firstRun: boolean;
}

export interface Tables {
  tasks: TaskRow;
  columns: ColumnRow;
  workers: WorkerRow;
  waiting: WaitingRow;
  queue: QueueRow;
  projects: ProjectRow;
  facts: Facts;
}

export type TableName = keyof Tables;
export const TABLES: readonly TableName[] = ['tasks', 'columns', 'workers', 'waiting', 'queue', 'projects', 'facts'];

/** All rows at the record `seq`. */
export type View = { seq: number; at: string } & { [T in TableName]: Tables[T][] };

/** Whole rows that changed, and the ids of rows that are gone, up to the record `seq`. */
export type ViewChange = { seq: number; at: string; gone: { [T in TableName]?: string[] } } & { [T in TableName]?: Tables[T][] };

export interface Heartbeat {
  seq: number;
  at: string;
}

/** What never changes while the server runs. */
export interface Terms {
  statuses: { id: string; label: string; glyph: string }[];
  moves: Move[];
  keys: KeyTerm[];
  waitingKinds: { id: string; label: string; glyph: string }[];
  attention: { id: string; label: string }[];
}

export interface Move {
  from: string;
  to: string;
  allowed: boolean;
  /** The words of the rule if it is not allowed; else what the move asks for. */
  words: string;
  fields: { name: string; label: string; kind: string; required: boolean }[];
}

/** A row of the one table of keys: it feeds dispatch, help, palette and foot. */
export interface KeyTerm {
  action: string;
  /** Each is a way to press it: `Ctrl+K`, `?`, `Space`, or two strokes with a space between them: `M R`. */
  keys: string[];
  /** Names of views; empty: everywhere. */
  views: string[];
  words: string;
  /** Shown in the foot of its views. */
  foot?: boolean;
}
