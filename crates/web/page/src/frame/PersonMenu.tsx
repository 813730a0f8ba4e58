/** The person at the page, and the choices that are kept in this browser. */
import { useState } from 'react';
import { signOut } from '../api/session';
import { Menu, type MenuItem } from '../parts/Menu';
import { checkNow } from '../store/driver';
import { usePerson } from '../store/store';
import { openHelp } from './palette-state';
import { density, setDensity, setTheme, theme, type Theme } from './theme';

const THEMES: readonly { id: Theme; label: string }[] = [
  { id: 'system', label: 'Light or dark as the system' },
  { id: 'light', label: 'Light' },
  { id: 'dark', label: 'Dark' },
];

export function usePersonItems(): MenuItem[] {
  const [chosen, choose] = useState(theme);
  const [dense, chooseDensity] = useState(density);
  return [
    ...THEMES.map(({ id, label }) => ({
      id, label, checked: id === chosen, run: () => { setTheme(id); choose(id); },
    })),
    {
      id: 'density', label: dense === 'roomy' ? 'Smaller rows' : 'Larger rows',
      run: () => { const next = dense === 'roomy' ? 'normal' : 'roomy'; setDensity(next); chooseDensity(next); },
    },
    { id: 'help', label: 'All keys', run: openHelp },
    { id: 'sign-out', label: 'Sign out', run: () => void signOut().then(checkNow).then(() => location.reload()) },
  ];
}

export function PersonMenu() {
  const person = usePerson()?.name;
  const items = usePersonItems();
  if (!person) return null;
  return (
    <Menu className="who wide-only" label="Appearance, keys, sign out" items={items}>
      {initials(person)}<span className="hide"> is {person}: appearance, keys, sign out</span>
    </Menu>
  );
}

/** `human:local` is `lo`. */
function initials(person: string): string {
  return person.replace(/^.*:/, '').slice(0, 2);
}
