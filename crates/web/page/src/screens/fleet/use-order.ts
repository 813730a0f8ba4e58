/** Workers in the order of the list, and the way from one to the next. */
import type { Terms } from '../../api/view';
import { useStore } from '../../store/store';

/** Ids in the order in which they are shown, now. */
export function shownOrder(terms: Terms | null): string[] {
  const { rows } = useStore.getState();
  return (terms?.attention ?? []).flatMap((group) => [...rows.list('workers', group.id)]);
}

/** The one after (or before) the given one; from none, the first. It does not go round. */
export function stepFrom(order: readonly string[], from: string | null, by: 1 | -1): string | null {
  const at = from === null ? -1 : order.indexOf(from);
  if (at === -1) return order[0] ?? null;
  return order[Math.min(order.length - 1, Math.max(0, at + by))] ?? null;
}

/** The next of which something waits for a person, round and round; null if there is none. */
export function nextWaiting(order: readonly string[], from: string | null, waits: (id: string) => boolean): string | null {
  const at = from === null ? -1 : order.indexOf(from);
  const turned = [...order.slice(at + 1), ...order.slice(0, at + 1)];
  return turned.find(waits) ?? null;
}

export function somethingWaits(id: string): boolean {
  const row = useStore.getState().rows.row('workers', id);
  return row !== undefined && (row.waiting !== null || row.tone === 'you');
}
