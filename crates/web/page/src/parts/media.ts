/** Widths at which the page changes its layout. The style has the same numbers. */
import { useSyncExternalStore } from 'react';

/** One pane, tabs at the bottom. */
export const NARROW = '(max-width: 720px)';
/** Room for a rail beside the main pane. */
export const RAIL = '(min-width: 1280px)';

export function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (listener) => {
      const media = matchMedia(query);
      media.addEventListener('change', listener);
      return () => media.removeEventListener('change', listener);
    },
    () => matchMedia(query).matches,
  );
}
