import { expect, test } from 'vitest';
import { decide, dueGroups, hides, HOLD_MS, lastHeld, nextDue, type DecisionEvent, type Decisions, type Draft } from '../src/screens/inbox/decisions';
import { withSeen } from '../src/screens/inbox/seen';

const draft = (id: string): Draft => ({ id, label: 'Approve', text: `asks ${id}`, mark: 'm', sending: { base: '', method: 'POST', path: `/approvals/${id}/decision`, body: {} } });
const made = (ids: string, at = 0): DecisionEvent => ({ type: 'decide', drafts: [...ids].map(draft), at });
const view = (marks: Record<string, string>): DecisionEvent => ({ type: 'view', mark: (id) => marks[id] ?? null });
const answer = (id: string, refused: string | null = null): DecisionEvent => ({ type: 'answer', id, group: 1, refused });
const after = (...events: DecisionEvent[]): Decisions => events.reduce(decide, [] as Decisions);
const states = (list: Decisions) => list.map((each) => `${each.id} ${each.state}`);

test('a decision is held for five seconds before it is due', () => {
  const list = after(made('a', 100));
  expect([nextDue(list), dueGroups(list, 100 + HOLD_MS - 1), dueGroups(list, 100 + HOLD_MS)]).toEqual([5100, [], [1]]);
});

test('undo takes back the last group, whole', () => {
  const list = after(made('a'), made('bc'));
  expect(lastHeld(list)?.group).toBe(2);
  expect(states(decide(list, { type: 'undo', group: 2 }))).toEqual(['a held']);
});

test('what is sent cannot be undone', () => {
  expect(states(after(made('a'), { type: 'start', group: 1 }, { type: 'undo', group: 1 }))).toEqual(['a sending']);
});

test('a row that is decided elsewhere is moot and not sent', () => {
  const list = after(made('ab'), view({ a: 'm' }));
  expect([states(list), dueGroups(list, 9e9), hides(list[1]!)]).toEqual([['a held', 'b moot'], [1], false]);
});

test('a question that changed is not sent', () => {
  const list = after(made('a'), view({ a: 'other' }));
  expect([states(list), nextDue(list)]).toEqual([['a changed'], null]);
});

test('a refusal gives the row back with the words of the rule', () => {
  const list = after(made('ab'), { type: 'start', group: 1 }, answer('a', 'too late'), answer('b'));
  expect([states(list), list[0]?.note, list.map(hides)]).toEqual([['a refused', 'b sent'], 'too late', [false, true]]);
});

test('a row that the server took is hidden until the view has followed, and shown with a note if it waits then', () => {
  const sent = after(made('a'), { type: 'start', group: 1 }, answer('a'));
  const overdue = (waits: boolean) => decide(sent, { type: 'overdue', id: 'a', group: 1, waits });
  expect(states(decide(sent, view({ a: 'm' })))).toEqual(['a sent']);
  expect(states(decide(sent, view({})))).toEqual(['a sent']);
  expect([states(overdue(false)), states(overdue(true)), overdue(true).map(hides)]).toEqual([['a sent'], ['a still'], [false]]);
});

test('a new question under the same id is shown at once', () => {
  expect(states(after(made('a'), { type: 'start', group: 1 }, answer('a'), view({ a: 'other' })))).toEqual([]);
});

test('a lost connection gives back what is held, and nothing else', () => {
  expect(states(after(made('a'), { type: 'start', group: 1 }, made('b'), { type: 'lost' }))).toEqual(['a sending', 'b unsent']);
});

test('a row is decided once at a time, and a new decision replaces an old result', () => {
  expect(states(after(made('a'), made('a')))).toEqual(['a held']);
  expect(states(after(made('a'), { type: 'lost' }, made('a')))).toEqual(['a held']);
});

test('a view that changes nothing is the same list', () => {
  const list = after(made('a'));
  expect(decide(list, view({ a: 'm' }))).toBe(list);
});

test('what was read is remembered for as long as it waits', () => {
  const seen = ['a', 'b'];
  expect(withSeen(seen, 'a', () => true)).toBe(seen);
  expect(withSeen(seen, 'c', (id) => id !== 'a')).toEqual(['b', 'c']);
});
