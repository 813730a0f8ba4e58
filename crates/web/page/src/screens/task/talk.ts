/** Drafts and rounds of a review. The server keeps them: what was written on one machine is there on another. */
import { useCallback, useMemo } from 'react';
import type { Problem } from '../../api/client';
import { ask, askAll, part } from './ask';
import type { Side } from './diff/parse';
import { useLoaded } from './load';

export interface Place {
  path: string;
  side: Side;
  line: number;
  endLine: number;
}

/** The line on which it was written, if that line has another number now. */
type Moved = number | boolean | null;

export interface Draft extends Place {
  id: string;
  text: string;
  tip: string;
  at: string;
  by: string;
  moved?: Moved;
}

export interface Sent extends Place {
  text: string;
  moved?: Moved;
}

export interface Round {
  number: number;
  at: string;
  by: string;
  tip: string;
  note: string;
  comments: Sent[];
  /** `queued`, `delivered` or `consumed`. */
  receipt: string;
  run: string | null;
}

/** A comment where it stands in the diff: a draft, or one of a round. */
export type Remark = { draft: Draft } | { sent: Sent; round: Round; index: number };

export interface Talk {
  drafts: readonly Draft[];
  rounds: readonly Round[];
  /** The number that the drafts get when they are sent. */
  nextRound: number;
  remarks: readonly Remark[];
  /** Why there are no comments; null if there can be some. */
  missing: string | null;
  /** Each returns null if it worked. */
  keep: (place: Place, text: string, tip: string) => Promise<Problem | null>;
  change: (id: string, text: string) => Promise<Problem | null>;
  discard: (id: string) => Promise<Problem | null>;
  send: (tip: string, note: string) => Promise<Problem | null>;
}

const NONE: never[] = [];

export function useTalk(task: string, version: string): Talk {
  const base = `/tasks/${part(task)}`;
  const drafts = useLoaded(true, version, (signal) => askAll<Draft>(`${base}/drafts`, signal));
  const rounds = useLoaded(true, version, (signal) => askAll<Round>(`${base}/rounds`, signal));
  const { reload: reloadDrafts } = drafts;
  const { reload: reloadRounds } = rounds;

  const change = useCallback(async (method: string, path: string, body?: unknown): Promise<Problem | null> => {
    const answer = await ask(method, `${base}${path}`, body);
    // Also after a refusal: somebody else may have sent or removed it.
    reloadDrafts();
    if (path === '/rounds') reloadRounds();
    return answer.ok ? null : answer.problem;
  }, [base, reloadDrafts, reloadRounds]);

  return useMemo((): Talk => {
    const mine = drafts.value?.items ?? NONE;
    const sent = rounds.value?.items ?? NONE;
    return {
      drafts: mine,
      rounds: sent,
      nextRound: sent.reduce((most, round) => Math.max(most, round.number), 0) + 1,
      remarks: [
        ...sent.flatMap((round) => round.comments.map((comment, index) => ({ sent: comment, round, index }))),
        ...mine.map((draft) => ({ draft })),
      ],
      missing: drafts.problem && drafts.problem.status !== 0 ? missingWords(drafts.problem) : null,
      keep: (place, text, tip) => change('post', '/drafts', { ...place, text, tip }),
      change: (id, text) => change('patch', `/drafts/${part(id)}`, { text }),
      discard: (id) => change('delete', `/drafts/${part(id)}`),
      send: (tip, note) => change('post', '/rounds', { tip, note }),
    };
  }, [drafts.value, drafts.problem, rounds.value, change]);
}

function missingWords(problem: Problem): string {
  return problem.status === 404 ? 'This server keeps no comments on lines, so the diff is shown without them.' : `Comments are not shown: ${problem.detail}`;
}

export function placeOf(remark: Remark): Place {
  return 'draft' in remark ? remark.draft : remark.sent;
}

export function keyOf(remark: Remark): string {
  return 'draft' in remark ? `draft ${remark.draft.id}` : `round ${remark.round.number}.${remark.index}`;
}

/** `line 3` or `lines 2–3`; of the old file it says so. */
export function lineWords({ line, endLine, side }: Pick<Place, 'line' | 'endLine' | 'side'>): string {
  const numbers = endLine > line ? `lines ${line}–${endLine}` : `line ${line}`;
  return side === 'old' ? `${numbers} of the old file` : numbers;
}

/** `was line 3`; null if it stands where it was written. */
export function movedWords(moved: Moved | undefined): string | null {
  if (moved === null || moved === undefined || moved === false) return null;
  return moved === true ? 'line moved' : `line moved, was line ${moved}`;
}
