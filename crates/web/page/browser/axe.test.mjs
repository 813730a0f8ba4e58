// axe finds nothing serious on any screen, in both themes, wide and narrow.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { KEYS, SCREENS } from './screens.mjs';
import { launch, pageFolder, serve } from './serve.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
let server;
let browser;

before(async () => {
  execFileSync('npx', ['vite', 'build', '--mode', 'fixture', '--logLevel', 'error'], { cwd: pageFolder, stdio: 'inherit' });
  server = await serve('dist-fixture');
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

for (const width of [1440, 390]) {
  for (const theme of ['light', 'dark']) {
    test(`axe finds nothing serious at ${width} px, ${theme}`, async () => {
      const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: theme, reducedMotion: 'reduce' });
      const found = [];
      for (const [name, address] of Object.entries(SCREENS)) {
        const tab = await context.newPage();
        await tab.goto(server.origin + address);
        // Every screen has a heading; it comes with its data.
        await tab.waitForSelector('main h1', { state: 'attached' });
        if (KEYS[name]) await tab.keyboard.press(KEYS[name]);
        await tab.evaluate(axe);
        const { violations } = await tab.evaluate(() => globalThis.axe.run());
        for (const each of violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')) {
          found.push(...each.nodes.map((node) => `${name}: ${each.id}: ${node.html.slice(0, 160)} ${node.any[0]?.message ?? ''}`));
        }
        await tab.close();
      }
      await context.close();
      assert.deepEqual(found, []);
    });
  }
}
