/** Computes the contrast of every text token on every ground on which it stands, in all six sets of colours. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const css = readFileSync(new URL('../src/style/tokens.css', import.meta.url), 'utf8');

function block(selector: string, side: 0 | 1): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [start] of css.matchAll(new RegExp(`^${selector.replace(/[[\]"]/g, '\\$&')} \\{[^}]*\\}`, 'gm'))) {
    for (const [, name, light, dark, both] of start.matchAll(/--([\w-]+):\s*(?:light-dark\((#\w{6}), (#\w{6})\)|(#\w{6}));/g)) {
      found[name ?? ''] = both ?? (side === 0 ? light : dark) ?? '';
    }
  }
  return found;
}

function luminance(colour: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
    const part = parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function ratio(a: string, b: string): number {
  const [high = 0, low = 0] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

const each = (texts: string[], grounds: string[], need: number) => texts.flatMap((text) => grounds.map((ground) => ({ text, ground, need })));
const PAIRS = [
  ...each(['ink', 'ink-2', 'ink-3', 'accent', 'ok', 'warn', 'bad'], ['surface', 'canvas', 'raised', 'hover'], 4.5),
  ...each(['ink', 'ink-2', 'ink-3'], ['sunken', 'accent-tint'], 4.5),
  ...['accent', 'ok', 'warn', 'bad'].flatMap((name) => each([name], [`${name}-tint`], 4.5)),
  ...each(['ink-on'], ['accent-fill'], 4.5),
  ...each(['ink'], ['diff-add', 'diff-del', 'diff-add-word', 'diff-del-word', 'ok-tint', 'warn-tint', 'bad-tint'], 4.5),
  ...each(['ink-3'], ['diff-add', 'diff-del'], 4.5),
  ...each(['still-ink', 'still-ink-2', 'still-ink-3'], ['canvas'], 4.5),
  ...each(['line-control', 'focus'], ['surface'], 3),
];

test.each([0, 1] as const)('every text has its contrast, side %i', (side) => {
  const ground = block(':root', side);
  const sets = { plain: ground, stale: { ...ground, ...block(':root[data-live="stale"]', side) }, past: { ...ground, ...block(':root[data-time="past"]', side) } };
  const failing: string[] = [];
  for (const [name, set] of Object.entries(sets)) {
    for (const pair of PAIRS) {
      const text = set[pair.text];
      const on = set[pair.ground];
      if (!text || !on) failing.push(`${name}: ${pair.text} or ${pair.ground} is missing`);
      else if (ratio(text, on) < pair.need) failing.push(`${name}: ${pair.text} on ${pair.ground} ${ratio(text, on).toFixed(2)} < ${pair.need}`);
    }
  }
  expect(failing).toEqual([]);
});
