/** What `GET /api/v1/view` and `GET /api/v1/terms` answer: names of the generated types, and the tables that a view has. */
import type { components } from './types';

type Schemas = components['schemas'];

export type CardLine = Schemas['CardLine'];
export type TaskRow = Schemas['TaskRow'];
export type ColumnRow = Schemas['ColumnRow'];
export type WorkerRow = Schemas['WorkerRow'];
export type WaitingRow = Schemas['WaitingRow'];
export type QueueRow = Schemas['QueueRow'];
export type Facts = Schemas['FactsRow'];
export type Action = Schemas['Action'];
export type Field = Schemas['Field'];
export type View = Schemas['View'];
export type ViewChange = Schemas['ViewChange'];
export type Terms = Schemas['Terms'];
export type Move = Schemas['MoveTerm'];
/** A row of the one table of keys: it feeds dispatch, help, palette and foot. */
export type KeyTerm = Schemas['KeyTerm'];

export interface Tables {
  tasks: TaskRow;
  columns: ColumnRow;
  workers: WorkerRow;
  waiting: WaitingRow;
  queue: QueueRow;
  facts: Facts;
}

export type TableName = keyof Tables;
export const TABLES: readonly TableName[] = ['tasks', 'columns', 'workers', 'waiting', 'queue', 'facts'];

export interface Heartbeat {
  seq: number;
  at: string;
}
