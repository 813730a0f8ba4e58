// The task screen of the built page against a small server: comments by mouse and keyboard, a round and its receipt, hostile text, a long diff.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { launch } from './serve.mjs';
import { TaskServer, TIP } from './task-server.mjs';

const PATCH = `diff --git a/commands/check b/commands/check
index 1..2 100644
--- a/commands/check
+++ b/commands/check
@@ -1,3 +1,4 @@
 # Passes numbers on.
-exit 1
+exit 3
+print it
 last line
`;

let browser;
let server;
let tab;
before(async () => { browser = await launch(); });
after(() => browser?.close());
afterEach(async () => {
  await tab?.context().close();
  await server?.stop();
});

async function open(path = '/task/ta-8/review', options = {}, viewport = { width: 1440, height: 900 }) {
  server = Object.assign(new TaskServer(), { patch: PATCH }, options);
  await server.start();
  tab = await browser.newPage({ viewport });
  tab.failures = [];
  tab.on('pageerror', (error) => tab.failures.push(error.message));
  tab.on('console', (message) => message.type() === 'error' && !message.text().includes('404') && tab.failures.push(message.text()));
  tab.on('dialog', (dialog) => { tab.failures.push(`a dialog opened: ${dialog.message()}`); void dialog.dismiss(); });
  await tab.goto(server.http.origin + path);
}

const line = (number) => tab.locator(`.dl[data-line="${number}"]`);
const field = () => tab.locator('.talk textarea');
const sent = (method, path) => server.changes.find((change) => change.method === method && change.path.startsWith(path));

test('a click on the gutter comments on a line, and the server keeps the draft', async () => {
  await open();
  await line(2).locator('.gutter').click();
  await field().fill('Why 3?');
  await tab.getByRole('button', { name: /Keep draft/ }).click();
  await tab.locator('.talk.draft', { hasText: 'draft, kept on the server' }).waitFor();
  assert.deepEqual(sent('POST', '/tasks/ta-8/drafts').body, { path: 'commands/check', side: 'new', line: 2, endLine: 2, text: 'Why 3?', tip: TIP });
  assert.match(await tab.locator('.round').textContent(), /Round 1, 1 draft/);
  assert.deepEqual(tab.failures, []);
});

test('Shift and a click comment on a range, and a removed line is one of the old file', async () => {
  await open();
  await line(2).locator('.gutter').click();
  await line(4).locator('.gutter').click({ modifiers: ['Shift'] });
  await field().fill('All of it');
  await tab.keyboard.press('Control+s');
  await tab.locator('.talk.draft', { hasText: /kept on the server.*lines 2–4/ }).waitFor();
  const { body } = sent('POST', '/tasks/ta-8/drafts');
  assert.deepEqual([body.side, body.line, body.endLine], ['new', 2, 4]);
  await tab.locator('.dl[data-line="old-2"] .gutter').click();
  await field().fill('It was good');
  await tab.keyboard.press('Control+s');
  await tab.locator('.talk.draft', { hasText: /kept on the server.*line 2 of the old file/ }).waitFor();
  assert.equal(server.changes.at(-1).body.side, 'old');
});

test('by keyboard alone: choose lines, comment, keep, send the round, and see the receipt', async () => {
  await open();
  await line(2).waitFor();
  // The third line of the diff is the first added one.
  for (const stroke of ['j', 'j', 'j', 'Shift+ArrowDown', 'm']) await tab.keyboard.press(stroke);
  await field().waitFor();
  await tab.keyboard.type('Say why. jjm are letters here');
  await tab.keyboard.press('Control+s');
  // At once, while the draft is still being kept: it is kept once.
  await tab.keyboard.press('Control+s');
  await tab.locator('.talk.draft', { hasText: /kept on the server.*lines 2–3/ }).waitFor();
  assert.equal(server.drafts.length, 1);
  assert.equal(server.drafts[0].text, 'Say why. jjm are letters here');
  await tab.keyboard.press('Control+Enter');
  const dialog = tab.getByRole('dialog', { name: 'Send round 1' });
  assert.match(await dialog.textContent(), /Its agent gets your text\./);
  await tab.keyboard.type('Please');
  await tab.keyboard.press('Control+Enter');
  await dialog.waitFor({ state: 'detached' });
  assert.deepEqual(sent('POST', '/tasks/ta-8/rounds').body, { tip: TIP, note: 'Please' });
  await tab.locator('.talk .receipt', { hasText: 'queued' }).waitFor();
  server.rounds[0] = { ...server.rounds[0], receipt: 'consumed', run: 'ta-8.2' };
  server.change();
  await tab.locator('.talk .receipt.got', { hasText: 'consumed in run ta-8.2' }).waitFor();
  assert.deepEqual(tab.failures, []);
});

test('a comment whose line moved is kept, marked, and says where it was', async () => {
  const comments = [
    { path: 'commands/check', side: 'new', line: 3, endLine: 3, text: 'moved here', moved: 1 },
    { path: 'commands/check', side: 'new', line: 90, endLine: 90, text: 'out of sight', moved: null },
    { path: 'gone.txt', side: 'new', line: 1, endLine: 1, text: 'of a file that is not here', moved: null },
  ];
  await open(undefined, { rounds: [{ number: 1, at: new Date().toISOString(), by: 'local', tip: TIP, note: '', comments, receipt: 'delivered', run: null }] });
  assert.match(await tab.locator('.talk.moved').textContent(), /line moved, was line 1/);
  assert.match(await tab.locator('.talk', { hasText: 'out of sight' }).textContent(), /line 90, which is not in this diff/);
  assert.match(await tab.locator('.talk', { hasText: 'of a file' }).textContent(), /gone\.txt, which this diff does not change/);
});

test('what is written survives another tab of the task', async () => {
  await open();
  await line(2).locator('.gutter').click();
  await field().fill('not kept yet');
  await tab.getByRole('tab', { name: 'Plan' }).click();
  await tab.locator('.prose').waitFor();
  await tab.getByRole('tab', { name: /Review/ }).click();
  assert.equal(await field().inputValue(), 'not kept yet');
});

test('Approve with drafts asks what becomes of them, and discards them before it approves', async () => {
  await open(undefined, { drafts: [{ id: 'd1', path: 'commands/check', side: 'new', line: 2, endLine: 2, text: 'one', tip: TIP, at: '', by: 'local', moved: null }] });
  await tab.locator('.talk.draft').waitFor();
  await tab.keyboard.press('y');
  const dialog = tab.getByRole('dialog', { name: '1 draft is not sent' });
  assert.deepEqual((await dialog.locator('.choices button').allTextContents()).map((words) => words.split(' ')[0]), ['Send', 'Keep', 'Discard']);
  await dialog.getByRole('button', { name: /Discard/ }).click();
  const approve = tab.getByRole('dialog', { name: 'Approve: ta-8' });
  assert.match(await approve.textContent(), /joins the queue at place 3/);
  assert.ok(sent('DELETE', '/tasks/ta-8/drafts/d1'));
  await approve.getByRole('button', { name: 'Approve', exact: true }).click();
  await approve.waitFor({ state: 'detached' });
  assert.deepEqual(server.changes.at(-1), { method: 'POST', path: '/tasks/ta-8/review', body: { approve: true, tip: TIP } });
});

test('Approve is off while the diff on screen is of another commit', async () => {
  await open();
  await line(2).waitFor();
  // The row is ahead of the diff: the request for it fails.
  server.read = () => undefined;
  server.tip = 'f'.repeat(40);
  const button = tab.locator('.acts .btn.primary');
  server.send('change', { seq: 8, at: new Date().toISOString(), gone: {}, waiting: [server.waiting()] });
  await tab.locator('.acts .btn.primary[aria-disabled="true"]').waitFor();
  assert.match(await button.getAttribute('title'), /75c692c/);
});

test('a server without comments shows the diff and says so once', async () => {
  await open(undefined, { keepsComments: false });
  await line(2).waitFor();
  assert.equal(await tab.getByText('This server keeps no comments').count(), 1);
  assert.equal(await tab.locator('.gutter').count(), 0);
});

test('viewed is remembered by content: the file is folded until its patch changes', async () => {
  await open();
  await line(2).waitFor();
  await tab.keyboard.press('v');
  await line(2).waitFor({ state: 'detached' });
  await tab.reload();
  await tab.locator('.diff-file [aria-expanded="false"]').waitFor();
  await tab.getByText('1 of 1 viewed').waitFor();
  server.patch = PATCH.replace('exit 3', 'exit 4');
  server.change();
  await tab.getByText('changed since viewed', { exact: true }).first().waitFor();
  await line(2).waitFor();
});

test('titles, file names, diffs, comments and transcripts that are hostile stay text', async () => {
  const evil = '<script>alert(1)</script><img src=x onerror=alert(2)> \u202egnp.exe \u001b[31m';
  const patch = PATCH.replaceAll('commands/check', 'a/<img src=x onerror=alert(3)>').replace('exit 3', `${evil}\t\u200b`)
    + 'diff --git "a/\\342\\200\\256evil\\n" "b/\\342\\200\\256evil\\n"\nnew file mode 100644\n--- /dev/null\n+++ "b/\\342\\200\\256evil\\n"\n@@ -0,0 +1 @@\n+x\n';
  await open(undefined, {
    title: evil, patch,
    drafts: [{ id: 'd', path: 'a/<img src=x onerror=alert(3)>', side: 'new', line: 2, endLine: 2, text: evil, tip: TIP, at: '', by: evil, moved: null }],
    entries: [{ cursor: 1, at: null, kind: 'tool', text: `Bash(${evil})` }, { cursor: 2, at: null, kind: 'failure', text: `Bash: ${evil}` }, { cursor: 3, at: null, kind: 'text', text: evil }],
    story: [{ timestamp: '2026-01-01T00:00:00Z', actor: evil, tone: 'error', text: evil, task: null, worker: null, run: null }],
    tests: [{ effect: 'e1', hook: null, command: evil, folder: '/', ended: 'exit code 1', output: evil }],
  });
  await tab.locator('.talk.draft').waitFor();
  for (const name of ['Review', 'Plan', 'Transcript', 'Checks', 'History']) {
    await tab.getByRole('tab', { name: new RegExp(`^${name}`) }).click();
    await tab.locator('#task-panel', { hasText: '<script>alert(1)</script>' }).waitFor();
    const found = await tab.evaluate(() => ({
      elements: document.querySelectorAll('#page img, #page script, main a[href*="alert"]').length,
      steering: /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(document.body.innerText + document.title),
      isolated: [...document.querySelectorAll('main bdi')].every((each) => getComputedStyle(each).unicodeBidi === 'isolate'),
    }));
    assert.deepEqual(found, { elements: 0, steering: false, isolated: true }, name);
  }
  assert.ok((await tab.title()).includes('⟨U+202E⟩'));
  assert.deepEqual(tab.failures, []);
});

test('a diff of 20,000 lines scrolls: few rows are mounted, frames are short, the end is reached', async () => {
  const lines = Array.from({ length: 20_000 }, (_, index) => `+line ${index + 1} ${'word '.repeat(index % 40)}`);
  await open(undefined, { patch: `diff --git a/big.txt b/big.txt\nnew file mode 100644\n--- /dev/null\n+++ b/big.txt\n@@ -0,0 +1,20000 @@\n${lines.join('\n')}\n` });
  await line(1).waitFor();
  assert.ok((await tab.locator('.dl').count()) < 150);
  const frames = await tab.evaluate(async () => {
    const scroller = document.querySelector('.diff');
    const times = [];
    let before = performance.now();
    for (let step = 0; step < 120; step += 1) {
      scroller.scrollTop += 400;
      await new Promise((resolve) => requestAnimationFrame(resolve));
      times.push(performance.now() - before);
      before = performance.now();
    }
    return times.sort((a, b) => a - b);
  });
  console.log(`frames while scrolling 20,000 lines: median ${frames[60].toFixed(0)} ms, 95 % ${frames[114].toFixed(0)} ms, longest ${frames[119].toFixed(0)} ms`);
  assert.ok(frames[60] < 100, `median of ${frames[60]} ms`);
  // Rows are measured as they come into sight, so the end moves away at first.
  for (let tries = 0; tries < 200 && (await line(20_000).count()) === 0; tries += 1) {
    await tab.evaluate(() => new Promise((resolve) => {
      const scroller = document.querySelector('.diff');
      scroller.scrollTop = scroller.scrollHeight;
      requestAnimationFrame(resolve);
    }));
  }
  await line(20_000).waitFor();
  // The head of the file is still there.
  assert.ok(await tab.locator('.virtual-head', { hasText: 'big.txt' }).isVisible());
  await line(20_000).locator('.gutter').click();
  await field().fill('The end');
  await tab.keyboard.press('Control+s');
  await tab.locator('.talk.draft', { hasText: /kept on the server.*The end/ }).waitFor();
  assert.equal(server.drafts[0].line, 20_000);
});

test('at 390 px one pane is left, and the two answers are 44 px high with what happens above them', async () => {
  await open('/task/ta-8', {}, { width: 390, height: 844 });
  await line(2).waitFor();
  const buttons = tab.locator('.decide-phone .btn');
  assert.equal(await buttons.count(), 2);
  for (const box of await buttons.evaluateAll((all) => all.map((each) => each.getBoundingClientRect().height))) assert.equal(box, 44);
  assert.match(await tab.locator('.decide-phone').textContent(), /joins the queue at place 3/);
  assert.equal(await tab.evaluate(() => document.documentElement.scrollWidth), 390);
  await tab.getByRole('tab', { name: 'Why' }).click();
  await tab.getByText('Why it is here').waitFor();
});
