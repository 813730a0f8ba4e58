/** A list of which only the rows in sight are mounted, and those that must stay: the focused one and the one that is dragged. */
import { defaultRangeExtractor, useVirtualizer, type Virtualizer } from '@tanstack/react-virtual';
import { useCallback, useImperativeHandle, useRef, type ReactNode, type Ref } from 'react';

export interface VirtualListHandle {
  scrollTo: (id: string) => void;
}

interface Props {
  ids: readonly string[];
  /** Height of a row before it is measured. */
  estimate: number;
  /** Ids that stay mounted wherever the list is scrolled to. */
  keep?: readonly (string | null | undefined)[];
  render: (id: string, index: number) => ReactNode;
  label: string;
  className?: string;
  handle?: Ref<VirtualListHandle>;
}

export function VirtualList({ ids, estimate, keep = [], render, label, className = '', handle }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const kept = keep.map((id) => (id ? ids.indexOf(id) : -1)).filter((index) => index >= 0);
  const virtual: Virtualizer<HTMLDivElement, Element> = useVirtualizer({
    count: ids.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => estimate,
    getItemKey: useCallback((index: number) => ids[index] ?? index, [ids]),
    overscan: 6,
    rangeExtractor: (range) => [...new Set([...defaultRangeExtractor(range), ...kept])].sort((a, b) => a - b),
  });
  useImperativeHandle(handle, () => ({
    scrollTo: (id) => {
      const index = ids.indexOf(id);
      if (index >= 0) virtual.scrollToIndex(index, { align: 'auto' });
    },
  }), [ids, virtual]);
  return (
    <div ref={scroller} className={`scroll virtual ${className}`}>
      <div role="list" aria-label={label} style={{ height: virtual.getTotalSize(), position: 'relative' }}>
        {virtual.getVirtualItems().map((item) => (
          <div
            key={item.key}
            ref={virtual.measureElement}
            role="listitem"
            aria-setsize={ids.length}
            aria-posinset={item.index + 1}
            data-index={item.index}
            className="virtual-row"
            style={{ transform: `translateY(${item.start}px)` }}
          >
            {render(ids[item.index] ?? '', item.index)}
          </div>
        ))}
      </div>
    </div>
  );
}
