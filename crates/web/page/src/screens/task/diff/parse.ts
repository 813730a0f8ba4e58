/** Reads the unified patch that git prints. Pure, and it never throws: a line that it does not know is shown as a note. */
import { pairLines } from './pairs';
import { headerPaths, namedPath } from './paths';

export type Side = 'old' | 'new';

export interface DiffLine {
  kind: 'same' | 'add' | 'del';
  /** Number in the old file; null for an added line. */
  old: number | null;
  new: number | null;
  text: string;
  /** The line ends with CR LF. */
  cr: boolean;
  /** The file ends here without a line end. */
  noEnd: boolean;
  /** The line of the other side that this one replaces: differences inside the line are marked. */
  pair?: string;
}

export interface Hunk {
  /** `@@ -1,2 +1,6 @@`, and the words that git puts after it. */
  head: string;
  words: string;
  lines: DiffLine[];
}

export interface DiffFile {
  /** The new path, or the old one of a removed file. */
  path: string;
  oldPath: string | null;
  change: 'changed' | 'added' | 'removed' | 'renamed' | 'copied';
  binary: boolean;
  /** In words: mode changes, similarity of a rename. */
  notes: string[];
  added: number;
  removed: number;
  hunks: Hunk[];
  /** Lines that end with CR LF and lines that do not: only then the ends are worth showing. */
  mixedEnds: boolean;
  /** Its part of the patch, by which "viewed" is remembered. */
  patch: string;
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$/;
const NO_END = /^\\ /;

export function parsePatch(patch: string): DiffFile[] {
  const files: DiffFile[] = [];
  for (const part of splitFiles(patch)) files.push(parseFile(part));
  return files;
}

/** A line that begins with `diff --git` inside a hunk has a sign before it, so the word at the start of a line begins a file. */
function splitFiles(patch: string): string[] {
  const starts: number[] = [];
  if (patch.startsWith('diff --git ')) starts.push(0);
  for (let at = patch.indexOf('\ndiff --git '); at !== -1; at = patch.indexOf('\ndiff --git ', at + 1)) starts.push(at + 1);
  return starts.map((start, index) => patch.slice(start, starts[index + 1] ?? patch.length));
}

function parseFile(patch: string): DiffFile {
  const lines = patch.split('\n');
  if (lines.at(-1) === '') lines.pop();
  const [oldName, newName] = headerPaths(lines[0] ?? '');
  const file: DiffFile = {
    path: newName, oldPath: null, change: 'changed', binary: false, notes: [], added: 0, removed: 0, hunks: [], mixedEnds: false, patch,
  };
  let before = oldName;
  let at = 1;
  let modes: string[] = [];
  for (; at < lines.length; at += 1) {
    const line = trimCr(lines[at] ?? '');
    if (line.startsWith('@@ ')) break;
    const [key, value] = header(line);
    if (key === '--- ') before = namedPath(value) ?? before;
    else if (key === '+++ ') file.path = namedPath(value) ?? file.path;
    else if (key === 'rename from ' || key === 'copy from ') before = namedPath(value, false) ?? before;
    else if (key === 'rename to ' || key === 'copy to ') {
      file.path = namedPath(value, false) ?? file.path;
      file.change = key === 'rename to ' ? 'renamed' : 'copied';
    } else if (key === 'new file mode ') {
      file.change = 'added';
      if (value !== '100644') file.notes.push(`new file, mode ${value}`);
    } else if (key === 'deleted file mode ') file.change = 'removed';
    else if (key === 'old mode ' || key === 'new mode ') modes = [...modes, value];
    else if (key === 'similarity index ' && value !== '100%') file.notes.push(`${value} alike`);
    else if (key === 'Binary files ' || key === 'GIT binary patch') {
      file.binary = true;
      // A binary patch is data of its own that nobody reads.
      break;
    } else if (key !== 'index ' && key !== 'similarity index ' && key !== 'dissimilarity index ' && line !== '') file.notes.push(line);
  }
  if (modes.length === 2) file.notes.push(`mode ${modes[0]} → ${modes[1]}`);
  if (file.change === 'removed') file.path = before;
  if (before !== file.path && file.change !== 'added') file.oldPath = before;
  if (!file.binary) readHunks(file, lines, at);
  return file;
}

const HEADERS = ['--- ', '+++ ', 'index ', 'old mode ', 'new mode ', 'new file mode ', 'deleted file mode ', 'similarity index ', 'dissimilarity index ',
  'rename from ', 'rename to ', 'copy from ', 'copy to ', 'Binary files ', 'GIT binary patch'];

function header(line: string): [string, string] {
  const key = HEADERS.find((each) => line.startsWith(each)) ?? '';
  return [key, line.slice(key.length)];
}

function readHunks(file: DiffFile, lines: readonly string[], from: number): void {
  let hunk: Hunk | null = null;
  let oldLine = 0;
  let newLine = 0;
  let oldLeft = 0;
  let newLeft = 0;
  let withCr = 0;
  let count = 0;
  for (let at = from; at < lines.length; at += 1) {
    const line = lines[at] ?? '';
    if (hunk && NO_END.test(line)) {
      const last = hunk.lines.at(-1);
      if (last) last.noEnd = true;
      continue;
    }
    if (!hunk || (oldLeft <= 0 && newLeft <= 0)) {
      const match = HUNK.exec(trimCr(line));
      if (!match) {
        if (line !== '') file.notes.push(trimCr(line));
        continue;
      }
      oldLine = Number(match[1]);
      newLine = Number(match[3]);
      oldLeft = Number(match[2] ?? 1);
      newLeft = Number(match[4] ?? 1);
      const words = (match[5] ?? '').trim();
      hunk = { head: trimCr(line).slice(0, trimCr(line).length - (match[5] ?? '').length), words, lines: [] };
      file.hunks.push(hunk);
      continue;
    }
    const sign = line[0] ?? ' ';
    const cr = line.endsWith('\r') && line.length > 1;
    const text = cr ? line.slice(1, -1) : line.slice(1);
    const shared = { text, cr, noEnd: false };
    count += 1;
    if (cr) withCr += 1;
    if (sign === '+') {
      hunk.lines.push({ ...shared, kind: 'add', old: null, new: newLine });
      newLine += 1;
      newLeft -= 1;
      file.added += 1;
    } else if (sign === '-') {
      hunk.lines.push({ ...shared, kind: 'del', old: oldLine, new: null });
      oldLine += 1;
      oldLeft -= 1;
      file.removed += 1;
    } else {
      // Some tools cut the one space of an empty context line.
      hunk.lines.push({ ...shared, kind: 'same', old: oldLine, new: newLine });
      oldLine += 1;
      newLine += 1;
      oldLeft -= 1;
      newLeft -= 1;
    }
  }
  for (const each of file.hunks) pairLines(each.lines);
  file.mixedEnds = withCr > 0 && withCr < count;
}

function trimCr(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line;
}
