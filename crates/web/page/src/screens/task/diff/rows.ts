/** The diff as one flat list of rows, so that only those in sight are mounted. Pure. */
import { placeOf, keyOf, type Place, type Remark } from '../talk';
import type { DiffFile, DiffLine, Hunk, Side } from './parse';

export type DiffRow =
  | { type: 'file'; key: string; file: DiffFile; folded: boolean; remarks: number }
  | { type: 'note'; key: string; file: DiffFile; text: string }
  | { type: 'hunk'; key: string; hunk: Hunk }
  | { type: 'line'; key: string; file: DiffFile; line: DiffLine }
  | { type: 'talk'; key: string; remarks: readonly Remark[]; where: string | null }
  | { type: 'compose'; key: 'compose' };

export interface Shown {
  files: readonly DiffFile[];
  /** Paths that are folded. */
  folded: ReadonlySet<string>;
  remarks: readonly Remark[];
  /** Where a comment is being written. */
  composing: Place | null;
  /** The draft that is being changed: its place is taken by the field. */
  editing: string | null;
}

export function diffRows({ files, folded, remarks, composing, editing }: Shown): DiffRow[] {
  const shown = remarks.filter((remark) => !('draft' in remark && remark.draft.id === editing));
  const byPath = group(shown);
  const rows: DiffRow[] = [];
  const known = new Set(files.map((file) => file.path));
  for (const [path, list] of byPath) {
    if (!known.has(path)) rows.push(talkRow(list, `on ${path}, which this diff does not change`));
  }
  if (composing && !known.has(composing.path)) rows.push({ type: 'compose', key: 'compose' });
  for (const file of files) fileRows(rows, file, folded.has(file.path), byPath.get(file.path) ?? [], composing?.path === file.path ? composing : null);
  return rows;
}

function fileRows(rows: DiffRow[], file: DiffFile, folded: boolean, remarks: readonly Remark[], composing: Place | null): void {
  rows.push({ type: 'file', key: `file ${file.path}`, file, folded, remarks: remarks.length });
  if (folded) return;
  for (const [index, text] of notesOf(file).entries()) rows.push({ type: 'note', key: `note ${file.path} ${index}`, file, text });
  const at = new Map<string, Remark[]>();
  for (const remark of remarks) {
    const place = placeOf(remark);
    const key = `${place.side} ${place.endLine}`;
    at.set(key, [...(at.get(key) ?? []), remark]);
  }
  const inside: DiffRow[] = [];
  let composed = false;
  for (const [index, hunk] of file.hunks.entries()) {
    inside.push({ type: 'hunk', key: `hunk ${file.path} ${index}`, hunk });
    for (const line of hunk.lines) {
      inside.push({ type: 'line', key: lineKey(file.path, line), file, line });
      if (at.size === 0 && !composing) continue;
      const here: Remark[] = [];
      for (const key of [line.new !== null && `new ${line.new}`, line.old !== null && `old ${line.old}`]) {
        if (!key || !at.has(key)) continue;
        here.push(...(at.get(key) ?? []));
        at.delete(key);
      }
      if (here.length > 0) inside.push(talkRow(here, null));
      if (composing && numberOn(line, composing.side) === composing.endLine) {
        inside.push({ type: 'compose', key: 'compose' });
        composed = true;
      }
    }
  }
  // Its line is not in the diff any more: it stands at the head of its file.
  for (const list of at.values()) {
    const place = list[0] && placeOf(list[0]);
    rows.push(talkRow(list, place ? `on line ${place.endLine}, which is not in this diff` : null));
  }
  if (composing && !composed) rows.push({ type: 'compose', key: 'compose' });
  rows.push(...inside);
}

function notesOf(file: DiffFile): string[] {
  const notes: string[] = [];
  if (file.oldPath !== null) notes.push(`${file.change === 'copied' ? 'copied from' : 'was'} ${file.oldPath}`);
  notes.push(...file.notes);
  if (file.binary) notes.push('Binary file: its content is not shown.');
  else if (file.hunks.length === 0 && (file.change === 'added' || file.change === 'removed')) notes.push('The file is empty.');
  else if (file.hunks.length === 0 && notes.length === 0) notes.push('No line of it changes.');
  return notes;
}

function talkRow(remarks: readonly Remark[], where: string | null): DiffRow {
  return { type: 'talk', key: `talk ${remarks.map(keyOf).join(' ')}`, remarks, where };
}

export function lineKey(path: string, line: DiffLine): string {
  return line.new === null ? `line ${path} old ${line.old}` : `line ${path} new ${line.new}`;
}

/** The side on which a comment on this line stands. */
export function sideOf(line: DiffLine): Side {
  return line.new === null ? 'old' : 'new';
}

export function numberOn(line: DiffLine, side: Side): number | null {
  return side === 'old' ? line.old : line.new;
}

export function isIn(place: Place, path: string, line: DiffLine): boolean {
  if (place.path !== path) return false;
  const number = numberOn(line, place.side);
  return number !== null && number >= place.line && number <= place.endLine;
}

/** The next line in a direction; from the start or the end if there is no cursor. */
export function step(rows: readonly DiffRow[], cursor: Place | null, by: 1 | -1): Place | null {
  const here = cursor ? rows.findIndex((row) => row.type === 'line' && row.file.path === cursor.path && numberOn(row.line, cursor.side) === (by > 0 ? cursor.endLine : cursor.line)) : -1;
  const from = here < 0 ? (by > 0 ? 0 : rows.length - 1) : here + by;
  for (let at = from; at >= 0 && at < rows.length; at += by) {
    const row = rows[at];
    if (row?.type === 'line') return placeAt(row.file.path, row.line);
  }
  return cursor;
}

export function placeAt(path: string, line: DiffLine): Place {
  const side = sideOf(line);
  const number = numberOn(line, side) ?? 0;
  return { path, side, line: number, endLine: number };
}

/** The range with one more line at its end; lines of the other side are passed over. */
export function longer(files: readonly DiffFile[], range: Place): Place {
  const lines = files.find((file) => file.path === range.path)?.hunks.flatMap((hunk) => hunk.lines) ?? [];
  const next = lines.map((line) => numberOn(line, range.side)).find((number) => number !== null && number > range.endLine);
  return next === undefined || next === null || next !== range.endLine + 1 ? range : { ...range, endLine: next };
}

/** From one line to another of the same file; the second one alone if they have no side in common. */
export function between(from: Place | null, path: string, line: DiffLine): Place {
  const to = placeAt(path, line);
  if (!from || from.path !== path) return to;
  const number = numberOn(line, from.side);
  if (number === null) return to;
  return { ...from, line: Math.min(from.line, number), endLine: Math.max(from.line, number) };
}

function group(remarks: readonly Remark[]): Map<string, Remark[]> {
  const map = new Map<string, Remark[]>();
  for (const remark of remarks) {
    const { path } = placeOf(remark);
    map.set(path, [...(map.get(path) ?? []), remark]);
  }
  return map;
}
