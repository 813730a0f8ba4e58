import { expect, test } from 'vitest';
import { exampleView } from '../src/dev/fixture';
import { addressOf, baseOfRow, groupsOf, inputText, markOf, placeOf, rowOf, shownOf, titleOf, together, waysOf } from '../src/screens/inbox/rows';
import type { WaitingRow } from '../src/api/view';

const rows = exampleView(0).waiting;
const row = (index: number): WaitingRow => {
  const found = rows[index];
  if (!found) throw new Error(`the example has no row ${index}`);
  return found;
};

test('rows of this project come first, then other projects, then those that wait for a service', () => {
  const service: WaitingRow = { ...row(0), id: 'service', who: 'service', rank: 0 };
  const groups = groupsOf([service, ...rows], 'tally');
  expect(groups.map((group) => [group.name, group.rows.length])).toEqual([['', 10], ['ledger', 1], ['Waiting for a service', 1]]);
  expect(shownOf(groups).map(({ id }) => id).at(-1)).toBe('service');
});

test('a row is found by its address, whatever signs its id has', () => {
  const odd: WaitingRow = { ...row(0), id: 'outage-a/b?c#d 日', approval: null };
  const part = decodeURI(addressOf(odd.id).slice('/inbox/'.length));
  expect(rowOf([...rows, odd], part)).toBe(odd);
  expect(rowOf(rows, 'q7')).toBe(row(0));
  expect(rowOf(rows, 'unknown')).toBeUndefined();
});

test('an edited call is another question; a new place in the list is not', () => {
  const call = row(0).call;
  if (!call) throw new Error('the example has no call');
  expect(markOf({ ...row(0), call: { ...call, input: { ...call.input, timeout: 1 } } })).not.toBe(markOf(row(0)));
  expect(markOf({ ...row(0), rank: 7, seq: 99, blocks: [] })).toBe(markOf(row(0)));
});

test('the first yes and the first no are the two buttons', () => {
  const ways = waysOf(row(0).actions);
  expect([ways.yes?.code, ways.no?.code, ways.others.map(({ code }) => code)]).toEqual(['approve_request', 'deny_request', ['approve_always']]);
});

test('several rows get one answer only if each of them has it and needs no text of its own', () => {
  const request = { method: 'POST', path: '/x', body: {} };
  const plain: WaitingRow = { ...row(0), actions: [{ code: 'a', label: 'Approve', happens: [], answer: 'yes', request }] };
  const needs: WaitingRow = { ...plain, actions: [{ code: 'b', label: 'Answer', happens: [], answer: 'yes', request, fields: [{ name: 'text', label: 'text', kind: 'text' as const, required: true, text: '' }] }] };
  expect(together([plain, plain], 'yes')).toEqual({ label: 'Approve 2', why: null, form: false });
  expect(together([plain, needs], 'yes').why).toMatch(/different texts/);
  expect(together([needs, needs], 'yes').why).toMatch(/text of its own/);
  expect(together([plain], 'no')).toMatchObject({ label: 'No to 1', why: expect.stringMatching(/no such answer/) });
  expect(together([row(0), row(0)], 'no')).toEqual({ label: 'Deny 2', why: null, form: true });
});

test('a row of another project is sent to that project, and its links lead there', () => {
  expect([baseOfRow(row(0), 'tally', ''), baseOfRow(row(10), 'tally', '')]).toEqual(['', '/p/ledger']);
  expect([placeOf(row(0), 'tally', '/task/ta-1'), placeOf(row(10), 'tally', '/task/le-40')]).toEqual(['/task/ta-1', '~/p/ledger/task/le-40']);
});

test('a question is read once: as the title, or whole below it', () => {
  const asked = (text: string, question: string | null) => titleOf({ ...row(0), text, question });
  expect(asked('r asks: 0 or 1?', '0 or 1?')).toEqual({ title: '0 or 1?', before: 'r asks:', question: null });
  expect(asked('F asks to run git …', 'F asks to run git rm')).toEqual({ title: 'F asks to run git …', before: '', question: 'F asks to run git rm' });
  expect(asked('same', 'same')).toEqual({ title: 'same', before: '', question: null });
});

test('the input of a call is shown whole', () => {
  expect(inputText({ command: 'a\nb', n: 1 })).toBe('{\n  "command": "a\\nb",\n  "n": 1\n}');
});
