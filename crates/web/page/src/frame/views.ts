/** The views of the page, in their order: top bar, tabs of a narrow screen, palette and routes come from here. */
import { lazy, type ComponentType } from 'react';
import type { TableName } from '../api/view';

export interface ViewEntry {
  /** As in the table of keys. */
  id: string;
  path: string;
  /** Pattern of its addresses. */
  route: string;
  label: string;
  glyph: string;
  /** The table whose rows are counted beside its name. */
  counts?: TableName;
  /** The count waits for the person: shown in accent. */
  yours?: boolean;
  screen: ComponentType;
}

/** Each screen is a chunk of its own, with its style. */
const inbox = () => import('../screens/inbox');
const board = () => import('../screens/board');
const fleet = () => import('../screens/fleet');
const queue = () => import('../screens/queue');
const task = () => import('../screens/task');

export const VIEWS: readonly ViewEntry[] = [
  { id: 'inbox', path: '/inbox', route: '/inbox/:id?', label: 'Inbox', glyph: 'inbox', counts: 'waiting', yours: true, screen: lazy(inbox) },
  { id: 'board', path: '/board', route: '/board', label: 'Board', glyph: 'board', screen: lazy(board) },
  { id: 'fleet', path: '/fleet', route: '/fleet/:id?', label: 'Fleet', glyph: 'fleet', screen: lazy(fleet) },
  { id: 'queue', path: '/queue', route: '/queue', label: 'Queue', glyph: 'queue', counts: 'queue', screen: lazy(queue) },
];

/** An object's own page: it stands under the view from which it is opened. */
export const TASK = { id: 'task', under: 'board', route: '/task/:id/:tab?', screen: lazy(task) } as const;

/** Loads the other screens while nothing else happens, so that a view opens also after the server is gone. */
export function preloadScreens(): void {
  const load = () => [inbox, board, fleet, queue, task].forEach((screen) => void screen().catch(() => undefined));
  if ('requestIdleCallback' in window) requestIdleCallback(load, { timeout: 4000 });
  else setTimeout(load, 1500);
}

/** Which view a path belongs to, and which entry of the navigation is lit. */
export function viewOf(path: string): { view: string; lit: string } {
  const first = path.split('/')[1] ?? '';
  if (first === 'task') return { view: TASK.id, lit: TASK.under };
  return { view: first, lit: first };
}
