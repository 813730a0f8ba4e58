// Pictures of every screen from the example data, light and dark, at 1440 and 390 (and 1024 if screens are named):
// `npm run shots [FOLDER] [SCREEN…]`. Writes FOLDER/SCREEN-WIDTH-THEME.png (default /tmp/shots). Fails on any error in the console.
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { KEYS, SCREENS } from './screens.mjs';
import { launch, pageFolder, serve } from './serve.mjs';

const SIZES = { 1440: { width: 1440, height: 900 }, 1024: { width: 1024, height: 768 }, 390: { width: 390, height: 844 } };

const [folder = '/tmp/shots', ...wanted] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
execFileSync('npx', ['vite', 'build', '--mode', 'fixture', '--logLevel', 'error'], { cwd: pageFolder, stdio: 'inherit' });
const server = await serve('dist-fixture');
const browser = await launch();
let failures = 0;
for (const width of [1440, 390, ...(wanted.length > 0 ? [1024] : [])]) {
  for (const theme of ['light', 'dark']) {
    const context = await browser.newContext({ viewport: SIZES[width], colorScheme: theme, reducedMotion: 'reduce' });
    for (const [name, address] of Object.entries(SCREENS)) {
      if (wanted.length > 0 && !wanted.includes(name)) continue;
      const tab = await context.newPage();
      const fail = (text) => { failures += 1; console.error(`${name} ${width} ${theme}: ${text}`); };
      tab.on('console', (message) => message.type() === 'error' && fail(message.text()));
      tab.on('pageerror', (error) => fail(error.message));
      await tab.goto(server.origin + address);
      // Every screen has a heading; it comes with its data.
      await tab.waitForSelector('main h1', { state: 'attached' });
      if (KEYS[name]) await tab.keyboard.press(KEYS[name]);
      await tab.screenshot({ path: join(folder, `${name}-${width}-${theme}.png`) });
      await tab.close();
    }
    await context.close();
  }
}
await browser.close();
await server.stop();
if (failures > 0) process.exitCode = 1;
