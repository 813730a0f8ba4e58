import { expect, test } from 'vitest';
import { match, strokeOf, type Pressed } from '../src/keys/strokes';
import { EXAMPLE_TERMS } from '../src/dev/terms';

const press = (key: string, modifiers: Partial<Pressed> = {}) =>
  strokeOf({ key, ctrlKey: false, metaKey: false, altKey: false, shiftKey: false, ...modifiers });

test('strokes are written as in the table', () => {
  expect(press('k', { ctrlKey: true })).toBe('Ctrl+K');
  expect(press('k', { metaKey: true })).toBe('Ctrl+K');
  expect(press('j')).toBe('J');
  expect(press('J', { shiftKey: true })).toBe('Shift+J');
  expect(press('?', { shiftKey: true })).toBe('?');
  expect(press(' ')).toBe('Space');
  expect(press('ArrowDown', { shiftKey: true })).toBe('Shift+↓');
  expect(press('Shift', { shiftKey: true })).toBe(null);
});

const after = (view: string, before: string, stroke: string) => match(EXAMPLE_TERMS.keys, view, before, stroke);

test('a key acts only in its views', () => {
  expect(after('board', '', 'Space')).toEqual({ action: 'board.move' });
  expect(after('inbox', '', 'Space')).toBe(null);
  expect(after('inbox', '', '?')).toEqual({ action: 'help.open' });
});

test('two strokes make one action, and a wrong second one begins anew', () => {
  expect(after('board', '', 'G')).toEqual({ waits: 'G' });
  expect(after('board', 'G', 'I')).toEqual({ action: 'go.inbox' });
  expect(after('board', 'G', 'J')).toEqual({ action: 'next' });
  expect(after('board', 'G', 'Q')).toEqual({ action: 'go.queue' });
});

test('a row of the view comes before one that holds everywhere', () => {
  const keys = [
    { action: 'everywhere', keys: ['N'], views: [], words: '', foot: false },
    { action: 'deny', keys: ['N'], views: ['inbox'], words: '', foot: false },
  ];
  expect(match(keys, 'inbox', '', 'N')).toEqual({ action: 'deny' });
  expect(match(keys, 'board', '', 'N')).toEqual({ action: 'everywhere' });
});
