/**
 * From the entries of a transcript to the rows that are shown: a call and what it gave are one row. Pure, and incremental:
 * appending costs as much as what is appended, however long the transcript is.
 */
import type { components } from '../../api/types';

export type Entry = components['schemas']['Entry'];

interface Base {
  /** The cursor of its first entry: it stays when older rows are put before it. */
  key: string;
  /** Milliseconds; null where it is not known. */
  at: number | null;
}

export interface CallRow extends Base {
  kind: 'call';
  tool: string;
  argument: string;
  /** While there is no result: it runs, a person is asked about it, or its step ended before it had one. */
  waits: 'runs' | 'asks' | 'lost';
  result: { text: string; failed: boolean; took: number | null } | null;
}

export interface TextRow extends Base {
  /** `text` is what an agent said; `step` a rule between two steps; the others are notes of their kind. */
  kind: 'text' | 'step' | 'question' | 'retry' | 'notice' | 'stop' | 'end' | 'other';
  text: string;
}

/** What a person said to the agent. */
export interface MessageRow extends Base {
  kind: 'message';
  by: string;
  text: string;
  receipt: Receipt;
}

export interface Receipt {
  state: 'queued' | 'delivered' | 'consumed';
  words: string;
  at: number | null;
}

export type Row = CallRow | TextRow | MessageRow;
export type LogRow = CallRow | TextRow;

const NOTES: ReadonlySet<string> = new Set(['text', 'step', 'question', 'retry', 'notice', 'stop', 'end']);

export class Fold {
  readonly rows: LogRow[] = [];
  /** Calls without a result, by tool: positions in `rows`, oldest first. */
  private readonly open = new Map<string, number[]>();

  constructor(private readonly worker: string) {}

  push(entries: readonly Entry[]): void {
    for (const entry of entries) this.take(entry);
  }

  private take(entry: Entry): void {
    const key = String(entry.cursor);
    const at = entry.at === null ? null : Date.parse(entry.at);
    if (entry.kind === 'call' || entry.kind === 'tool') {
      const { tool, argument } = callOf(entry.text);
      const waiting = this.open.get(tool);
      if (waiting) waiting.push(this.rows.length);
      else this.open.set(tool, [this.rows.length]);
      this.rows.push({ kind: 'call', key, at, tool, argument, waits: 'runs', result: null });
      return;
    }
    if (entry.kind === 'result' || entry.kind === 'failure') return this.result(entry, key, at);
    // What is asked about stands there already, as a call.
    if (entry.kind === 'question' && this.asks(entry.text)) return;
    // A new step answers no call of the step before.
    if (entry.kind === 'step' || entry.kind === 'end') this.lose();
    const kind = (NOTES.has(entry.kind) ? entry.kind : 'other') as TextRow['kind'];
    const text = kind === 'step' ? stepWords(entry.text, this.worker) : kind === 'other' ? `${entry.kind}: ${entry.text}` : entry.text;
    this.rows.push({ kind, key, at, text });
  }

  private asks(text: string): boolean {
    const { tool, argument } = callOf(text);
    const index = this.open.get(tool)?.find((each) => this.callAt(each)?.argument === argument);
    return index !== undefined && this.mark(index, 'asks');
  }

  private lose(): void {
    for (const index of [...this.open.values()].flat()) this.mark(index, 'lost');
    this.open.clear();
  }

  private callAt(index: number): CallRow | undefined {
    const row = this.rows[index];
    return row?.kind === 'call' ? row : undefined;
  }

  private mark(index: number, waits: CallRow['waits']): boolean {
    const call = this.callAt(index);
    if (call) this.rows[index] = { ...call, waits };
    return call !== undefined;
  }

  /** Calls of one tool are answered in their order. */
  private result(entry: Entry, key: string, at: number | null): void {
    const { tool, output } = resultOf(entry.text);
    const failed = entry.kind === 'failure';
    const index = this.open.get(tool)?.shift();
    const call = index === undefined ? undefined : this.callAt(index);
    if (index === undefined || call === undefined) {
      this.rows.push({ kind: 'call', key, at, tool, argument: '', waits: 'runs', result: { text: output, failed, took: null } });
      return;
    }
    const took = at !== null && call.at !== null && at > call.at ? at - call.at : null;
    // A new object: rows are compared by identity.
    this.rows[index] = { ...call, result: { text: output, failed, took } };
  }
}

/** `Bash(git add -A)`: the tool and its argument. */
function callOf(text: string): { tool: string; argument: string } {
  const at = text.indexOf('(');
  if (at === -1) return { tool: text, argument: '' };
  return { tool: text.slice(0, at), argument: text.endsWith(')') ? text.slice(at + 1, -1) : text.slice(at + 1) };
}

/** `Bash: what it printed`. */
function resultOf(text: string): { tool: string; output: string } {
  const at = text.indexOf(': ');
  if (at === -1) return { tool: text.replace(/:$/, ''), output: '' };
  return { tool: text.slice(0, at), output: text.slice(at + 2) };
}

function stepWords(text: string, worker: string): string {
  const suffix = `, worker ${worker}`;
  const short = text.endsWith(suffix) ? text.slice(0, -suffix.length) : text;
  return short.replace(' ', ' · ');
}

/** Lines of an output, without an empty one at its end. */
export function linesOf(text: string): string[] {
  const lines = text.split('\n');
  while (lines.length > 0 && lines[lines.length - 1] === '') lines.pop();
  return lines;
}

/** The end of a folded call: its only line if that is short, else how many there are. */
export function summary(result: CallRow['result']): string {
  if (result === null) return '';
  const lines = linesOf(result.text);
  const only = lines[0] ?? '';
  const what = lines.length === 0 ? (result.failed ? 'failed' : 'ok') : lines.length > 1 ? `${lines.length} lines` : only.length > 48 ? '1 line' : only;
  return [result.failed && lines.length > 0 && what !== only ? `failed, ${what}` : what, result.took === null ? '' : duration(result.took)].filter(Boolean).join(', ');
}

function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${milliseconds} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  const seconds = Math.round(milliseconds / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

/** Puts what people said between the rows, by time. Without any, the same array. */
export function withMessages(rows: readonly LogRow[], messages: readonly MessageRow[]): readonly Row[] {
  if (messages.length === 0) return rows;
  const out: Row[] = [...rows];
  const sorted = [...messages].sort((a, b) => (a.at ?? 0) - (b.at ?? 0));
  let from = out.length;
  // From the end: messages are recent, transcripts are long.
  for (const message of sorted.reverse()) {
    while (from > 0 && laterThan(out[from - 1], message.at ?? 0)) from -= 1;
    out.splice(from, 0, message);
  }
  return out;
}

/** A row without a time belongs to the one before it. */
function laterThan(row: Row | undefined, at: number): boolean {
  return row !== undefined && (row.at === null || row.at > at);
}
