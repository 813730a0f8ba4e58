import { describe, expect, test } from 'vitest';
import { parsePatch } from '../src/screens/task/diff/parse';
import { between, diffRows, longer, step, type DiffRow } from '../src/screens/task/diff/rows';
import { shortHash } from '../src/screens/task/diff/viewed';
import { foldStory } from '../src/screens/task/history-fold';
import { lineWords, movedWords, type Draft, type Place, type Remark } from '../src/screens/task/talk';
import { foldTranscript, resultLine, transcriptText } from '../src/screens/task/transcript-fold';
import type { Entry, Told } from '../src/screens/task/types';
import { otherTip, waysOf } from '../src/screens/task/ways';
import { plain } from '../src/parts/plain';
import type { Action, Terms, WaitingRow } from '../src/api/view';

const files = parsePatch('diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,3 +1,4 @@\n one\n-two\n+Two\n+three\n last\ndiff --git a/b b/b\nnew file mode 100644\n--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+x\n');
const draft = (place: Partial<Place>, id = 'd'): Remark => ({ draft: { id, path: 'a', side: 'new', line: 1, endLine: 1, text: '', tip: '', at: '', by: '', ...place } as Draft });
const rowsOf = (remarks: Remark[] = [], folded: string[] = [], composing: Place | null = null, editing: string | null = null) =>
  diffRows({ files, folded: new Set(folded), remarks, composing, editing });
const words = (rows: readonly DiffRow[]) => rows.map((row) => (row.type === 'line' ? row.line.text : row.type === 'file' ? `[${row.file.path}]` : row.type === 'talk' && row.where ? `talk ${row.where}` : row.type));

describe('the rows of a diff', () => {
  test('hold a comment below the last line of its range', () => {
    expect(words(rowsOf([draft({ line: 2, endLine: 3 })]))).toEqual(['[a]', 'hunk', 'one', 'two', 'Two', 'three', 'talk', 'last', '[b]', 'hunk', 'x']);
    expect(words(rowsOf([draft({ side: 'old', line: 2, endLine: 2 })]))).toEqual(['[a]', 'hunk', 'one', 'two', 'talk', 'Two', 'three', 'last', '[b]', 'hunk', 'x']);
  });

  test('keep a comment whose line or file is not in the diff', () => {
    expect(words(rowsOf([draft({ line: 70, endLine: 70 })])).slice(0, 2)).toEqual(['[a]', 'talk on line 70, which is not in this diff']);
    expect(words(rowsOf([draft({ path: 'gone' })]))[0]).toBe('talk on gone, which this diff does not change');
  });

  test('of a folded file are its head alone, with the number of its comments', () => {
    const rows = rowsOf([draft({})], ['a']);
    expect(words(rows)).toEqual(['[a]', '[b]', 'hunk', 'x']);
    expect(rows[0]).toMatchObject({ folded: true, remarks: 1 });
  });

  test('have the field where a comment is written, in place of the draft that it changes', () => {
    const place: Place = { path: 'a', side: 'new', line: 2, endLine: 2 };
    expect(words(rowsOf([draft({ line: 2, endLine: 2 })], [], place, 'd'))).toEqual(['[a]', 'hunk', 'one', 'two', 'Two', 'compose', 'three', 'last', '[b]', 'hunk', 'x']);
  });

  test('have keys that occur once', () => {
    const keys = rowsOf([draft({}), draft({ line: 2, endLine: 2 }, 'e')]).map((row) => row.key);
    expect(new Set(keys).size).toBe(keys.length);
  });
});

describe('the chosen lines', () => {
  test('go from line to line over heads and files, and stop at both ends', () => {
    const rows = rowsOf();
    let place = step(rows, null, 1);
    const seen = [place];
    for (let at = 0; at < 6; at += 1) seen.push((place = step(rows, place, 1)));
    expect(seen.map((each) => each && `${each.path} ${each.side} ${each.line}`)).toEqual(['a new 1', 'a old 2', 'a new 2', 'a new 3', 'a new 4', 'b new 1', 'b new 1']);
    expect(step(rows, seen[1] ?? null, -1)).toMatchObject({ side: 'new', line: 1 });
  });

  test('grow on their own side, by the key and by Shift and a click', () => {
    const from: Place = { path: 'a', side: 'new', line: 1, endLine: 1 };
    expect(longer(files, from)).toMatchObject({ line: 1, endLine: 2 });
    expect(longer(files, { ...from, line: 4, endLine: 4 })).toMatchObject({ endLine: 4 });
    const [, removed, , third] = files[0]?.hunks[0]?.lines ?? [];
    expect(between(from, 'a', third!)).toMatchObject({ side: 'new', line: 1, endLine: 3 });
    expect(between({ ...from, line: 4, endLine: 4 }, 'a', third!)).toMatchObject({ line: 3, endLine: 4 });
    expect(between(from, 'a', removed!)).toMatchObject({ side: 'old', line: 2, endLine: 2 });
    expect(between(from, 'b', third!)).toMatchObject({ path: 'b', line: 3, endLine: 3 });
  });

  test('are named in words', () => {
    expect(lineWords({ side: 'new', line: 2, endLine: 3 })).toBe('lines 2–3');
    expect(lineWords({ side: 'old', line: 2, endLine: 2 })).toBe('line 2 of the old file');
    expect([movedWords(3), movedWords(true), movedWords(null), movedWords(false)]).toEqual(['line moved, was line 3', 'line moved', null, null]);
  });
});

test('two patches that differ in one character have two hashes', () => {
  expect(shortHash('+a\n')).not.toBe(shortHash('+b\n'));
  expect(shortHash('+a\n')).toBe(shortHash('+a\n'));
});

describe('a transcript', () => {
  const entries = (...list: [string, string][]): Entry[] => list.map(([kind, text], index) => ({ cursor: index + 1, at: null, kind, text }));
  const shown = (list: Entry[]) => foldTranscript(list).map((line) => (line.type === 'call' ? `${line.tool}|${line.argument}|${resultLine(line.result)}${line.failed ? '|failed' : ''}` : line.text));

  test('has a call and its result in one line, also if several calls are answered later', () => {
    expect(shown(entries(['step', 'ta-1 init'], ['tool', 'Read(a)'], ['tool', 'Read(b)'], ['tool', 'Bash(x (y))'], ['result', 'Read: A\nB'], ['failure', 'Bash: exit code 1'], ['result', 'Read: '], ['text', 'DONE'])))
      .toEqual(['ta-1 init', 'Read|a|A … 2 lines', 'Read|b|done', 'Bash|x (y)|exit code 1|failed', 'DONE']);
  });

  test('keeps a result without a call, a call without a result, and kinds that are new', () => {
    expect(shown(entries(['result', 'Bash: late'], ['tool', 'odd call'], ['notice', 'compacted']))).toEqual(['Bash: late', 'odd call||no result yet', 'compacted']);
  });

  test('does not pair a result with a call of the step before', () => {
    expect(shown(entries(['tool', 'Bash(a)'], ['step', 'again'], ['result', 'Bash: x']))).toEqual(['Bash|a|no result yet', 'again', 'Bash: x']);
  });

  test('as a file steers no terminal', () => {
    expect(transcriptText(entries(['text', 'red \u001b[31m\nnext']), plain)).toBe('-  text      red ⟨U+001B⟩[31m\n    next\n');
  });
});

test('a story folds plain lines between those that matter, and keeps the first and the last', () => {
  const told = (tone: Told['tone'], text: string): Told => ({ timestamp: '', actor: '', tone, text, task: null, worker: null, run: null });
  const lines = foldStory([told('plain', 'added'), told('plain', 'a'), told('plain', 'b'), told('plain', 'c'), told('error', 'failed'), told('plain', 'd'), told('plain', 'now')]);
  expect(lines.map((line) => (line.type === 'told' ? line.told.text : line.items.length))).toEqual(['added', 3, 'failed', 'd', 'now']);
});

describe('what can be done', () => {
  const action = (code: string, more: Partial<Action> = {}): Action => ({ code, label: code, happens: [], request: { method: 'POST', path: '/x', body: {} }, ...more });
  const terms = { statuses: [{ id: 'DONE', label: 'Done' }], moves: [{ from: 'REVIEW', to: 'DONE', allowed: false, words: 'Not merged.', fields: [] }, { from: 'INBOX', to: 'DONE', allowed: true, words: '', fields: [] }] } as unknown as Terms;

  test('is what the rows offer and the moves of its status; a forbidden move is listed with its rule', () => {
    const waiting = { actions: [action('show', { request: null, page: '/task/ta-1/review' }), action('yes', { answer: 'yes' }), action('later'), action('no', { answer: 'no' })] } as unknown as WaitingRow;
    const ways = waysOf({ id: 'ta-1', status: 'REVIEW' }, terms, waiting);
    expect([ways.yes?.code, ways.no?.code, ways.others.map((each) => `${each.label} ${each.refused ?? ''}`.trim())]).toEqual(['yes', 'no', ['later', 'Move to Done Not merged.']]);
  });

  test('is not to approve a commit that is not on screen', () => {
    const approve = action('a', { request: { method: 'POST', path: '/x', body: { approve: true, tip: 'bbbbbbbbb' } } });
    expect(otherTip(approve, 'aaaaaaaaa')).toContain('aaaaaaa');
    expect([otherTip(approve, 'bbbbbbbbb'), otherTip(approve, null), otherTip(action('b'), 'x')]).toEqual([null, null, null]);
  });
});
