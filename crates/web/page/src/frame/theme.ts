/** Light, dark, or as the system has it; and how dense the page is. Both are kept in this browser. */

export type Theme = 'system' | 'light' | 'dark';
export type Density = 'normal' | 'roomy';

const THEME = 'adj-theme';
const DENSITY = 'adj-density';

function stored(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function store(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(name);
    else localStorage.setItem(name, value);
  } catch {
    // The choice holds until the page is closed.
  }
}

export function theme(): Theme {
  const chosen = stored(THEME);
  return chosen === 'light' || chosen === 'dark' ? chosen : 'system';
}

export function setTheme(next: Theme): void {
  store(THEME, next === 'system' ? null : next);
  if (next === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = next;
}

export function density(): Density {
  return stored(DENSITY) === 'roomy' ? 'roomy' : 'normal';
}

export function setDensity(next: Density): void {
  store(DENSITY, next === 'normal' ? null : next);
  if (next === 'normal') delete document.documentElement.dataset['density'];
  else document.documentElement.dataset['density'] = next;
}

/** Before the first rendering. */
export function applyChoices(): void {
  setTheme(theme());
  setDensity(density());
}
