import { describe, expect, test } from 'vitest';
import { alike, markDifferences } from '../src/screens/task/diff/pairs';
import { parsePatch, type DiffFile } from '../src/screens/task/diff/parse';
import { headerPaths, unquote } from '../src/screens/task/diff/paths';

const one = (...lines: string[]): DiffFile => {
  const files = parsePatch(`${lines.join('\n')}\n`);
  expect(files).toHaveLength(1);
  return files[0] as DiffFile;
};
const shown = (file: DiffFile) => file.hunks.flatMap((hunk) => hunk.lines.map((line) => `${line.old ?? '-'} ${line.new ?? '-'} ${line.kind} ${line.text}`));

describe('a patch', () => {
  test('has lines with the numbers of both sides, over several hunks', () => {
    const file = one('diff --git a/a.txt b/a.txt', 'index 1..2 100644', '--- a/a.txt', '+++ b/a.txt',
      '@@ -1,2 +1,3 @@', ' one', '-two', '+Two', '+three', '@@ -10 +11 @@ fn name() {', '-ten', '+Ten');
    expect(shown(file)).toEqual(['1 1 same one', '2 - del two', '- 2 add Two', '- 3 add three', '10 - del ten', '- 11 add Ten']);
    expect([file.added, file.removed]).toEqual([3, 2]);
    expect(file.hunks.map((hunk) => [hunk.head, hunk.words])).toEqual([['@@ -1,2 +1,3 @@', ''], ['@@ -10 +11 @@', 'fn name() {']]);
  });

  test('of several files is split at their heads, not at text that looks like one', () => {
    const files = parsePatch('diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n-diff --git a/x b/x\n+--- a/evil\n++++ b/evil\ndiff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-b\n+B\n');
    expect(files.map((file) => file.path)).toEqual(['a', 'b']);
    expect(shown(files[0] as DiffFile)).toEqual(['1 - del diff --git a/x b/x', '- 1 add --- a/evil', '- 2 add +++ b/evil']);
  });

  test('of a hunk counts its lines, so that a removed line `-- x` is not the head of a file', () => {
    const file = one('diff --git a/q.sql b/q.sql', '--- a/q.sql', '+++ b/q.sql', '@@ -1,2 +1 @@', '--- drop it', '-@@ -1 +1 @@', '+select 1');
    expect(shown(file)).toEqual(['1 - del -- drop it', '2 - del @@ -1 +1 @@', '- 1 add select 1']);
  });

  test('of a rename says both names, and how alike they are', () => {
    const file = one('diff --git a/old name.txt b/new name.txt', 'similarity index 90%', 'rename from old name.txt', 'rename to new name.txt');
    expect([file.change, file.oldPath, file.path, file.notes]).toEqual(['renamed', 'old name.txt', 'new name.txt', ['90% alike']]);
    expect(file.hunks).toEqual([]);
  });

  test('of a copy, of a mode and of an executable say so', () => {
    expect(one('diff --git a/a b/b', 'similarity index 100%', 'copy from a', 'copy to b').change).toBe('copied');
    expect(one('diff --git a/run b/run', 'old mode 100644', 'new mode 100755').notes).toEqual(['mode 100644 → 100755']);
    expect(one('diff --git a/run b/run', 'new file mode 100755', 'index 0..1', '--- /dev/null', '+++ b/run', '@@ -0,0 +1 @@', '+x').notes).toEqual(['new file, mode 100755']);
  });

  test('of an added, a removed and an empty file keeps the name of the file that is there', () => {
    const added = one('diff --git a/n b/n', 'new file mode 100644', '--- /dev/null', '+++ b/n', '@@ -0,0 +1 @@', '+x');
    expect([added.change, added.path, added.oldPath]).toEqual(['added', 'n', null]);
    const removed = one('diff --git a/n b/n', 'deleted file mode 100644', '--- a/n', '+++ /dev/null', '@@ -1 +0,0 @@', '-x');
    expect([removed.change, removed.path, removed.oldPath]).toEqual(['removed', 'n', null]);
    const empty = one('diff --git a/e b/e', 'new file mode 100644', 'index 0000000..e69de29');
    expect([empty.change, empty.path, empty.hunks]).toEqual(['added', 'e', []]);
  });

  test('of a binary file has no lines', () => {
    const file = one('diff --git a/logo.png b/logo.png', 'index 1..2 100644', 'Binary files a/logo.png and b/logo.png differ');
    expect([file.binary, file.path, file.hunks]).toEqual([true, 'logo.png', []]);
    expect(one('diff --git a/l b/l', 'index 1..2', 'GIT binary patch', 'literal 12', 'zcmZ', '', 'literal 0').notes).toEqual([]);
  });

  test('says at which line a file ends without a line end', () => {
    const file = one('diff --git a/a b/a', '--- a/a', '+++ b/a', '@@ -1 +1 @@', '-x', '\\ No newline at end of file', '+y', '\\ No newline at end of file');
    expect(file.hunks[0]?.lines.map((line) => [line.text, line.noEnd])).toEqual([['x', true], ['y', true]]);
    const begins = one('diff --git a/a b/a', '--- a/a', '+++ b/a', '@@ -1 +1 @@', '-x', '+\\ not the mark');
    expect(begins.hunks[0]?.lines.map((line) => line.text)).toEqual(['x', '\\ not the mark']);
  });

  test('with CR LF keeps the text without it, and knows a file with both ends', () => {
    const file = one('diff --git a/a b/a', '--- a/a', '+++ b/a', '@@ -1,2 +1,2 @@', ' same\r', '-x\r', '+x');
    expect(file.hunks[0]?.lines.map((line) => [line.text, line.cr])).toEqual([['same', true], ['x', true], ['x', false]]);
    expect(file.mixedEnds).toBe(true);
    expect(one('diff --git a/a b/a', '--- a/a', '+++ b/a', '@@ -1 +1 @@', '-x\r', '+y\r').mixedEnds).toBe(false);
  });

  test('with quoted names reads octal bytes, tabs, quotes and line feeds', () => {
    expect(unquote('"caf\\303\\251 \\"x\\"\\ttab\\nline\\\\"')).toBe('café "x"\ttab\nline\\');
    const file = one('diff --git "a/caf\\303\\251" "b/caf\\303\\251"', '--- "a/caf\\303\\251"', '+++ "b/caf\\303\\251"', '@@ -1 +1 @@', '-a', '+b');
    expect(file.path).toBe('café');
    expect(headerPaths('diff --git a/with b/x b/with b/x')).toEqual(['with b/x', 'with b/x']);
    expect(headerPaths('diff --git a/plain "b/caf\\303\\251"')).toEqual(['plain', 'café']);
    expect(one('diff --git a/a b c b/a b c', '--- a/a b c\t', '+++ b/a b c\t', '@@ -1 +1 @@', '-a', '+b').path).toBe('a b c');
  });

  test('that is empty, cut or nonsense throws nothing', () => {
    expect(parsePatch('')).toEqual([]);
    expect(parsePatch(' 3 files changed, 4 insertions(+)\n')).toEqual([]);
    expect(one('diff --git a/a b/a', '--- a/a', '+++ b/a', '@@ -1,9 +1,9 @@', ' one').hunks[0]?.lines).toHaveLength(1);
    expect(one('diff --git a/a b/a', 'something new').notes).toEqual(['something new']);
  });
});

describe('inside a line', () => {
  const marks = (text: string, other: string) => markDifferences(text, other).map((piece) => (piece.marked ? `[${piece.text}]` : piece.text)).join('');

  test('the words that differ are marked on both sides', () => {
    expect(marks('let total = a + b;', 'let sum = a + b;')).toBe('let [total] = a + b;');
    expect(marks('let sum = a + b;', 'let total = a + b;')).toBe('let [sum] = a + b;');
    expect(marks('same', 'same')).toBe('same');
    expect(marks('exit 3 now', 'exit now')).toBe('exit [3 ]now');
  });

  test('all pieces together are the line', () => {
    const text = '<script>alert("\u202e")</script>\t end';
    expect(markDifferences(text, 'alert end').map((piece) => piece.text).join('')).toBe(text);
  });

  test('a line is paired with the added one that is most like it, and with none if none is', () => {
    const file = one('diff --git a/a b/a', '--- a/a', '+++ b/a', '@@ -1,2 +1,3 @@', '-print sum of all', '-unrelated', '+first', '+print sum of all numbers', '+9');
    expect(file.hunks[0]?.lines.map((line) => line.pair)).toEqual(['print sum of all numbers', undefined, undefined, 'print sum of all', undefined]);
    expect(alike('a b', 'c d')).toBe(0);
  });
});
