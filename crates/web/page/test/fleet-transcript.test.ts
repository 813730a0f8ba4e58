import { describe, expect, test } from 'vitest';
import { Fold, linesOf, summary, withMessages, type CallRow, type Entry, type MessageRow } from '../src/screens/fleet/fold';
import { appended, followingAtFirst, scrolled, toggled } from '../src/screens/fleet/following';
import { entriesCame, noLiveText, openedWith, pieceCame, shownText } from '../src/screens/fleet/live-text';
import { messagesOf, unsettled, type Record } from '../src/screens/fleet/receipts';

let cursor = 0;
const entry = (kind: string, text: string, at: string | null = null): Entry => ({ cursor: (cursor += 1), kind, text, at });
const fold = (...entries: Entry[]) => {
  const folded = new Fold('A');
  folded.push(entries);
  return folded.rows;
};
const calls = (rows: readonly { kind: string }[]) => rows.filter((row): row is CallRow => row.kind === 'call');

describe('a transcript is folded', () => {
  test('a call and what it gave are one row, with the time that it took', () => {
    const [row] = calls(fold(entry('call', 'Bash(sh tests/run)', '2026-11-18T10:00:00.000Z'), entry('result', 'Bash: ok', '2026-11-18T10:00:00.084Z')));
    expect(row).toMatchObject({ tool: 'Bash', argument: 'sh tests/run', result: { text: 'ok', failed: false, took: 84 } });
    expect(summary(row?.result ?? null)).toBe('ok, 84 ms');
  });

  test('calls of one tool are answered in their order, and of two tools each its own', () => {
    const rows = calls(fold(
      entry('call', 'Read(a)'), entry('call', 'Bash(b)'), entry('call', 'Read(c)'),
      entry('result', 'Bash: of b'), entry('result', 'Read: of a'), entry('failure', 'Read: no such file'),
    ));
    expect(rows.map((row) => [row.argument, row.result?.text, row.result?.failed])).toEqual([
      ['a', 'of a', false], ['b', 'of b', false], ['c', 'no such file', true],
    ]);
  });

  test('a call without a result is lost with its step, and a late result does not answer it', () => {
    const rows = fold(entry('call', 'Bash(sleep)'), entry('step', 'ta-1 test_failure, worker A'), entry('result', 'Bash: late'));
    expect(rows.map((row) => (row.kind === 'call' ? row.result?.text ?? row.waits : row.text))).toEqual(['lost', 'ta-1 · test_failure', 'late']);
  });

  test('a call that a person is asked about says so on its own row, until it has a result', () => {
    const folded = new Fold('A');
    folded.push([entry('call', 'Bash(git push)'), entry('question', 'Bash(git push)')]);
    expect(folded.rows).toMatchObject([{ kind: 'call', waits: 'asks', result: null }]);
    folded.push([entry('result', 'Bash: pushed'), entry('question', 'Bash(another)')]);
    expect(folded.rows).toMatchObject([{ result: { text: 'pushed' } }, { kind: 'question', text: 'Bash(another)' }]);
  });

  test('appending in pieces gives what appending at once gives', () => {
    const all = [entry('text', 'a'), entry('call', 'Bash(x(y) z)'), entry('result', 'Bash: one\ntwo\n'), entry('odd', 'new kind')];
    const pieces = new Fold('A');
    for (const one of all) pieces.push([one]);
    expect(pieces.rows).toEqual(fold(...all));
    expect(pieces.rows.at(-1)).toMatchObject({ kind: 'other', text: 'odd: new kind' });
    expect(calls(pieces.rows)[0]).toMatchObject({ argument: 'x(y) z' });
  });

  test('the end of a folded call is short: its only line, how many there are, or that it failed', () => {
    expect(summary({ text: '', failed: false, took: null })).toBe('ok');
    expect(summary({ text: '', failed: true, took: null })).toBe('failed');
    expect(summary({ text: 'wrote commands/sum\n', failed: false, took: 12 })).toBe('wrote commands/sum, 12 ms');
    expect(summary({ text: 'a\nb\nc', failed: true, took: 68_000 })).toBe('failed, 3 lines, 1:08');
    expect(linesOf('a\n\nb\n\n')).toEqual(['a', '', 'b']);
  });

  test('an entry that is appended to 100,000 others touches none of their rows but its own call', () => {
    const many = Array.from({ length: 100_000 }, (_, index) => (index % 2 === 0 ? entry('text', `line ${index}`) : entry('call', `Bash(${index})`)));
    const folded = new Fold('A');
    folded.push(many);
    const before = [...folded.rows];
    folded.push([entry('result', 'Bash: of the first call')]);
    expect(folded.rows).toHaveLength(100_000);
    expect(folded.rows.flatMap((row, index) => (row === before[index] ? [] : [index]))).toEqual([1]);
  });

  test('what people said stands where it was said; without it, the rows are the same array', () => {
    const rows = fold(entry('text', 'first', '2026-11-18T10:00:00Z'), entry('text', 'second', '2026-11-18T10:02:00Z'));
    expect(withMessages(rows, [])).toBe(rows);
    const message = (key: string, at: string): MessageRow => ({ kind: 'message', key, at: Date.parse(at), by: 'ann', text: key, receipt: { state: 'queued', words: '', at: null } });
    const out = withMessages(rows, [message('m3', '2026-11-18T10:03:00Z'), message('m1', '2026-11-18T10:01:00Z')]);
    expect(out.map((row) => ('text' in row ? row.text : ''))).toEqual(['first', 'm1', 'second', 'm3']);
  });
});

describe('following', () => {
  const place = (top: number) => ({ top, content: 2000, window: 500 });

  test('is on at the end, off when the person scrolls up, and on again at the end', () => {
    const up = scrolled(followingAtFirst, 1500, place(1300));
    expect(up).toEqual({ on: false, unseen: 0 });
    expect(scrolled(up, 1300, place(1400)).on).toBe(false);
    expect(scrolled(up, 1400, place(1490))).toEqual(followingAtFirst);
  });

  test('is not turned off by rows that come, nor by a list that grows below', () => {
    expect(appended(followingAtFirst, 5)).toBe(followingAtFirst);
    expect(scrolled(followingAtFirst, 1500, { top: 1500, content: 9000, window: 500 })).toBe(followingAtFirst);
  });

  test('counts what comes while it is off, and its key goes to the end', () => {
    let state = toggled(followingAtFirst);
    state = appended(appended(state, 3), 4);
    expect(state).toEqual({ on: false, unseen: 7 });
    expect(toggled(state)).toEqual(followingAtFirst);
  });
});

describe('text as it is written', () => {
  test('is shown until the transcript has it whole', () => {
    let live = pieceCame(pieceCame(noLiveText, 'A sum is '), 'a loop.\n');
    expect(shownText(live)).toBe('A sum is a loop.\n');
    live = entriesCame(live, [entry('call', 'Write(a)')]);
    expect(shownText(live)).toBe('A sum is a loop.\n');
    live = entriesCame(live, [entry('text', 'A sum is a loop.')]);
    expect(shownText(live)).toBe('');
  });

  test('is not shown a second time if the transcript was first', () => {
    let live = entriesCame(noLiveText, [entry('text', 'A sum is a loop.')]);
    live = pieceCame(live, 'A sum is ');
    expect(shownText(live)).toBe('');
    live = pieceCame(live, 'a loop.\n');
    expect(live).toEqual(noLiveText);
    expect(shownText(pieceCame(live, 'Then'))).toBe('Then');
  });

  test('of the next message is shown although the one before was told', () => {
    const live = entriesCame(noLiveText, [entry('text', 'A sum.')]);
    expect(shownText(pieceCame(live, 'The mean'))).toBe('The mean');
  });

  test('keeps the beginning of the next message when the one before is told', () => {
    const live = pieceCame(noLiveText, 'One.\nTwo be');
    expect(shownText(entriesCame(live, [entry('text', 'One.')]))).toBe('Two be');
  });

  test('of which the beginning was missed, or a piece came twice, gives way to the transcript', () => {
    expect(shownText(entriesCame(pieceCame(noLiveText, 'a loop.'), [entry('text', 'A sum is a loop.')]))).toBe('');
    expect(shownText(entriesCame(pieceCame(noLiveText, 'One.One.'), [entry('text', 'One. Two.')]))).toBe('');
  });

  test('is not taken back by the older transcript that is read when a worker is opened', () => {
    const live = pieceCame(noLiveText, 'Now I');
    expect(shownText(openedWith(live, entry('end', 'ended with exit code 0')))).toBe('Now I');
    expect(shownText(openedWith(live, entry('text', 'DONE')))).toBe('Now I');
    expect(shownText(openedWith(live, entry('text', 'Now I look.')))).toBe('');
  });

  test('ends with its step', () => {
    expect(shownText(entriesCame(pieceCame(noLiveText, 'half'), [entry('end', 'ended by signal 9')]))).toBe('');
  });
});

describe('a receipt', () => {
  let seq = 0;
  const record = (kind: string, data: object): Record => ({ seq: (seq += 1), at: '2026-11-18T10:00:00Z', actor: '', command: '', stream: '', version: 1, kind, data });
  const said = record('commented', { comment: 'comment', by: 'human:ann', text: 'Keep awk' });
  const asked = record('effect_asked', { id: 'e6', what: { effect: 'tell_agent', text: 'Keep awk' } });
  const ended = record('effect_ended', { id: 'e6', how: 'done' });
  const left = record('note_left', { note: 'Keep awk' });
  const states = (...records: Record[]) => messagesOf(records).map((message) => [message.receipt.state, message.receipt.words]);

  test('says sent, given to the agent, and before which turn it had it', () => {
    expect(states(said, asked)).toEqual([['queued', 'sent']]);
    expect(states(said, asked, ended)).toEqual([['delivered', '']]);
    expect(states(said, asked, ended, record('run_moved', { input: { type: 'STEP', turn: 6 } }))).toEqual([['consumed', 'before turn 6']]);
  });

  test('of a program that cannot hear says that it goes with the next step, and then that it did', () => {
    expect(states(said, asked, ended, left)).toEqual([['queued', 'goes with its next step']]);
    expect(states(said, left, record('notes_told', {}))).toEqual([['consumed', 'with the prompt of a step']]);
  });

  test('is not given for what agents and the system wrote', () => {
    expect(states(record('commented', { comment: 'plan', by: 'system for player', text: 'x' }), record('commented', { comment: 'comment', by: 'agent:player', text: 'y' }))).toEqual([]);
  });

  test('is settled when it was used', () => {
    expect(unsettled(messagesOf([said, asked, ended]))).toBe(true);
    expect(unsettled(messagesOf([said, left, record('notes_told', {})]))).toBe(false);
  });
});
