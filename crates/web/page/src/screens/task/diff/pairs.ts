/** Which removed line an added one replaces, and which words differ between the two. Pure. */
import type { DiffLine } from './parse';

/** Runs longer than this are paired by their position only if both are equally long. */
const SEARCH_MAX = 40;
/** Lines longer than this are marked as one piece between their common ends. */
const TOKENS_MAX = 200;
/** Two lines below this share of common words are two lines, not one that changed. */
const ALIKE_MIN = 0.4;

export interface Piece {
  text: string;
  marked: boolean;
}

/** Sets `pair` of the lines of each run of removals followed by additions. */
export function pairLines(lines: DiffLine[]): void {
  let at = 0;
  while (at < lines.length) {
    if (lines[at]?.kind !== 'del') {
      at += 1;
      continue;
    }
    const removed = runOf(lines, at, 'del');
    const added = runOf(lines, at + removed.length, 'add');
    pairRun(removed, added);
    at += removed.length + added.length;
  }
}

function runOf(lines: readonly DiffLine[], from: number, kind: DiffLine['kind']): DiffLine[] {
  let to = from;
  while (lines[to]?.kind === kind) to += 1;
  return lines.slice(from, to);
}

function pairRun(removed: readonly DiffLine[], added: readonly DiffLine[]): void {
  if (removed.length === added.length) {
    removed.forEach((line, index) => join(line, added[index]));
    return;
  }
  if (removed.length > SEARCH_MAX || added.length > SEARCH_MAX) return;
  // In order, so that two pairs never cross.
  let from = 0;
  for (const line of removed) {
    let best = -1;
    let most = ALIKE_MIN;
    for (let index = from; index < added.length; index += 1) {
      const share = alike(line.text, added[index]?.text ?? '');
      if (share > most) [best, most] = [index, share];
    }
    if (best < 0) continue;
    join(line, added[best]);
    from = best + 1;
  }
}

function join(removed: DiffLine, added: DiffLine | undefined): void {
  if (!added || alike(removed.text, added.text) < ALIKE_MIN) return;
  removed.pair = added.text;
  added.pair = removed.text;
}

function tokens(text: string): string[] {
  return text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];
}

/** The share of words that both lines have, from 0 to 1. */
export function alike(one: string, other: string): number {
  if (one.length > 4000 || other.length > 4000) return one === other ? 1 : 0;
  const counts = new Map<string, number>();
  const words = (text: string) => tokens(text).filter((token) => token.trim() !== '');
  const mine = words(one);
  const theirs = words(other);
  for (const token of mine) counts.set(token, (counts.get(token) ?? 0) + 1);
  let common = 0;
  for (const token of theirs) {
    const left = counts.get(token) ?? 0;
    if (left > 0) common += 1;
    counts.set(token, left - 1);
  }
  return mine.length + theirs.length === 0 ? 1 : (2 * common) / (mine.length + theirs.length);
}

/** The line in pieces; those that the other line does not have are marked. */
export function markDifferences(text: string, other: string): Piece[] {
  const mine = tokens(text);
  const theirs = tokens(other);
  let start = 0;
  while (start < mine.length && start < theirs.length && mine[start] === theirs[start]) start += 1;
  let end = 0;
  while (end < mine.length - start && end < theirs.length - start && mine[mine.length - 1 - end] === theirs[theirs.length - 1 - end]) end += 1;
  const middle = mine.slice(start, mine.length - end);
  const common = commonTokens(middle, theirs.slice(start, theirs.length - end));
  const pieces: Piece[] = [];
  const put = (piece: string, marked: boolean) => {
    const last = pieces.at(-1);
    if (last && last.marked === marked) last.text += piece;
    else if (piece !== '') pieces.push({ text: piece, marked });
  };
  put(mine.slice(0, start).join(''), false);
  middle.forEach((token, index) => put(token, !common[index]));
  put(mine.slice(mine.length - end).join(''), false);
  return joinAcrossSpace(pieces);
}

/** A single space between two marked pieces is marked, too: one stretch reads better than two. */
function joinAcrossSpace(pieces: readonly Piece[]): Piece[] {
  const out: Piece[] = [];
  pieces.forEach((piece, index) => {
    const between = !piece.marked && piece.text.trim() === '' && pieces[index - 1]?.marked && pieces[index + 1]?.marked;
    const last = out.at(-1);
    if (last && last.marked === (piece.marked || Boolean(between))) last.text += piece.text;
    else out.push({ text: piece.text, marked: piece.marked || Boolean(between) });
  });
  return out;
}

/** Which tokens belong to a longest common subsequence. */
function commonTokens(mine: readonly string[], theirs: readonly string[]): boolean[] {
  const kept = mine.map(() => false);
  if (mine.length > TOKENS_MAX || theirs.length > TOKENS_MAX) return kept;
  const width = theirs.length + 1;
  const table = new Uint16Array((mine.length + 1) * width);
  for (let i = mine.length - 1; i >= 0; i -= 1) {
    for (let j = theirs.length - 1; j >= 0; j -= 1) {
      table[i * width + j] = mine[i] === theirs[j] ? (table[(i + 1) * width + j + 1] ?? 0) + 1 : Math.max(table[(i + 1) * width + j] ?? 0, table[i * width + j + 1] ?? 0);
    }
  }
  for (let i = 0, j = 0; i < mine.length && j < theirs.length;) {
    if (mine[i] === theirs[j]) {
      kept[i] = true;
      i += 1;
      j += 1;
    } else if ((table[(i + 1) * width + j] ?? 0) >= (table[i * width + j + 1] ?? 0)) i += 1;
    else j += 1;
  }
  return kept;
}
