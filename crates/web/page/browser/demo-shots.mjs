// Pictures of the running demo, of every view in light and dark, wide and narrow: `node browser/demo-shots.mjs ADJ FOLDER`.
// ADJ is the program; it plays its demo with `--stay`, and the page is the one that it serves.
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launch } from './serve.mjs';

const [adj, into] = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), 'adj-shots-'));
const repository = join(scratch, 'tally');
const env = { ...process.env, XDG_STATE_HOME: join(scratch, 'state') };
const demo = spawn(adj, ['demo', '--stay', '--dir', repository], { env, stdio: ['ignore', 'pipe', 'inherit'] });
let printed = '';
demo.stdout.on('data', (text) => { printed += text; });

/** Until the demo has printed this. */
async function until(text) {
  while (!printed.includes(text)) {
    if (demo.exitCode !== null) throw new Error(`the demo ended:\n${printed}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const VIEWS = [
  { name: 'board', path: '/board', when: '✓ ta-2 landed' },
  { name: 'fleet', path: '/fleet/A', when: '' },
  { name: 'task', path: '/task/ta-3/review', when: '✓ ta-3 landed' },
  { name: 'queue', path: '/queue', when: '' },
  { name: 'inbox', path: '/inbox', when: '' },
];
const SIZES = { 1440: 900, 390: 844 };

const browser = await launch();
try {
  mkdirSync(into, { recursive: true });
  await until('serving at');
  const url = execFileSync(adj, ['--project', repository, 'url'], { env, encoding: 'utf8' }).trim();
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  await page.goto(url);
  await page.getByText('Live').first().waitFor();
  for (const view of VIEWS) {
    if (view.when) await until(view.when);
    await page.goto(new URL(view.path, url).href);
    await page.locator('h1').first().waitFor({ state: 'attached' });
    await page.waitForLoadState('load');
    for (const [width, height] of Object.entries(SIZES)) {
      for (const scheme of ['light', 'dark']) {
        await page.setViewportSize({ width: Number(width), height });
        await page.emulateMedia({ colorScheme: scheme });
        // What a view asks for beside its rows comes a moment later.
        await page.waitForTimeout(400);
        await page.screenshot({ path: join(into, `${view.name}-${width}-${scheme}.png`) });
      }
    }
  }
} finally {
  await browser.close();
  demo.kill('SIGINT');
  await new Promise((resolve) => demo.on('exit', resolve));
  rmSync(scratch, { recursive: true, force: true });
}
