/** Names of the generated types that this screen uses. */
import type { components } from '../../api/types';

type Schemas = components['schemas'];

export type Task = Schemas['Task'];
export type Reviewed = Schemas['Reviewed'];
export type TaskDiff = Schemas['TaskDiff'];
export type TaskWhy = Schemas['TaskWhy'];
export type Guard = Schemas['Guard'];
export type Offered = Schemas['Offered'];
export type Told = Schemas['Told'];
export type LogRecord = Schemas['Record'];
export type Entry = Schemas['Entry'];
export type Transcript = Schemas['Transcript'];
export type TestRun = Schemas['TestRun'];
export type Run = Schemas['Run'];
export type Spend = Schemas['Spend'];
