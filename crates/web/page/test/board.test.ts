import { describe, expect, test } from 'vitest';
import type { TaskRow, Terms } from '../src/api/view';
import { entries, groupLabel, groupOf, same, taskCount, type Wish } from '../src/screens/board/cards';
import { COLUMN_FOLDED, COLUMN_MIN, layout, template, weights, type Choices } from '../src/screens/board/columns';
import { place, step, targetsOf, type Event, type Moving } from '../src/screens/board/moving';
import { pieces } from '../src/parts/Slip';

const IDS = ['INBOX', 'ASSIGNED', 'IN_PROGRESS', 'REVIEW', 'NEEDS_APPROVAL', 'BLOCKED', 'DONE', 'CANCELED'];
const WAYS: Record<string, string> = {
  INBOX: 'ASSIGNED CANCELED', ASSIGNED: 'INBOX IN_PROGRESS CANCELED', IN_PROGRESS: 'REVIEW NEEDS_APPROVAL BLOCKED CANCELED', REVIEW: 'IN_PROGRESS NEEDS_APPROVAL BLOCKED DONE CANCELED',
  NEEDS_APPROVAL: 'INBOX ASSIGNED IN_PROGRESS REVIEW BLOCKED DONE CANCELED', BLOCKED: 'ASSIGNED IN_PROGRESS NEEDS_APPROVAL CANCELED', DONE: '', CANCELED: '',
};
const terms = {
  statuses: IDS.map((id) => ({ id, label: id.toLowerCase(), glyph: `task.${id}`, final: WAYS[id] === '', words: '' })),
  moves: IDS.flatMap((from) => IDS.filter((to) => to !== from).map((to) => {
    const allowed = WAYS[from]?.split(' ').includes(to) ?? false;
    return { from, to, allowed, words: allowed ? 'Asks for: Reason.' : 'no row', fields: [] };
  })),
} as unknown as Pick<Terms, 'statuses' | 'moves'>;

describe('columns', () => {
  const heavy = weights(terms);
  const columns = (empty: string[] = []) => terms.statuses.map(({ id, final }) => ({ id, final, weight: heavy.get(id) ?? 1, empty: empty.includes(id), spare: empty.includes(id) }));
  const folded = (width: number, { empty = [] as string[], choices = {} as Choices, hide = false } = {}) =>
    layout(columns(empty), width, choices, hide).filter((each) => each.state !== 'open').map((each) => `${each.id} ${each.state}`);

  test('weights lie between .92 and 1.22 and depend on the moves alone', () => {
    expect(Math.min(...heavy.values())).toBeCloseTo(0.92);
    expect(Math.max(...heavy.values())).toBeCloseTo(1.22);
    expect(heavy.get('NEEDS_APPROVAL')).toBeGreaterThan(heavy.get('INBOX') ?? 9);
  });
  test('at 1440 px all but the last column of finished tasks are open', () => expect(folded(1440)).toEqual(['CANCELED folded']));
  test('a wide window has all of them', () => expect(folded(1920)).toEqual([]));
  test('at 1024 px five are open', () => expect(folded(1024)).toEqual(['INBOX folded', 'DONE folded', 'CANCELED folded']));
  test('empty columns fold first', () => expect(folded(1024, { empty: ['BLOCKED', 'ASSIGNED'] })).toEqual(['ASSIGNED folded', 'BLOCKED folded', 'DONE folded', 'CANCELED folded']));
  test('a column that a person opened stays open as long as another can fold', () => {
    expect(folded(1024, { choices: { INBOX: 'open', CANCELED: 'open' } })).toEqual(['ASSIGNED folded', 'BLOCKED folded', 'DONE folded']);
  });
  test('a column that a person folded stays folded', () => expect(folded(1920, { choices: { REVIEW: 'folded' } })).toEqual(['REVIEW folded']));
  test('empty columns can hide, unless a person opened them', () => {
    expect(folded(1920, { empty: ['BLOCKED', 'DONE'], hide: true, choices: { DONE: 'open' } })).toEqual(['BLOCKED hidden']);
  });
  test('at every width the columns fit and no open one is too narrow', () => {
    for (let width = 721; width < 2000; width += 7) {
      const states = layout(columns(), width, {}, false);
      const open = states.filter((each) => each.state === 'open').length;
      expect(open * COLUMN_MIN + (states.length - open) * COLUMN_FOLDED).toBeLessThanOrEqual(width);
    }
  });
  test('the template has a track for each column that is not hidden', () => {
    const states = layout(columns(['BLOCKED']), 1024, {}, true);
    expect(template(states).match(/minmax|(^| )40px/g)).toHaveLength(7);
  });
});

describe('cards', () => {
  const rows = new Map<string, TaskRow>();
  const add = (id: string, title: string, more: Partial<TaskRow> = {}) => rows.set(id, { id, title, priority: 2, ...more } as TaskRow);
  add('ta-1', 'Add sum', { agent: 'claude', priority: 1 });
  add('ta-2', 'Add MEAN', { agent: 'codex', spec: 'report' });
  add('ta-11', 'Rewrite the parser', { priority: 0 });
  const ids = [...rows.keys()];
  const list = (wish: Partial<Wish>) => entries(ids, (id) => rows.get(id), { filter: '', agent: null, group: 'status', ...wish });

  test('without a wish the list of the store is the list', () => expect(list({})).toBe(ids));
  test('every word is found in title or id, whatever its case', () => {
    expect(list({ filter: 'mean add' })).toEqual(['ta-2']);
    expect(list({ filter: 'TA-11' })).toEqual(['ta-11']);
    expect(list({ filter: 'add parser' })).toEqual([]);
  });
  test('an agent leaves its tasks; no agent leaves those without one', () => {
    expect(list({ agent: 'codex' })).toEqual(['ta-2']);
    expect(list({ agent: '' })).toEqual(['ta-11']);
  });
  test('groups have heads, in order, and what has none comes last', () => {
    expect(list({ group: 'agent' })).toEqual(['group:claude', 'ta-1', 'group:codex', 'ta-2', 'group:', 'ta-11']);
    expect(list({ group: 'priority' })).toEqual(['group:P0', 'ta-11', 'group:P1', 'ta-1', 'group:P2', 'ta-2']);
    expect(list({ group: 'spec', filter: 'add' })).toEqual(['group:report', 'ta-2', 'group:', 'ta-1']);
    expect(groupLabel(groupOf('group:') ?? '?', 'spec')).toBe('No spec');
  });
  test('heads are not counted', () => expect(taskCount(list({ group: 'agent' }))).toBe(3));
  test('the same entries stay the same array', () => {
    const before = list({ group: 'agent' });
    expect(same(before, list({ group: 'agent' }))).toBe(before);
    expect(same(before, list({ group: 'spec' }))).not.toBe(before);
  });
});

describe('moving', () => {
  const pick = (from: string, by: Moving['by'] = 'keys'): Event => ({ kind: 'pick', task: 'ta-1', title: 'Add sum', from, by, terms });
  const run = (...events: Event[]) => events.reduce((before, event) => step(before.moving, event), step(null, { kind: 'drop' }));
  const right: Event = { kind: 'walk', by: 1 };
  const left: Event = { kind: 'walk', by: -1 };

  test('a card that is picked up is held where it was', () => {
    const { moving, say } = run(pick('IN_PROGRESS'));
    expect(moving?.at).toBeNull();
    expect(say).toBe('ta-1 Add sum is in your hand. 4 targets.');
  });
  test('the walk stops at allowed targets only, around, and where it was', () => {
    const stops = [right, right, right, right, right].map((_, index) => run(pick('ASSIGNED'), ...Array.from({ length: index + 1 }, () => right)).moving?.at);
    expect(stops).toEqual(['IN_PROGRESS', 'CANCELED', 'INBOX', null, 'IN_PROGRESS']);
    expect(run(pick('ASSIGNED'), left).moving?.at).toBe('INBOX');
    expect(run(pick('ASSIGNED'), left).say).toBe('inbox, 1 of 3 targets. Asks for: Reason.');
  });
  test('a drop at an allowed target asks for the move', () => expect(run(pick('REVIEW'), left, { kind: 'drop' }).move).toEqual({ task: 'ta-1', from: 'REVIEW', to: 'IN_PROGRESS' }));
  test('a drop where it was puts it back', () => expect(run(pick('REVIEW'), { kind: 'drop' })).toEqual({ moving: null, say: 'ta-1 is back in review.' }));
  test('a drop at a forbidden column is refused with the words of the rule, and no move is asked for', () => {
    const end = run(pick('INBOX', 'pointer'), { kind: 'over', status: 'DONE' }, { kind: 'drop' });
    expect(end).toEqual({ moving: null, refused: { task: 'ta-1', from: 'INBOX', to: 'DONE', words: 'no row' } });
  });
  test('over its own column it is held where it was', () => expect(run(pick('INBOX', 'pointer'), { kind: 'over', status: 'INBOX' }).moving?.at).toBeNull());
  test('nothing leads out: it is not picked up by keys, and the words say why', () => expect(run(pick('DONE'))).toEqual({ moving: null, say: 'ta-1 cannot be moved. no row' }));
  test('somebody else moved it: it leaves the hand', () => {
    expect(run(pick('INBOX'), { kind: 'row', status: 'ASSIGNED', label: 'Assigned' })).toEqual({ moving: null, taken: { task: 'ta-1', label: 'Assigned' } });
    expect(run(pick('INBOX'), { kind: 'row', status: 'INBOX', label: 'Inbox' }).moving).not.toBeNull();
  });
  test('a forbidden place is said with its rule', () => {
    const { moving } = run(pick('INBOX', 'pointer'), { kind: 'over', status: 'DONE' });
    expect(moving && place(moving)).toBe('done: no row');
  });
  test('a status without a row in the terms is not allowed', () => expect(targetsOf({ ...terms, moves: [] }, 'INBOX').every((target) => !target.allowed)).toBe(true));
});

test('a line links the tasks that it names, and not names that begin like them', () => {
  expect(pieces({ text: 'waits for 3: ta-1 ta-11, ta-2', tasks: ['ta-1', 'ta-2'] })).toEqual([
    { text: 'waits for 3: ' }, { text: 'ta-1', task: 'ta-1' }, { text: ' ta-11, ' }, { text: 'ta-2', task: 'ta-2' },
  ]);
});
