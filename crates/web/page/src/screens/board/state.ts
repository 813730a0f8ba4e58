/** What the board remembers: focus, the card in the hand, filter, columns. Rows are not here: they are in the store of the page. */
import { create } from 'zustand';
import type { Wish } from './cards';
import type { Choices } from './columns';
import type { Moving } from './moving';

export type BoardDialog =
  | { kind: 'new' }
  | { kind: 'edit'; task: string }
  /** `fields`: the names of those that are missing; without it, all that the move has. */
  | { kind: 'move'; task: string; from: string; to: string; fields?: readonly string[] }
  | { kind: 'targets'; task: string };

interface Refused {
  to: string;
  words: string;
  /** Of the row that was refused: a later row is news. */
  seq: number;
}

export interface BoardState extends Wish {
  focused: string | null;
  /** Grows if the focus is to be set in the document, too. */
  focusTick: number;
  moving: Moving | null;
  /** Where tasks are on their way to, by id. */
  pending: Readonly<Record<string, string>>;
  refused: Readonly<Record<string, Refused>>;
  choices: Choices;
  hideEmpty: boolean;
  /** The column of a narrow screen. */
  shown: string | null;
  dialog: BoardDialog | null;
  /** The task whose drawer is open. */
  drawer: string | null;
}

const KEY = 'adj-board';

export const useBoard = create<BoardState>(() => ({
  filter: '', agent: null, group: 'status', choices: {}, hideEmpty: false, ...remembered(),
  focused: null, focusTick: 0, moving: null, pending: {}, refused: {}, shown: null, dialog: null, drawer: null,
}));

export const setBoard = useBoard.setState;

/** How a person likes the board to be, kept in this browser. */
export function setLook(look: Partial<Pick<BoardState, 'group' | 'choices' | 'hideEmpty'>>): void {
  setBoard(look);
  const { group, choices, hideEmpty } = useBoard.getState();
  try {
    localStorage.setItem(KEY, JSON.stringify({ group, choices, hideEmpty }));
  } catch {
    // A browser without storage forgets it.
  }
}

function remembered(): Partial<Pick<BoardState, 'group' | 'choices' | 'hideEmpty'>> {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(KEY) ?? '{}');
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}

/** Focuses a card, and its element too. */
export function focusCard(task: string): void {
  setBoard(({ focusTick }) => ({ focused: task, focusTick: focusTick + 1 }));
}
