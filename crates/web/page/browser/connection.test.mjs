// The built page against a server that sends what docs/api.md says, and can be stopped: what the page says at every moment.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { launch, serve } from './serve.mjs';

const TERMS = {
  statuses: [], moves: [], waitingKinds: [], attention: [],
  keys: [
    { action: 'go.inbox', keys: ['G I'], views: [], words: 'go to the inbox' },
    { action: 'palette.open', keys: ['Ctrl+K'], views: [], words: 'search or do' },
    { action: 'help.open', keys: ['?'], views: [], words: 'keys', foot: true },
  ],
};
const waiting = (count) => Array.from({ length: count }, (_, index) => ({
  id: `w${index}`, seq: 1, kind: 'review', glyph: 'task.REVIEW', project: 'tally', text: 'Review', about: '', since: null, blocks: [], rank: index, task: null,
}));
const facts = { id: 'frame', seq: 1, project: 'tally', person: 'human:local', fleet: { text: 'fleet is off', glyph: 'worker.idle' }, main: { text: 'main green at', glyph: 'check', commit: '31ed415' }, money: null, machine: '', firstRun: false };

/** A server of one project. `requests` are the addresses of the streams that the page opened. */
class Fake {
  seq = 7;
  requests = [];
  streams = new Set();
  signedIn = true;
  session = null;

  async start(port = 0) {
    this.http = await serve('dist', { port, api: (request, response, path) => this.answer(request, response, path) });
    this.timer = setInterval(() => this.send('heartbeat', { seq: this.seq, at: new Date().toISOString() }), 1000);
  }

  async stop() {
    clearInterval(this.timer);
    await this.http.stop();
    this.streams.clear();
  }

  answer(request, response, path) {
    const json = (status, body) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (path === '/session') {
      let body = '';
      request.on('data', (piece) => { body += piece; });
      request.on('end', () => {
        this.session = JSON.parse(body).code;
        this.signedIn = true;
        json(200, { pageKey: 'key-1' });
      });
      return true;
    }
    if (!this.signedIn) return json(401, { type: '', title: '', status: 401, detail: 'sign in' });
    this.key = request.headers['x-adj-page-key'];
    if (path === '/api/v1/terms') return json(200, TERMS);
    if (path !== '/api/v1/view') return false;
    this.requests.push(request.url);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    this.streams.add(response);
    response.on('close', () => this.streams.delete(response));
    if (request.url.includes('after=')) this.send('change', { seq: this.seq, at: new Date().toISOString(), gone: {}, waiting: waiting(this.seq - 4) });
    else this.send('view', { seq: this.seq, at: new Date().toISOString(), tasks: [], columns: [], workers: [], waiting: waiting(3), queue: [], projects: [], facts: [facts] });
    return true;
  }

  send(event, data) {
    for (const stream of this.streams) stream.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }
}

let browser;
let fake;
let tab;
before(async () => { browser = await launch(); });
after(() => browser?.close());
afterEach(async () => {
  await tab?.context().close();
  await fake?.stop();
});

async function open(path = '/board') {
  fake = new Fake();
  await fake.start();
  tab = await browser.newPage();
  await tab.goto(fake.http.origin + path);
}

const sign = (state) => tab.locator(`.live[data-is="${state}"]`);
const seen = (state, timeout = 20_000) => sign(state).waitFor({ timeout });
const inboxCount = () => tab.locator('.views .num.you').textContent();

test('a restart of the server is reconnecting, stale and live again, without a reload and from the last record', async () => {
  await open();
  await seen('live');
  assert.match(await sign('live').textContent(), /Live seq 7/);
  assert.equal(await inboxCount(), '3');
  await tab.evaluate(() => { globalThis.sameDocument = true; });
  const { port } = fake.http;
  await fake.stop();
  await seen('reconnecting');
  assert.match(await sign('reconnecting').textContent(), /next try in \d+ s|trying now/);
  assert.equal(await tab.evaluate(() => document.documentElement.dataset.live), 'reconnecting');
  await seen('stale');
  assert.match(await sign('stale').textContent(), /Stale since \d\d:\d\d:\d\d/);
  assert.equal(await inboxCount(), '3');
  fake.seq = 9;
  await fake.start(port);
  await seen('live');
  assert.match(await sign('live').textContent(), /seq 9/);
  assert.equal(await inboxCount(), '5');
  assert.ok(fake.requests.at(-1).endsWith('/api/v1/view?after=7'), fake.requests.at(-1));
  assert.equal(await tab.evaluate(() => globalThis.sameDocument), true);
});

test('a stream that is open and silent is taken for lost', async () => {
  await open();
  await seen('live');
  clearInterval(fake.timer);
  const before = fake.requests.length;
  // The next try succeeds at once, so the state is there for a moment only: every one is noted.
  await tab.evaluate(() => {
    const root = document.documentElement;
    globalThis.states = [];
    new MutationObserver(() => globalThis.states.push(root.dataset.live)).observe(root, { attributeFilter: ['data-live'] });
  });
  await tab.waitForFunction(() => globalThis.states.includes('reconnecting'), null, { timeout: 20_000 });
  await seen('live');
  assert.equal(fake.requests.length, before + 1);
});

test('a page whose session ended says so and tries nothing', async () => {
  await open();
  await seen('live');
  fake.signedIn = false;
  for (const stream of fake.streams) stream.destroy();
  await seen('signed-out');
  assert.match(await tab.locator('h1').textContent(), /signed out/);
  const asked = fake.requests.length;
  await tab.evaluate(() => window.dispatchEvent(new Event('online')));
  assert.equal(fake.requests.length, asked);
});

test('a link signs in: its secret leaves the address, and the page key is sent from then on', async () => {
  await open('/enter#secret-1');
  await seen('live');
  assert.equal(fake.session, 'secret-1');
  assert.equal(fake.key, 'key-1');
  assert.equal(await tab.evaluate(() => localStorage.getItem('adj-page-key')), 'key-1');
  assert.ok(!tab.url().includes('secret'));
});

test('under /p/NAME/ every address is relative to the project', async () => {
  await open('/p/tally/');
  await seen('live');
  await tab.waitForURL('**/p/tally/board');
  assert.ok(fake.requests[0].startsWith('/p/tally/api/v1/view'));
  await tab.keyboard.press('g');
  await tab.keyboard.press('i');
  await tab.waitForURL('**/p/tally/inbox');
});

test('keys open palette and help, rest while typing, and Esc gives the focus back', async () => {
  await open();
  await seen('live');
  await tab.keyboard.press('Control+k');
  await tab.keyboard.type('?gi');
  assert.equal(await tab.locator('.palette input').inputValue(), '?gi');
  await tab.keyboard.press('Escape');
  await tab.locator('.palette').waitFor({ state: 'detached' });
  await tab.keyboard.press('?');
  await tab.locator('.dialog').waitFor();
  await tab.keyboard.press('Escape');
  await tab.locator('.dialog').waitFor({ state: 'detached' });
  await tab.keyboard.press('Control+k');
  await tab.keyboard.type('inb');
  await tab.keyboard.press('Enter');
  await tab.waitForURL('**/inbox');
});
