/** The actions that hold everywhere: go to a view, palette, help, try now, appearance. */
import { useMemo } from 'react';
import { useLocation } from 'wouter';
import { useActions, type Action } from '../keys/actions';
import { checkNow } from '../store/driver';
import { openHelp, openPalette } from './palette-state';
import { setTheme } from './theme';
import { VIEWS } from './views';

export function useFrameActions(): void {
  const [, go] = useLocation();
  const actions = useMemo<Action[]>(() => [
    ...VIEWS.map((view) => ({ id: `go.${view.id}`, label: view.label, group: 'Go to', glyph: view.glyph, run: () => go(view.path) })),
    { id: 'palette.open', label: 'Search or do', group: 'Page', glyph: 'search', run: openPalette },
    { id: 'help.open', label: 'All keys', group: 'Page', glyph: 'menu', run: openHelp },
    { id: 'connection.check', label: 'Check the connection now', group: 'Page', glyph: 'connection.reconnecting', run: checkNow },
    { id: 'theme.light', label: 'Light', group: 'Page', glyph: 'moon', run: () => setTheme('light') },
    { id: 'theme.dark', label: 'Dark', group: 'Page', glyph: 'moon', run: () => setTheme('dark') },
    { id: 'theme.system', label: 'Light or dark as the system', group: 'Page', glyph: 'moon', run: () => setTheme('system') },
  ], [go]);
  useActions(actions);
}
