/** State of the inbox: what is shown, the cursor, and how a decision is made. The address names the focused row. */
import { useCallback, useEffect, useLayoutEffect, useMemo, useReducer, useState } from 'react';
import { useLocation, useParams } from 'wouter';
import { useShallow } from 'zustand/react/shallow';
import { base } from '../../api/base';
import type { Action, WaitingRow } from '../../api/view';
import { announce } from '../../frame/announce';
import { bodyOf, type Values } from '../../parts/form';
import { NARROW, useMedia } from '../../parts/media';
import { useFacts, useStore } from '../../store/store';
import { hides, type Draft } from './decisions';
import { hold, useHeld } from './hold';
import { afterDeciding, moveCursor, noCursor, REST_MS, stepFrom, targets, wanted, type Cursor } from './rest';
import { addressOf, baseOfRow, groupsOf, markOf, needsForm, placeOf, rowOf, shownOf, together, waysOf, type Group } from './rows';
import { markSeen } from './seen';
import { sayDecided } from './Undo';

/** An answer that a form asks a text for, to one row or to several. */
export interface Asked {
  label: string;
  action: Action;
  rows: readonly WaitingRow[];
}

export interface InboxState {
  groups: readonly Group[];
  cursor: Cursor;
  /** The focused row; null if it is gone, undefined if none is focused. */
  row: WaitingRow | null | undefined;
  picked: readonly WaitingRow[];
  narrow: boolean;
  /** Keys decide now. */
  rested: boolean;
  kind: string;
  setKind: (kind: string) => void;
  step: (by: 1 | -1) => void;
  pick: (id: string) => void;
  clear: () => void;
  /** Yes or no to the selected rows, or to the focused one. */
  answer: (answer: 'yes' | 'no', repeated?: boolean) => void;
  /** Another way for the focused row. */
  act: (action: Action) => void;
  asked: Asked | null;
  closeForm: () => void;
  fill: (values: Values) => void;
}

export function useWaitingRows(): readonly WaitingRow[] {
  return useStore(useShallow((state) => state.rows.list('waiting').flatMap((id) => state.rows.row('waiting', id) ?? [])));
}

export function useInbox(): InboxState {
  const rows = useWaitingRows();
  const project = useFacts()?.project ?? '';
  const narrow = useMedia(NARROW);
  const part = useParams<{ id?: string }>().id;
  const [, go] = useLocation();
  const { decisions } = useHeld();
  const [kind, setKind] = useState('');
  const [asked, setAsked] = useState<Asked | null>(null);
  const [cursor, move] = useReducer(moveCursor, noCursor);

  const shown = useMemo(() => {
    const hidden = new Set(decisions.filter(hides).map((each) => each.id));
    return rows.filter((row) => !hidden.has(row.id) && (kind === '' || row.kind === kind));
  }, [rows, decisions, kind]);
  const groups = useMemo(() => groupsOf(shown, project), [shown, project]);

  // Before the browser handles the next key: a row that has moved must not be decided as if it had not.
  useLayoutEffect(() => move({ type: 'rows', rows: shownOf(groups), at: performance.now() }), [groups]);
  const addressed = part === undefined ? undefined : (rowOf(rows, part)?.id ?? part);
  const first = groups[0]?.rows[0]?.id ?? null;
  const { focused } = cursor;
  useLayoutEffect(() => {
    const id = addressed ?? (narrow ? null : (focused ?? first));
    if (id !== focused) move({ type: 'focus', id, at: performance.now() });
  }, [addressed, narrow, focused, first]);

  // A row that is opened by its address is shown, whatever was chosen before.
  const other = kind !== '' && addressed !== undefined && rows.some((each) => each.id === addressed && each.kind !== kind);
  useLayoutEffect(() => {
    if (other) setKind('');
  }, [other]);

  const rested = useRested(cursor);
  const row = focused === null ? undefined : (shown.find((each) => each.id === focused) ?? null);
  const picked = useMemo(() => shown.filter((each) => cursor.picked.includes(each.id)), [shown, cursor.picked]);
  useSeenMark(row?.id, rested || narrow);

  const focus = useCallback((id: string | null) => go(id === null ? '/inbox' : addressOf(id), { replace: true }), [go]);

  const decided = useCallback((action: 'yes' | 'no' | Action, of: readonly WaitingRow[], values: Values = {}) => {
    const drafts = of.flatMap((each): Draft[] => {
      const way = typeof action === 'string' ? waysOf(each.actions)[action] : (each.actions.find(({ code, label }) => code === action.code && label === action.label));
      if (!way?.request || way.refused) return [];
      const body = bodyOf(way.request.body, way.fields ?? [], values);
      return [{ id: each.id, label: way.label, text: each.text, mark: markOf(each), sending: { ...way.request, body, base: baseOfRow(each, project, base) } }];
    });
    // All or none: a row that has changed since it was shown is not decided, and neither are the others.
    const current = (draft: Draft) => {
      const now = useStore.getState().rows.row('waiting', draft.id);
      return now !== undefined && markOf(now) === draft.mark;
    };
    if (drafts.length !== of.length || !drafts.every(current)) return announce('Nothing was decided: what is asked has changed.');
    const next = afterDeciding(cursor, drafts.map((draft) => draft.id));
    move({ type: 'clear', at: performance.now() });
    hold(drafts);
    sayDecided(drafts);
    if (focused === null || !drafts.some((draft) => draft.id === focused)) return;
    if (next === null) move({ type: 'focus', id: null, at: performance.now() });
    focus(narrow ? null : next);
  }, [cursor, focus, focused, narrow, project]);

  const start = useCallback((action: 'yes' | 'no' | Action, of: readonly WaitingRow[]) => {
    const [one] = of;
    const way = one && (typeof action === 'string' ? waysOf(one.actions)[action] : action);
    if (!one || !way) return announce('There is no such answer here.');
    if (way.refused) return announce(way.refused);
    if (way.page) return go(placeOf(one, project, way.page));
    if (!way.request) return announce('Only a terminal can do this. Its command is shown.');
    if (needsForm(way)) return setAsked({ label: of.length > 1 && way.answer ? together(of, way.answer).label : way.label, action: way, rows: of });
    decided(action, of);
  }, [decided, go, project]);

  const restedTargets = useCallback((repeated = false) => {
    const now = performance.now();
    const ids = repeated ? [] : targets(cursor, now);
    if (ids.length === 0 && wanted(cursor).length > 0) {
      move({ type: 'early', at: now });
      announce('Nothing was decided: the row has just come to rest. Press again.');
    }
    return shown.filter((each) => ids.includes(each.id));
  }, [cursor, shown]);

  return {
    groups, cursor, row, picked, narrow, rested, kind, asked,
    setKind: (chosen) => {
      setKind(chosen);
      if (!row || chosen === '' || row.kind === chosen) return;
      move({ type: 'focus', id: null, at: performance.now() });
      focus(null);
    },
    step: (by) => {
      const id = stepFrom(cursor, by);
      if (id !== null) focus(id);
    },
    pick: (id) => move({ type: 'pick', id, at: performance.now() }),
    clear: () => move({ type: 'clear', at: performance.now() }),
    answer: (answer, repeated) => {
      const of = restedTargets(repeated);
      const why = of.length > 1 ? together(of, answer).why : null;
      if (why) announce(why);
      else if (of.length > 0) start(answer, of);
    },
    act: (action) => {
      // A way of the case is for its own row, whatever is selected.
      if (!row) return;
      if (rested) start(action, [row]);
      else announce('Nothing was decided: the row has just come to rest. Press again.');
    },
    closeForm: () => setAsked(null),
    fill: (filled) => {
      if (!asked) return;
      setAsked(null);
      const { answer } = asked.action;
      decided(asked.rows.length > 1 && answer ? answer : asked.action, asked.rows, filled);
    },
  };
}

/** True half a second after the targets came to rest. */
function useRested(cursor: Cursor): boolean {
  const [restedSince, setRested] = useState(-1);
  useEffect(() => {
    const timer = setTimeout(() => setRested(cursor.since), Math.max(0, cursor.since + REST_MS - performance.now()));
    return () => clearTimeout(timer);
  }, [cursor.since]);
  return restedSince === cursor.since;
}

/** A row is read once it has been shown for as long as a key needs. */
function useSeenMark(id: string | undefined, rested: boolean): void {
  useEffect(() => {
    if (id !== undefined && rested) markSeen(id, (each) => useStore.getState().rows.row('waiting', each) !== undefined);
  }, [id, rested]);
}
