/** The rows of a diff. Only those in sight are mounted; the head of the file in sight stays at the top. */
import { defaultRangeExtractor, useVirtualizer } from '@tanstack/react-virtual';
import { useCallback, useEffect, useImperativeHandle, useMemo, useRef, type ReactNode, type Ref } from 'react';
import type { DiffRow } from './rows';

export interface DiffListHandle {
  scrollTo: (key: string, align?: 'start' | 'auto') => void;
  focus: () => void;
}

interface Props {
  rows: readonly DiffRow[];
  render: (row: DiffRow) => ReactNode;
  onFile: (path: string) => void;
  handle: Ref<DiffListHandle>;
}

const HEIGHTS: Readonly<Record<DiffRow['type'], number>> = { file: 36, note: 24, hunk: 24, line: 20, talk: 96, compose: 130 };
const HEAD = 36;

export function DiffList({ rows, render, onFile, handle }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const heads = useMemo(() => rows.flatMap((row, index) => (row.type === 'file' ? [index] : [])), [rows]);
  const composed = useMemo(() => rows.findIndex((row) => row.type === 'compose'), [rows]);
  const stuck = useRef(-1);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: useCallback((index: number) => HEIGHTS[rows[index]?.type ?? 'line'], [rows]),
    getItemKey: useCallback((index: number) => rows[index]?.key ?? index, [rows]),
    overscan: 20,
    rangeExtractor: (range) => {
      stuck.current = heads.findLast((index) => index <= range.startIndex) ?? -1;
      // The field stays mounted while it is scrolled away: it has the focus and the selection.
      return [...new Set([stuck.current, composed, ...defaultRangeExtractor(range)])].filter((index) => index >= 0).sort((a, b) => a - b);
    },
  });
  const items = virtual.getVirtualItems();
  const head = rows[stuck.current];
  const path = head?.type === 'file' ? head.file.path : null;
  useEffect(() => {
    if (path !== null) onFile(path);
  }, [path, onFile]);

  // Lines wrap: another width has other heights.
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    let width = element.clientWidth;
    const observer = new ResizeObserver(() => {
      if (element.clientWidth === width) return;
      width = element.clientWidth;
      virtual.measure();
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [virtual]);

  useImperativeHandle(handle, () => ({
    scrollTo: (key, align = 'auto') => {
      const index = rows.findIndex((row) => row.key === key);
      if (index < 0) return;
      const start = virtual.measurementsCache[index]?.start ?? 0;
      if (align === 'start') virtual.scrollToIndex(index, { align });
      // Above: two rows of room for the head that lies over them. Below: one row more, so that one sees what comes.
      else if (start < (virtual.scrollOffset ?? 0) + HEAD) virtual.scrollToIndex(Math.max(0, index - 2), { align: 'start' });
      else virtual.scrollToIndex(Math.min(index + 1, rows.length - 1), { align: 'auto' });
    },
    focus: () => scroller.current?.focus({ preventScroll: true }),
  }), [rows, virtual]);

  return (
    <div ref={scroller} className="scroll virtual diff" tabIndex={0} role="region" aria-label="Changes">
      <div style={{ height: virtual.getTotalSize(), position: 'relative' }}>
        {items.map((item) => {
          const row = rows[item.index];
          if (!row) return null;
          const sticks = item.index === stuck.current;
          return (
            <div key={item.key} ref={virtual.measureElement} data-index={item.index} className={sticks ? 'virtual-head' : 'virtual-row'}
              style={sticks ? undefined : { transform: `translateY(${item.start}px)` }}>
              {render(row)}
            </div>
          );
        })}
      </div>
    </div>
  );
}
