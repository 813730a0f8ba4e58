/** The transcript: only the rows in sight are mounted. It stays at its end while it follows, and else where the reader is. */
import { useVirtualizer } from '@tanstack/react-virtual';
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, type ReactNode } from 'react';
import { useActions } from '../../keys/actions';
import { Button } from '../../parts/Button';
import { useActionsOn } from '../../store/store';
import { withMessages, type MessageRow, type Row } from './fold';
import { appended, followingAtFirst, scrolled, toggled, type Following } from './following';
import { LiveLine, LogLine } from './LogLine';
import type { TranscriptLog } from './transcript-log';

interface Props {
  log: TranscriptLog;
  messages: readonly MessageRow[];
  /** The agent is at work, so its text may go on. */
  working: boolean;
}

/** Near to what it will be: what is measured later moves the rows below less. */
function estimate(row: Row | undefined): number {
  if (row === undefined || row.kind === 'call') return 28;
  if (row.kind === 'step') return 38;
  return 6 + 22 * Math.max(1, Math.ceil(row.text.length / 84)) + (row.kind === 'message' ? 16 : 0);
}

export function Transcript({ log, messages, working }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const { following, setFollowing, onScroll } = useFollowing(scroller);
  const isLive = useActionsOn();
  const [open, setOpen] = useState<ReadonlyMap<string, Opened>>(() => new Map());
  const rows = useMemo(() => withMessages(log.rows, messages), [log, log.version, messages]);
  const live = log.liveText;
  const count = rows.length + (live === '' ? 0 : 1);

  const virtual = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => estimate(rows[index]),
    // What is being written has the same key until it is whole.
    getItemKey: useCallback((index: number) => rows[index]?.key ?? 'live', [rows]),
    overscan: 12,
    anchorTo: 'end',
    paddingStart: 8,
    paddingEnd: 16,
  });
  const total = virtual.getTotalSize();

  // Before the browser draws: the end never flickers.
  useLayoutEffect(() => {
    const element = scroller.current;
    if (following.on && element) element.scrollTop = element.scrollHeight;
  }, [following.on, total, count, live]);
  useCountAppended(rows, setFollowing);

  const earlier = useEarlier(log);
  const toEnd = useCallback(() => setFollowing(followingAtFirst), [setFollowing]);
  useActions(useMemo(() => [
    { id: 'follow', label: following.on ? 'Stop following' : 'Follow', group: 'This view', glyph: 'down', run: () => setFollowing(toggled) },
  ], [following.on, setFollowing]));

  const toggle = useCallback((key: string, next: Opened) => setOpen((before) => new Map(before).set(key, next)), []);
  return (
    <div className="log-frame">
      <div ref={scroller} className="scroll virtual log" onScroll={onScroll} tabIndex={0} role="log" aria-label={`Transcript of ${log.worker}`} aria-live="off">
        <div style={{ height: total, position: 'relative' }}>
          {virtual.getVirtualItems().map((item) => {
            const row = rows[item.index];
            return (
              <div key={item.key} ref={virtual.measureElement} data-index={item.index} className="virtual-row" style={{ transform: `translateY(${item.start}px)` }}>
                {row ? <LogLine row={row} opened={open.get(row.key)} onOpen={toggle} /> : <LiveLine text={live} />}
              </div>
            );
          })}
        </div>
      </div>
      {earlier}
      {!following.on && (
        <div className="below">
          <Button size="dense" glyph="down" action="follow" onClick={toEnd}>{following.unseen > 0 ? `${following.unseen} new ${following.unseen === 1 ? 'line' : 'lines'} below` : 'To the end'}</Button>
        </div>
      )}
      {count === 0 && <p className="nothing dim">{nothing(log, working, isLive)}</p>}
      {log.problem && log.reading === 'off' && (
        <p className="nothing bad" role="alert">The transcript cannot be read: {log.problem.detail} <Button size="tiny" onClick={() => log.nudge()}>Try again</Button></p>
      )}
    </div>
  );
}

export type Opened = 'closed' | 'some' | 'all';

function nothing(log: TranscriptLog, working: boolean, live: boolean): ReactNode {
  if (log.problem) return null;
  if (log.reading === 'first') return live ? 'Reading the transcript…' : 'The transcript is read when the page is live.';
  return working ? `${log.worker} has said nothing yet.` : `${log.worker} has said nothing. It speaks when it has a task.`;
}

function useFollowing(scroller: React.RefObject<HTMLDivElement | null>) {
  const [following, set] = useState<Following>(followingAtFirst);
  // Read in events between two renderings.
  const now = useRef(following);
  const top = useRef(0);
  const setFollowing = useCallback((next: Following | ((before: Following) => Following)) => {
    now.current = typeof next === 'function' ? next(now.current) : next;
    set(now.current);
  }, []);
  const onScroll = useCallback(() => {
    const element = scroller.current;
    if (!element) return;
    const before = top.current;
    top.current = element.scrollTop;
    const next = scrolled(now.current, before, { top: element.scrollTop, content: element.scrollHeight, window: element.clientHeight });
    if (next !== now.current) setFollowing(next);
  }, [scroller, setFollowing]);
  // A window that becomes smaller or larger keeps the end in sight.
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      if (now.current.on) element.scrollTop = element.scrollHeight;
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [scroller]);
  return { following, setFollowing, onScroll };
}

/** Rows behind the last one that was there. What is put before the first row is not new. */
function useCountAppended(rows: readonly Row[], setFollowing: (next: (before: Following) => Following) => void): void {
  const seen = useRef<string | undefined>(undefined);
  const last = rows[rows.length - 1]?.key;
  // The array is appended to in place, so its last row says that it has changed.
  useEffect(() => {
    const before = seen.current;
    seen.current = last;
    if (last === undefined || before === undefined || before === last) return;
    let fresh = 0;
    for (let index = rows.length - 1; index >= 0 && rows[index]?.key !== before; index -= 1) fresh += 1;
    setFollowing((state) => appended(state, fresh));
  }, [last, rows, setFollowing]);
}

function useEarlier(log: TranscriptLog): ReactNode {
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), [log]);
  if (log.earlier !== 'there' && log.earlier !== 'reading') return null;
  const read = () => {
    abort.current = new AbortController();
    void log.readEarlier(abort.current.signal);
  };
  return (
    <div className="above">
      {log.earlier === 'reading'
        ? <span className="small faint">reading earlier lines: {log.earlierCount.toLocaleString('en')}</span>
        : <Button size="tiny" glyph="up" onClick={read}>Earlier lines</Button>}
    </div>
  );
}
