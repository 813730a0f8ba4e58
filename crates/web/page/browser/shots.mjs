// Pictures of every screen from the example data, at 1440 and 390, light and dark: `npm run shots [FOLDER] [SCREEN…]`.
// Builds with the example data, serves that build itself, and writes FOLDER/SCREEN-WIDTH-THEME.png (default /tmp/shots).
import { execFileSync } from 'node:child_process';
import { createReadStream, existsSync, mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const SCREENS = {
  inbox: '/inbox?fixture', board: '/board?fixture', 'board-stale': '/board?fixture=stale', 'board-reconnecting': '/board?fixture=reconnecting',
  fleet: '/fleet?fixture', queue: '/queue?fixture', task: '/task/ta-8?fixture', more: '/more?fixture',
  palette: '/board?fixture#palette', help: '/board?fixture#help', 'signed-out': '/board?fixture=signed-out', 'first-run': '/board?fixture=first',
};
const KEYS = { palette: 'Control+k', help: '?' };
const SIZES = { 1440: { width: 1440, height: 900 }, 1024: { width: 1024, height: 768 }, 390: { width: 390, height: 844 } };
const TYPES = { '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.html': 'text/html; charset=utf-8' };
// The policy of the server: a picture that needs more than this would be a lie.
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'";

const page = fileURLToPath(new URL('..', import.meta.url));
const [folder = '/tmp/shots', ...wanted] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
execFileSync('npx', ['vite', 'build', '--mode', 'fixture', '--logLevel', 'error'], { cwd: page, stdio: 'inherit' });

const server = createServer((request, response) => {
  const path = new URL(request.url, 'http://page').pathname;
  const file = join(page, 'dist-fixture', path);
  const known = extname(path) !== '' && existsSync(file);
  response.writeHead(200, { 'content-type': TYPES[known ? extname(path) : '.html'], 'content-security-policy': POLICY });
  createReadStream(known ? file : join(page, 'dist-fixture/index.html')).pipe(response);
}).listen(0, '127.0.0.1');
await new Promise((resolve) => server.once('listening', resolve));
const origin = `http://127.0.0.1:${server.address().port}`;

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
let failures = 0;
for (const width of [1440, 390, ...(wanted.length > 0 ? [1024] : [])]) {
  for (const theme of ['light', 'dark']) {
    const context = await browser.newContext({ viewport: SIZES[width], colorScheme: theme, reducedMotion: 'reduce' });
    for (const [name, address] of Object.entries(SCREENS)) {
      if (wanted.length > 0 && !wanted.includes(name)) continue;
      const tab = await context.newPage();
      tab.on('console', (message) => {
        if (message.type() !== 'error') return;
        failures += 1;
        console.error(`${name} ${width} ${theme}: ${message.text()}`);
      });
      tab.on('pageerror', (error) => { failures += 1; console.error(`${name} ${width} ${theme}: ${error.message}`); });
      await tab.goto(origin + address, { waitUntil: 'networkidle' });
      if (KEYS[name]) await tab.keyboard.press(KEYS[name]);
      await tab.screenshot({ path: join(folder, `${name}-${width}-${theme}.png`) });
      await tab.close();
    }
    await context.close();
  }
}
await browser.close();
server.close();
if (failures > 0) process.exitCode = 1;
