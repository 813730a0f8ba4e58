// The fleet screen against a server that answers as docs/api.md says: a transcript that is watched, long, hostile, and what is sent.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { launch, serve } from './serve.mjs';

const now = () => new Date().toISOString();
const TERMS = {
  statuses: [{ id: 'IN_PROGRESS', label: 'In progress', glyph: 'task.IN_PROGRESS', final: false, words: '' }], moves: [], waitingKinds: [], types: [], agents: ['claude', 'codex'], queueSteps: [],
  attention: [{ id: 'waits', label: 'Wait for you', glyph: '' }, { id: 'stuck', label: 'Stuck', glyph: '' }, { id: 'idle', label: 'Idle', glyph: '' }, { id: 'work', label: 'At work', glyph: '' }],
  workerStates: [{ id: 'working', label: 'Working', glyph: '' }, { id: 'idle', label: 'Idle', glyph: '' }, { id: 'stuck', label: 'Stuck', glyph: '' }],
  keys: [
    { action: 'next.waiting', keys: ['.'], views: ['fleet'], words: 'next that waits', foot: true },
    { action: 'message', keys: ['E'], views: ['fleet'], words: 'message', foot: true },
    { action: 'follow', keys: ['F'], views: ['fleet'], words: 'follow', foot: true },
    { action: 'pause', keys: ['P'], views: ['fleet'], words: 'pause or resume', foot: true },
    { action: 'next', keys: ['J'], views: ['fleet'], words: 'next', foot: true },
  ],
};
const KILL = ['The processes of A end.', 'What is in its tree is saved to a reference of git first.', 'ta-1 keeps its branch; another worker goes on with it.'];
const actions = (name) => [
  { code: 'pause_run', label: 'Pause', happens: ['Pauses the run after its turn.'], request: { method: 'POST', path: '/runs/ta-1_1/events', body: { type: 'PAUSE', reason: 'user_input' } } },
  { code: 'kill_worker', label: 'Kill', endsWork: true, happens: KILL, request: { method: 'POST', path: `/workers/${name}/kill`, body: {} } },
];
const worker = (id, more = {}) => ({
  id, seq: 1, name: id, agent: 'claude', state: 'working', attention: 'work', text: 'Edit commands/sum', tone: '', activity: { state: 'step' }, task: 'ta-1', title: 'Add sum',
  run: 'ta-1_1', turn: 7, maxTurns: 50, since: now(), lastError: null, costUsd: 0.07, waiting: null, actions: actions(id), ...more,
});
const WORKERS = [
  worker('A'),
  worker('F', { attention: 'waits', tone: 'you', text: 'asks: Bash git push', waiting: 'approval-q7', task: 'ta-17', title: 'Keep fixtures out' }),
  worker('K', { state: 'idle', attention: 'idle', task: null, title: '', run: null, turn: null, maxTurns: null, text: 'waits for codex', activity: { state: 'service', service: 'codex', since: now(), until: new Date(Date.now() + 192_000).toISOString() } }),
];
const facts = {
  id: 'frame', seq: 1, project: 'tally', firstRun: false, running: true, wanted: true, workers: 3, working: 2, fleet: { text: 'fleet runs', glyph: 'worker.working' },
  main: { text: 'main green at', glyph: 'check', commit: '31ed415' }, mainTests: null, tests: [], money: null, cost: {}, machine: '', machineUse: null, landedLastHour: 0,
  actions: [{ code: 'stop_fleet', label: 'Stop the fleet', endsWork: true, happens: ['The next start goes on from there.'], request: { method: 'POST', path: '/fleet/stop', body: {} } }],
};
const HOSTILE = '<img src=x onerror="globalThis.hacked=1"> \u001b[31mred \u202eexe.txt\u202c https://example.org <script>globalThis.hacked=1</script>';

class Fake {
  seq = 7;
  /** Entries of the transcript of A. */
  entries = [];
  waits = new Set();
  asked = [];
  posted = [];
  records = [];
  streams = new Set();

  async start() {
    this.http = await serve('dist', { api: (request, response, path) => this.answer(request, response, path) });
    this.timer = setInterval(() => this.send('heartbeat', { seq: this.seq, at: now() }), 1000);
  }

  async stop() {
    clearInterval(this.timer);
    await this.http.stop();
  }

  say(kind, text) {
    this.entries.push({ cursor: this.entries.length + 1, at: now(), kind, text });
  }

  /** Whoever waits for more gets it. */
  flush() {
    for (const answer of [...this.waits]) answer();
  }

  send(event, data) {
    for (const stream of this.streams) stream.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  change(rows) {
    this.seq += 1;
    this.send('change', { seq: this.seq, at: now(), gone: {}, ...rows });
  }

  answer(request, response, path) {
    const json = (status, body) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    const { searchParams } = new URL(request.url, 'http://page');
    if (request.method === 'POST') {
      let body = '';
      request.on('data', (piece) => { body += piece; });
      request.on('end', () => {
        this.posted.push({ path: path.replace('/api/v1', ''), body: JSON.parse(body || '{}') });
        json(200, {});
      });
      return true;
    }
    const called = path.replace('/api/v1', '');
    if (called === '/view') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      this.streams.add(response);
      response.on('close', () => this.streams.delete(response));
      this.send('view', { seq: this.seq, at: now(), tasks: [{ id: 'ta-1', seq: 1, title: 'Add sum', status: 'IN_PROGRESS', rank: 1, priority: 2, type: 'task', since: now(), lines: [] }], columns: [], workers: WORKERS, waiting: [], queue: [], facts: [facts] });
      return true;
    }
    if (called === '/terms') return json(200, TERMS);
    if (called === '/workers/A/transcript') return this.transcript(response, json, searchParams);
    if (called.endsWith('/transcript')) return json(200, { items: [], next: null, more: false, resting: true });
    if (called.endsWith('/why')) return json(200, { id: 'A', state: 'worker.working', guards: [] });
    if (called.startsWith('/workers/')) return json(200, { name: called.slice(9), branch: '', task: 'ta-1', status: 'working', lastAction: 'Edit(commands/sum)', lastStepAt: now() });
    if (called.startsWith('/runs/')) return json(200, { id: 'ta-1_1', task: 'ta-1', state: 'running', suspended: false, pauseReason: null, lastError: null, cost: { usd: 0.07, reservedUsd: 0 }, meta: { hasActiveTask: true } });
    if (called === '/tasks/ta-1/history') return json(200, { items: this.records.filter((record) => record.seq > Number(searchParams.get('after'))), next: null });
    if (called.startsWith('/tasks/')) return json(200, { id: called.slice(7), status: 'IN_PROGRESS', lease: { worker: this.lease ?? 'A' }, branch: 'agent/A-ta-1', tip: '31ed415a0', cost: { usd: 0.07, reservedUsd: 0 }, comments: [] });
    if (called === '/config') return json(200, { settings: { budget: { task: 2_000_000, run: null } } });
    return json(404, { type: '', title: '', status: 404, detail: `no ${called}` });
  }

  transcript(response, json, query) {
    this.asked.push(query.toString());
    const limit = Number(query.get('limit') ?? 100);
    if (!query.has('after')) return json(200, { items: this.entries.slice(-limit), next: String(this.entries.length), more: false, resting: false });
    const after = Number(query.get('after'));
    const answer = () => {
      const items = this.entries.slice(after, after + limit);
      json(200, { items, next: String(after + items.length), more: items.length >= limit, resting: false });
    };
    if (this.entries.length > after || !query.has('wait')) return answer();
    const once = () => {
      this.waits.delete(once);
      answer();
    };
    this.waits.add(once);
    response.on('close', () => this.waits.delete(once));
    return true;
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

async function open(path, prepare = () => undefined, viewport = { width: 1440, height: 900 }) {
  fake = new Fake();
  prepare(fake);
  await fake.start();
  tab = await browser.newPage({ viewport });
  await tab.goto(fake.http.origin + path);
  await tab.locator('.live[data-is="live"]').waitFor();
}

const log = () => tab.locator('.log');
const atEnd = () => log().evaluate((it) => it.scrollHeight - it.clientHeight - it.scrollTop < 25);
/** Rows are measured after they are drawn, so the end is reached a frame later. */
const reachesEnd = () => tab.waitForFunction(() => {
  const it = document.querySelector('.log');
  return it.scrollHeight - it.clientHeight - it.scrollTop < 25;
});
/** The first row in sight and how far it is from the upper edge: what the reader looks at. */
const reading = () => log().evaluate((it) => {
  const top = it.getBoundingClientRect().top;
  const row = [...it.querySelectorAll('.virtual-row')].map((each) => [each.getBoundingClientRect().top - top, each.textContent]).filter(([y]) => y >= 0).sort((a, b) => a[0] - b[0])[0];
  return { y: Math.round(row[0]), text: row[1] };
});
/** The same, after the wheel's own movement has come to its end. */
async function standing() {
  for (let before = await reading(); ;) {
    await tab.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    const again = await reading();
    if (again.y === before.y && again.text === before.text) return again;
    before = again;
  }
}
/** Scrolls from the end to the beginning in 120 steps, a frame each: how long the frames are, and how many rows are mounted at most. */
const frames = () => log().evaluate(async (it) => {
  const gaps = [];
  let mounted = 0;
  let last = performance.now();
  for (let index = 0; index <= 120; index += 1) {
    it.scrollTop = (it.scrollHeight - it.clientHeight) * (1 - index / 120);
    await new Promise((resolve) => requestAnimationFrame(resolve));
    gaps.push(performance.now() - last);
    last = performance.now();
    mounted = Math.max(mounted, it.querySelectorAll('.virtual-row').length);
  }
  gaps.sort((a, b) => a - b);
  return { median: gaps[60], longest: gaps.at(-1), mounted };
});
const lines = (server, count, text = 'line') => {
  for (let index = 0; index < count; index += 1) server.say('text', `${text} ${server.entries.length + 1}`);
};

test('a transcript is watched live: text, calls folded with their result, and nothing is asked by a timer', async () => {
  await open('/fleet/A', (server) => {
    server.say('step', 'ta-1 init, worker A');
    server.say('text', 'A sum is a loop.');
  });
  await log().getByText('A sum is a loop.').waitFor();
  await log().getByText('ta-1 · init').waitFor();
  fake.say('call', 'Bash(sh tests/run)');
  fake.flush();
  const call = log().getByRole('button', { name: /Bash sh tests\/run/ });
  await call.waitFor();
  assert.match(await call.textContent(), /running/);
  fake.say('failure', `Bash: ${Array.from({ length: 9 }, (_, index) => `out ${index}`).join('\n')}`);
  fake.flush();
  // What failed is open, with six lines at first.
  await log().getByText('out 5').waitFor();
  assert.match(await call.textContent(), /failed, 9 lines/);
  assert.equal(await log().getByText('out 6').count(), 0);
  await log().getByRole('button', { name: 'all 9 lines' }).click();
  await log().getByText('out 8').waitFor();
  await call.click();
  await log().getByText('out 8').waitFor({ state: 'detached' });
  const waiting = fake.asked.filter((query) => query.includes('wait=true'));
  assert.equal(fake.asked.length, waiting.length + 1, 'after the first, every request waits');
  assert.equal(new Set(waiting).size, waiting.length, 'none asks twice for the same');
});

test('text is shown as it is written, and once when the transcript has it', async () => {
  let streamed = 0;
  await open('/fleet', (server) => server.say('text', 'before'));
  await tab.context().route('**/v1/stream/runs/**', (route) => {
    streamed += 1;
    const body = 'event: data\ndata:[{"type":"stream:token","text":"I look "},{"type":"agent:step"},{"type":"stream:token","text":"at it"}]\n\nevent: control\ndata:{"streamNextOffset":"1_0","streamClosed":true}\n\n';
    return route.fulfill({ status: 200, contentType: 'text/event-stream', body });
  });
  await tab.goto(`${fake.http.origin}/fleet/A`);
  await log().locator('.now').getByText('I look at it').waitFor();
  assert.equal(streamed, 1);
  fake.say('text', 'I look at it');
  fake.flush();
  await log().locator('.now').waitFor({ state: 'detached' });
  assert.equal(await log().getByText('I look at it').count(), 1);
});

test('who scrolls up is not moved by what comes, and the key goes back to the end', async () => {
  await open('/fleet/A', (server) => lines(server, 400));
  await log().getByText('line 400').waitFor();
  await reachesEnd();
  lines(fake, 3);
  fake.flush();
  await log().getByText('line 403').waitFor();
  await reachesEnd();
  await log().hover();
  await tab.mouse.wheel(0, -3000);
  await tab.getByRole('button', { name: 'To the end' }).waitFor();
  const before = await standing();
  for (let round = 0; round < 5; round += 1) {
    lines(fake, 10, 'a longer line of text that breaks into several lines because it goes on and on, and on, and on; number');
    fake.flush();
    await tab.getByRole('button', { name: `${(round + 1) * 10} new lines below` }).waitFor();
    assert.deepEqual(await reading(), before);
  }
  await tab.keyboard.press('f');
  await log().getByText('number 453').waitFor();
  await reachesEnd();
  assert.equal(await tab.locator('.below').count(), 0);
});

test('a kill says what is saved before it is sent, and is sent once', async () => {
  await open('/fleet/A');
  await tab.getByRole('button', { name: 'Kill…' }).click();
  const dialog = tab.getByRole('dialog', { name: 'Kill A' });
  for (const sentence of KILL) await dialog.getByText(sentence).waitFor();
  assert.deepEqual(fake.posted, []);
  await dialog.getByRole('button', { name: 'Kill' }).click();
  await dialog.waitFor({ state: 'detached' });
  assert.deepEqual(fake.posted, [{ path: '/workers/A/kill', body: {} }]);
});

test('the fleet is stopped after its consequences were read, and a run is paused by its key', async () => {
  await open('/fleet/A');
  await tab.getByRole('button', { name: 'Pause' }).waitFor();
  await tab.keyboard.press('p');
  await tab.waitForFunction(() => document.body.textContent.includes('Pauses the run after its turn.'));
  await tab.getByRole('button', { name: 'Stop the fleet…' }).click();
  await tab.getByRole('dialog').getByText('The next start goes on from there.').waitFor();
  await tab.getByRole('dialog').getByRole('button', { name: 'Stop the fleet' }).click();
  await tab.getByRole('dialog').waitFor({ state: 'detached' });
  assert.deepEqual(fake.posted.map(({ path }) => path), ['/runs/ta-1_1/events', '/fleet/stop']);
});

test('a message is sent by Enter, and its receipt says what became of it', async () => {
  await open('/fleet/A', (server) => server.say('text', 'at work'));
  await log().getByText('at work').waitFor();
  const record = (kind, data) => fake.records.push({ seq: 100 + fake.records.length, at: now(), actor: '', command: '', stream: '', version: 1, kind, data });
  await tab.keyboard.press('e');
  await tab.keyboard.type('Keep awk <b>');
  record('commented', { comment: 'comment', by: 'human:local', text: 'Keep awk <b>' });
  record('effect_asked', { id: 'e6', what: { effect: 'tell_agent', text: 'Keep awk <b>' } });
  await tab.keyboard.press('Enter');
  await log().locator('.mine').getByText('local: Keep awk <b>').waitFor();
  assert.deepEqual(fake.posted, [{ path: '/tasks/ta-1/comments', body: { text: 'Keep awk <b>' } }]);
  assert.equal(await tab.getByLabel('Message A').inputValue(), '');
  assert.match(await log().locator('.receipt').textContent(), /sent/);
  record('effect_ended', { id: 'e6', how: 'done' });
  fake.change({});
  await log().locator('.receipt').getByText('given to the agent').waitFor();
  record('run_moved', { input: { type: 'STEP', turn: 8 } });
  fake.change({ workers: [worker('A', { seq: 8, turn: 8 })] });
  await log().locator('.receipt.got').getByText('before turn 8').waitFor();
});

test('hostile output stays text', async () => {
  await open('/fleet/A', (server) => {
    server.say('text', HOSTILE);
    server.say('call', `Bash(${HOSTILE})`);
    server.say('failure', `Bash: ${HOSTILE}`);
    server.say('step', HOSTILE);
  });
  await log().getByText('<script>').first().waitFor();
  assert.equal(await tab.locator('.log img, .log script, .log a').count(), 0);
  assert.equal(await tab.evaluate(() => globalThis.hacked), undefined);
  const text = await log().textContent();
  assert.ok(text.includes('U+001B') && text.includes('U+202E'));
  assert.ok(!/[\u001b\u202e\u202c]/.test(await tab.locator('body').innerHTML()));
});

test('100,000 lines scroll: few are mounted, frames are short, and older ones are put before without a jump', async () => {
  await open('/fleet/A', (server) => {
    for (let index = 0; index < 100_000; index += 1) server.entries.push({ cursor: index + 1, at: '2026-11-18T10:00:00Z', kind: 'text', text: `line ${index + 1}` });
  });
  await log().getByText('line 100000').waitFor();
  assert.equal(fake.asked[0], 'limit=1000');
  const short = await frames();
  await tab.keyboard.press('f');
  await log().getByText('line 100000').waitFor();
  await log().hover();
  await tab.mouse.wheel(0, -2000);
  await tab.getByRole('button', { name: 'To the end' }).waitFor();
  const where = await standing();
  const start = Date.now();
  await tab.getByRole('button', { name: 'Earlier lines' }).click();
  await tab.locator('.above').waitFor({ state: 'detached', timeout: 60_000 });
  const loaded = Date.now() - start;
  assert.ok(!(await atEnd()));
  assert.deepEqual(await standing(), where, 'the reader is where they were');
  const long = await frames();
  console.log(`# 100,000 lines: read in ${loaded} ms; frames median ${long.median.toFixed(0)} ms, longest ${long.longest.toFixed(0)} ms (1,000 lines: ${short.median.toFixed(0)}, ${short.longest.toFixed(0)}); ${long.mounted} rows mounted`);
  assert.ok(long.mounted < 120, `${long.mounted} rows are mounted`);
  // The machine may be slow; a long transcript is not slower than a short one.
  assert.ok(long.median < short.median * 3 + 20, `median frame ${long.median} ms, with 1,000 lines ${short.median} ms`);
  await log().evaluate((it) => { it.scrollTop = 0; });
  await log().getByText('line 1', { exact: true }).waitFor();
  await tab.keyboard.press('f');
  await log().getByText('line 100000').waitFor();
});

test('a transcript goes on from where it was after a break, and nothing stands there twice', async () => {
  await open('/fleet/A', (server) => lines(server, 5));
  await log().getByText('line 5').waitFor();
  for (const stream of fake.streams) stream.destroy();
  await tab.locator('.live[data-is="reconnecting"]').waitFor();
  lines(fake, 2);
  const asked = fake.asked.length;
  await log().getByText('line 7').waitFor();
  assert.deepEqual(fake.asked.slice(asked, asked + 1), ['limit=1000&after=5&wait=true']);
  assert.deepEqual(await log().locator('.say').allTextContents(), [1, 2, 3, 4, 5, 6, 7].map((number) => `line ${number}`));
});

test('two truths that contradict each other are marked, with a sentence', async () => {
  await open('/fleet/A', (server) => { server.lease = 'B'; });
  await tab.getByText("A has ta-1, but its lease is B's.").waitFor();
  assert.deepEqual(await tab.locator('.truth.wrong .what').allTextContents(), ['Process', 'Task']);
});

test('the list opens the first by attention, counts a wait down, and its key goes to the next that waits', async () => {
  await open('/fleet');
  await tab.waitForURL('**/fleet/F');
  assert.match(await tab.locator('[data-worker="K"]').textContent(), /waits for codex, again in \d:\d\d/);
  await tab.keyboard.press('j');
  await tab.waitForURL('**/fleet/K');
  await tab.keyboard.press('.');
  await tab.waitForURL('**/fleet/F');
  assert.equal(await tab.getByRole('link', { name: 'Answer in the inbox' }).first().getAttribute('href'), '/inbox/approval-q7');
});

test('at 390 px a worker is a page of its own, with a message field and a main action of 44 px', async () => {
  await open('/fleet', (server) => server.say('text', 'at work'), { width: 390, height: 844 });
  assert.equal(await tab.locator('.log').count(), 0);
  await tab.locator('[data-worker="A"]').click();
  await tab.waitForURL('**/fleet/A');
  await log().getByText('at work').waitFor();
  assert.equal(await tab.locator('[data-worker="A"]').count(), 0);
  await tab.getByLabel('Message A').waitFor();
  const box = await tab.locator('.main-action .btn').boundingBox();
  assert.ok(box.height >= 44 && box.width > 300, JSON.stringify(box));
  assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= 390));
  await tab.getByRole('button', { name: 'All workers' }).click();
  await tab.locator('[data-worker="A"]').waitFor();
});
