// The inbox and the queue against a server that sends rows and writes down every request: what a key decides, and what is sent.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { launch, serve } from './serve.mjs';

const LISTS = ['inbox', 'queue'];
const key = (action, keys, views = [], foot = false) => ({ action, keys, views, words: action, foot });
const TERMS = {
  statuses: [], moves: [], attention: [], workerStates: [], types: [], agents: [],
  waitingKinds: [{ id: 'approval', label: 'Approval', glyph: 'task.NEEDS_APPROVAL' }],
  queueSteps: [{ id: 'landing', label: 'Landing', glyph: 'arrow' }, { id: 'testing', label: 'Testing', glyph: 'clock' }, { id: 'waits', label: 'Waiting', glyph: 'queue' }, { id: 'held', label: 'Held up', glyph: 'clock' }],
  keys: [
    key('next', ['J', '↓'], LISTS), key('previous', ['K', '↑'], LISTS), key('open', ['Enter'], LISTS), key('back', ['Esc']), key('palette.open', ['Ctrl+K']),
    key('approve', ['Y'], ['inbox'], true), key('deny', ['N'], ['inbox'], true), key('select', ['X'], ['inbox'], true), key('undo', ['Z'], ['inbox'], true),
    key('queue.retry', ['T'], ['queue'], true), key('go.board', ['G B']),
  ],
};
const facts = {
  id: 'frame', seq: 1, project: 'tally', firstRun: false, mainTests: null, tests: [], landedLastHour: 2, money: null, machine: '', actions: [],
  fleet: { text: 'fleet is off', glyph: 'worker.idle' }, main: { text: 'main green at', glyph: 'check', commit: '31ed415' },
};

const post = (path, body) => ({ method: 'POST', path, body });
function row(id, rank, more = {}) {
  return {
    id, seq: 1, rank, kind: 'approval', glyph: 'task.NEEDS_APPROVAL', project: 'tally', severity: 'urgent', who: 'person', text: `F asks to run ${id}`, about: 'ta-1 Add sum',
    since: new Date(Date.now() - 60_000).toISOString(), blocks: ['ta-1', 'ta-2'], task: 'ta-1', worker: 'F', approval: id, request: null, channel: null, question: null,
    call: { tool: 'Bash', argument: id, input: { command: `echo ${id}` }, text: `echo ${id}` },
    actions: [
      { code: 'approve_request', label: 'Approve', answer: 'yes', happens: ['The call runs once.'], request: post(`/approvals/${id}/decision`, { approve: true }) },
      { code: 'deny_request', label: 'Deny', answer: 'no', happens: ['F goes on without it.'], request: post(`/approvals/${id}/decision`, { approve: false }), fields: [{ name: 'note', label: 'Reason', kind: 'text', required: false, text: 'Why.' }] },
    ],
    ...more,
  };
}

class Fake {
  seq = 7;
  sent = [];
  streams = new Set();
  refuse = new Map();

  constructor(waiting, queue = []) {
    this.waiting = waiting;
    this.queue = queue;
  }

  async start() {
    this.http = await serve('dist', { api: (request, response, path) => this.answer(request, response, path) });
    this.timer = setInterval(() => this.send('heartbeat', {}), 1000);
  }

  async stop() {
    clearInterval(this.timer);
    await this.http.stop();
  }

  answer(request, response, path) {
    const json = (status, body) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (path === '/api/v1/terms') return json(200, TERMS);
    if (request.method === 'POST') return this.take(request, path, json);
    if (path !== '/api/v1/view') return false;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    this.streams.add(response);
    response.on('close', () => this.streams.delete(response));
    this.send('view', { tasks: [], columns: [], workers: [], waiting: this.waiting, queue: this.queue, facts: [facts] });
    return true;
  }

  take(request, path, json) {
    let text = '';
    request.on('data', (piece) => { text += piece; });
    request.on('end', () => {
      const id = path.split('/')[4];
      this.sent.push({ path, body: JSON.parse(text) });
      if (this.refuse.has(id)) return json(409, { type: '', title: '', status: 409, detail: this.refuse.get(id) });
      this.change({ gone: { waiting: [id] } });
      return json(200, {});
    });
    return true;
  }

  change(change) {
    this.seq += 1;
    const gone = change.gone?.waiting ?? [];
    const fresh = change.waiting ?? [];
    this.waiting = [...fresh, ...this.waiting.filter(({ id }) => !gone.includes(id) && !fresh.some((each) => each.id === id))];
    this.send('change', { gone: {}, ...change });
  }

  send(event, data) {
    for (const stream of this.streams) stream.write(`event: ${event}\ndata: ${JSON.stringify({ seq: this.seq, at: new Date().toISOString(), ...data })}\n\n`);
  }

  get decided() {
    return this.sent.map(({ path, body }) => `${path.split('/')[4]} ${body.approve}`);
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

async function open(path = '/inbox', { waiting = ['a', 'b', 'c', 'd'].map((id, rank) => row(id, rank)), queue = [], width = 1440 } = {}) {
  fake = new Fake(waiting, queue);
  await fake.start();
  tab = await browser.newPage({ viewport: { width, height: 844 } });
  // Time moves only when a test says so: half a second and five seconds are exact.
  await tab.clock.install({ time: Date.now() });
  await tab.goto(fake.http.origin + path);
  await tab.locator('.live[data-is="live"]').waitFor();
  await tab.locator(waiting.length > 0 ? '[data-waiting]' : '[data-queue]').first().waitFor();
}

const listed = () => tab.locator('[data-waiting]').evaluateAll((items) => items.map((item) => item.dataset.waiting));
const focusedId = () => tab.locator('.ask.sel').getAttribute('data-waiting');
const held = () => tab.locator('[data-decided]').evaluateAll((items) => items.map((item) => `${item.dataset.decided} ${item.dataset.state}`));
const rest = () => tab.clock.runFor(500);
/** Lets time pass with a living server: a page that hears nothing for six seconds is not live. */
const pass = async (milliseconds) => {
  for (let left = milliseconds; left > 0; left -= 500) {
    fake.send('heartbeat', {});
    await tab.evaluate(() => undefined);
    await tab.clock.runFor(Math.min(left, 500));
  }
};
const until = async (check, words) => {
  for (let tries = 0; tries < 200; tries += 1) {
    if (await check()) return;
    await new Promise((resolve) => { setImmediate(resolve); });
    await tab.evaluate(() => undefined);
    await tab.clock.runFor(20);
  }
  assert.fail(words);
};

test('a key approves only half a second after the row came to rest, and is sent five seconds later', async () => {
  await open();
  await tab.clock.pauseAt(await tab.evaluate(() => Date.now() + 1000));
  await tab.keyboard.press('j');
  assert.equal(await focusedId(), 'b');
  await tab.clock.runFor(499);
  await tab.keyboard.press('y');
  assert.deepEqual(await held(), []);
  await rest();
  await tab.keyboard.press('y');
  assert.deepEqual(await held(), ['b held']);
  assert.deepEqual(await listed(), ['a', 'c', 'd']);
  assert.equal(await focusedId(), 'c');
  assert.match(await tab.locator('.toast').textContent(), /Decided: Approve\..*F asks to run b.*Undo/);
  await pass(4999);
  assert.deepEqual(fake.decided, []);
  await tab.clock.runFor(1);
  await until(() => fake.decided.length === 1, 'the decision was not sent');
  assert.deepEqual(fake.sent, [{ path: '/api/v1/approvals/b/decision', body: { approve: true } }]);
  await until(async () => (await held()).includes('b sent'), 'the list does not say that it was sent');
});

test('a row that slides under the cursor is not decided by the key that was meant for another', async () => {
  await open();
  await tab.clock.pauseAt(await tab.evaluate(() => Date.now() + 1000));
  await tab.keyboard.press('j');
  await rest();
  fake.change({ waiting: [row('new', 0), row('a', 1), row('b', 2), row('c', 3), row('d', 4)] });
  await until(async () => (await listed()).length === 5, 'the new row is not shown');
  await tab.clock.runFor(1);
  await tab.keyboard.press('y');
  assert.deepEqual(await held(), []);
  assert.equal(await focusedId(), 'b');
});

test('a held key decides one row and no more', async () => {
  await open();
  await rest();
  await tab.keyboard.down('y');
  assert.deepEqual(await held(), ['a held']);
  await tab.clock.runFor(600);
  await tab.keyboard.down('y');
  await tab.keyboard.up('y');
  assert.deepEqual(await held(), ['a held']);
});

test('undo takes a decision back before anything is sent', async () => {
  await open();
  await rest();
  await tab.keyboard.press('y');
  assert.deepEqual(await held(), ['a held']);
  await tab.keyboard.press('z');
  assert.deepEqual([await held(), await listed()], [[], ['a', 'b', 'c', 'd']]);
  await tab.locator('.toast').waitFor({ state: 'detached' });
  await pass(6000);
  assert.deepEqual(fake.sent, []);
});

test('several at once sends exactly those that are shown as selected', async () => {
  await open();
  for (const step of ['x', 'j', 'x', 'j', 'j', 'x']) await tab.keyboard.press(step);
  const picked = () => tab.locator('[data-picked]').evaluateAll((items) => items.map((item) => item.dataset.picked));
  assert.deepEqual(await picked(), ['a', 'b', 'd']);
  fake.change({ gone: { waiting: ['b'] } });
  await until(async () => (await picked()).length === 2, 'the row that left is still selected');
  assert.match(await tab.locator('.picked-bar footer').textContent(), /Approve 2/);
  await rest();
  await tab.locator('.picked-bar .btn.primary').click();
  assert.deepEqual((await held()).sort(), ['a held', 'd held']);
  await pass(5000);
  await until(() => fake.decided.length === 2, 'they were not sent');
  assert.deepEqual(fake.decided.sort(), ['a true', 'd true']);
});

test('a refusal gives the row back with the words of the rule, and the others stay decided', async () => {
  await open();
  fake.refuse.set('b', 'the question is closed');
  for (const step of ['x', 'j', 'x']) await tab.keyboard.press(step);
  await rest();
  await tab.keyboard.press('y');
  await pass(5000);
  await until(async () => (await listed()).includes('b'), 'the refused row is not back');
  assert.deepEqual(await listed(), ['b', 'c', 'd']);
  assert.match(await tab.locator('[data-waiting="b"]').textContent(), /the question is closed/);
  assert.match(await tab.locator('.toast').textContent(), /1 of 2 was refused/);
});

test('a row that is decided elsewhere leaves by itself, and nothing is sent for it', async () => {
  await open();
  await rest();
  fake.change({ gone: { waiting: ['a'] } });
  await until(async () => (await listed()).length === 3, 'the row is still there');
  assert.match(await tab.locator('[data-left="a"]').textContent(), /no longer waits/);
  assert.match(await tab.locator('.case').textContent(), /does not wait any more/);
  await rest();
  await tab.keyboard.press('y');
  assert.deepEqual(await held(), []);
  // The same while a decision is held.
  await tab.keyboard.press('j');
  await rest();
  await tab.keyboard.press('y');
  fake.change({ gone: { waiting: ['b'] } });
  await until(async () => (await held()).includes('b moot'), 'it is not moot');
  await pass(6000);
  assert.deepEqual(fake.sent, []);
});

test('an edited call is a new question: the held decision is not sent', async () => {
  await open();
  await rest();
  await tab.keyboard.press('y');
  fake.change({ waiting: [row('a', 0, { call: { tool: 'Bash', argument: '', input: { command: 'rm -rf .' }, text: 'rm -rf .' } })] });
  await until(async () => (await listed()).includes('a'), 'the row is not back');
  assert.match(await tab.locator('[data-waiting="a"]').textContent(), /has changed/);
  await pass(6000);
  assert.deepEqual(fake.sent, []);
});

test('a key while typing decides nothing; the reason of a denial is sent with it', async () => {
  await open();
  await rest();
  await tab.keyboard.press('Control+k');
  await tab.keyboard.type('yyny');
  assert.equal(await tab.locator('.palette input').inputValue(), 'yyny');
  await tab.keyboard.press('Escape');
  assert.deepEqual(await held(), []);
  await tab.keyboard.press('n');
  await tab.locator('.dialog textarea').fill('');
  await tab.keyboard.type('yes, why not');
  await pass(6000);
  assert.deepEqual([await held(), fake.sent], [[], []]);
  await tab.locator('.dialog .btn.no').click();
  assert.deepEqual(await held(), ['a held']);
  await pass(5000);
  await until(() => fake.sent.length === 1, 'the denial was not sent');
  assert.deepEqual(fake.sent[0].body, { approve: false, note: 'yes, why not' });
});

test('what is held is sent at once when the view is left', async () => {
  await open();
  await rest();
  await tab.keyboard.press('y');
  await tab.keyboard.press('g');
  await tab.keyboard.press('b');
  await until(() => fake.decided.length === 1, 'it was not sent');
  assert.deepEqual(fake.decided, ['a true']);
});

test('what is held is sent when the page is closed', async () => {
  await open();
  await rest();
  await tab.keyboard.press('y');
  await tab.goto('about:blank');
  for (let tries = 0; tries < 500 && fake.decided.length === 0; tries += 1) await tab.evaluate(() => undefined);
  assert.deepEqual(fake.decided, ['a true']);
});

test('while the page is not live nothing is decided, and what is held is given back when the data is stale', async () => {
  await open();
  await rest();
  await tab.keyboard.press('y');
  await fake.stop();
  await until(async () => (await tab.locator('.live[data-is="reconnecting"]').count()) === 1, 'the page does not say that it reconnects');
  await rest();
  await tab.keyboard.press('y');
  assert.deepEqual(await held(), ['a held']);
  await tab.clock.runFor(12_000);
  await tab.locator('.live[data-is="stale"]').waitFor();
  assert.deepEqual([await held(), await listed()], [[], ['a', 'b', 'c', 'd']]);
  assert.match(await tab.locator('[data-waiting="a"]').textContent(), /lost before it was sent/);
});

test('a row that was read stays read, and an unread one is told apart', async () => {
  await open('/inbox/b');
  assert.match(await tab.locator('[data-waiting="b"] a').textContent(), /^Unread/);
  await tab.clock.runFor(600);
  await until(async () => !/^Unread/.test(await tab.locator('[data-waiting="b"] a').textContent()), 'it is still unread');
  await tab.reload();
  await tab.locator('[data-waiting="b"].seen').waitFor();
  assert.equal(await tab.locator('[data-waiting="c"].seen').count(), 0);
});

test('on a phone a row opens its own page, with two large buttons and what they do above them', async () => {
  await open('/inbox', { width: 390 });
  await tab.locator('[data-waiting="b"] a').click();
  await tab.waitForURL('**/inbox/b');
  const buttons = tab.locator('.decide-phone .btn');
  for (const box of await buttons.evaluateAll((all) => all.map((each) => each.getBoundingClientRect().height))) assert.ok(box >= 44, `${box} px`);
  assert.match(await tab.locator('.decide-phone').textContent(), /F goes on without it.*Deny.*The call runs once.*Approve/);
  await rest();
  await tab.locator('.decide-phone .btn.primary').click();
  await tab.waitForURL('**/inbox');
  assert.deepEqual(await held(), ['b held']);
});

test('rows that wait for a service stand apart', async () => {
  await open('/inbox', { waiting: [row('s', 0, { who: 'service', actions: [], call: null }), row('a', 1)] });
  assert.deepEqual(await listed(), ['a', 's']);
  assert.match(await tab.locator('.pane-head').textContent(), /1 waits for you.*1 for a service/);
});

test('text of an agent is text, whole and without effect', async () => {
  await open('/inbox', { waiting: [row('a', 0, { text: '<img src=x onerror=alert(1)> \u202eevil', call: { tool: 'Bash', argument: '', input: { command: `echo ${'x'.repeat(5000)} \u202e` }, text: '' } })] });
  assert.equal(await tab.locator('.case img').count(), 0);
  assert.match(await tab.locator('.call-block pre').textContent(), /x{5000} U\+202E/);
});

const queued = (task, rank, state, more = {}) => ({
  id: task, seq: 1, rank, task, title: `Title of ${task}`, state, text: state === 'held' ? 'README.md in your checkout is in the way' : 'now', approvedBy: 'human:local', approvedAt: null,
  since: state === 'waits' ? null : new Date(Date.now() - 41_000).toISOString(), command: null, expectedSeconds: 70, actions: [], ...more,
});

test('the queue counts its rows, and a key tries a held one again', async () => {
  const again = { code: 'retry_landing', label: 'Try again', happens: ['It is merged again.'], answer: 'yes', request: post('/tasks/ta-3/retry', {}) };
  await open('/queue', { waiting: [], queue: [queued('ta-1', 1, 'testing', { command: 'sh tests/run' }), queued('ta-2', 2, 'waits'), queued('ta-3', 3, 'held', { actions: [again] })] });
  assert.match(await tab.locator('.sums').textContent(), /landing0testing1waiting1held up1/);
  assert.match(await tab.locator('[data-queue="ta-1"]').textContent(), /sh tests\/run.*0:4\d of about 1:10/);
  await tab.keyboard.press('j');
  await tab.keyboard.press('t');
  assert.deepEqual(fake.sent, []);
  await tab.keyboard.press('j');
  await tab.keyboard.press('j');
  await tab.keyboard.press('t');
  await until(() => fake.sent.length === 1, 'nothing was sent');
  assert.deepEqual(fake.sent, [{ path: '/api/v1/tasks/ta-3/retry', body: {} }]);
});
