/** A transcript in lines: a call and its result are one. Pure. */
import type { Entry } from './types';

export type Line =
  | { type: 'step'; key: string; at: string | null; text: string }
  | { type: 'call'; key: string; at: string | null; tool: string; argument: string; result: string | null; failed: boolean }
  | { type: 'said'; key: string; at: string | null; kind: string; text: string };

const CALL = /^([\w.:/-]+)\(([\s\S]*)\)$/;
const RESULT = /^([\w.:/-]+): ?([\s\S]*)$/;

/** The kinds of entries are those of docs/api.md; one that is not known here is shown as text with its name. */
export function foldTranscript(entries: readonly Entry[]): Line[] {
  const lines: Line[] = [];
  // Calls without a result yet. Several calls of one turn are answered in their order.
  let open: Extract<Line, { type: 'call' }>[] = [];
  for (const entry of entries) {
    const base = { key: String(entry.cursor), at: entry.at };
    if (entry.kind === 'step') {
      open = [];
      lines.push({ type: 'step', ...base, text: entry.text });
    } else if (entry.kind === 'tool' || entry.kind === 'call') {
      const match = CALL.exec(entry.text);
      const call = { type: 'call' as const, ...base, tool: match?.[1] ?? entry.text, argument: match?.[2] ?? '', result: null, failed: false };
      open.push(call);
      lines.push(call);
    } else if (entry.kind === 'result' || entry.kind === 'failure') {
      const match = RESULT.exec(entry.text);
      const call = open.find((each) => each.tool === match?.[1]) ?? (match ? undefined : open[0]);
      if (call) {
        call.result = match?.[2] ?? entry.text;
        call.failed = entry.kind === 'failure';
        open = open.filter((each) => each !== call);
      } else lines.push({ type: 'said', ...base, kind: entry.kind, text: entry.text });
    } else lines.push({ type: 'said', ...base, kind: entry.kind, text: entry.text });
  }
  return lines;
}

/** What stands at the right of a call on one line. */
export function resultLine(result: string | null): string {
  if (result === null) return 'no result yet';
  const lines = result.split('\n').filter((line) => line.trim() !== '');
  if (lines.length === 0) return 'done';
  return lines.length === 1 ? (lines[0] ?? '') : `${lines[0]} … ${lines.length} lines`;
}

/** As a file. Characters that steer a terminal are made visible by `plain`: the file may be shown with `cat`. */
export function transcriptText(entries: readonly Entry[], plain: (text: string) => string): string {
  return entries.map((entry) => {
    const text = plain(entry.text).replaceAll('\n', '\n    ');
    return `${entry.at ?? '-'}  ${entry.kind.padEnd(8)}  ${text}\n`;
  }).join('');
}
