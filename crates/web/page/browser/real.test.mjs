// The page that the program serves, with a real fleet on the sample repository: what a person does in it happens.
// ADJ names the program; without it the test looks for the one that cargo built.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, pageFolder } from './serve.mjs';

const adj = process.env.ADJ ?? join(pageFolder, '../../../target/debug/adj');
const sample = join(pageFolder, '../../adj/demo');
const scratch = mkdtempSync(join(tmpdir(), 'adj-page-'));
const repository = join(scratch, 'tally');
const env = { ...process.env, XDG_STATE_HOME: join(scratch, 'state'), GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' };
const HOSTILE = '<img src=x onerror="globalThis.hacked=1"> \u202eexe.txt';

let browser;
let tab;
let fleet;

const ask = (...words) => execFileSync(adj, ['--project', repository, ...words], { env, encoding: 'utf8' });
const git = (...words) => execFileSync('git', ['-c', 'user.name=Test', '-c', 'user.email=test@localhost', ...words], { cwd: repository, env });
const task = (id) => JSON.parse(ask('--json', 'task', 'show', id));

/** As a program asks, with the project's token. */
async function request(method, path, body) {
  const token = readFileSync(join(repository, '.git/adjutant/token'), 'utf8').trim();
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const answer = await fetch(`http://127.0.0.1:${port}/api/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status}`);
  return answer.json();
}

/** Starts the fleet with its page at a port, and waits until it listens. */
async function start(port) {
  fleet = spawn(adj, ['--project', repository, 'run', '--serve', '--port', String(port)], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let printed = '';
  return new Promise((resolve, reject) => {
    fleet.stdout.on('data', (text) => {
      printed += text;
      const listens = /serving at http:\/\/127\.0\.0\.1:(\d+)/.exec(printed);
      if (listens) resolve(Number(listens[1]));
    });
    fleet.once('exit', () => reject(new Error(`the fleet ended:\n${printed}`)));
  });
}

const ended = () => new Promise((resolve) => (fleet.exitCode === null && fleet.signalCode === null ? fleet.once('exit', resolve) : resolve()));

let port;

before(async () => {
  assert.ok(existsSync(adj), `${adj} is not there: cargo build, or name it with ADJ`);
  for (const name of ['README.md', 'tally', 'commands', 'tests', 'demo.toml']) cpSync(join(sample, name), join(repository, name), { recursive: true });
  cpSync(join(sample, 'tickets'), join(repository, '.tickets'), { recursive: true });
  writeFileSync(join(repository, 'adjutant.toml'), readFileSync(join(sample, 'adjutant.toml'), 'utf8').replace('review = "auto"', 'review = "human"'));
  git('init', '--quiet', '--initial-branch=main');
  git('add', '--all');
  git('commit', '--quiet', '--message=Begin');
  port = await start(0);
  browser = await launch();
  tab = await (await browser.newContext({ viewport: { width: 1440, height: 900 } })).newPage();
  await tab.goto(ask('url').trim());
  await tab.getByText('Live').first().waitFor();
});

after(async () => {
  await browser?.close();
  fleet?.kill('SIGKILL');
  rmSync(scratch, { recursive: true, force: true });
});

const go = (path) => tab.goto(`http://127.0.0.1:${port}${path}`);

test('work that an agent did waits in the inbox, and an approval there lands it', async () => {
  await go('/inbox');
  // All that can be done without an approval is done then, so that no row moves any more.
  await tab.getByText('5 wait for you').waitFor({ timeout: 60_000 });
  await tab.getByText('ta-2 is ready').first().click();
  await tab.getByRole('button', { name: 'Approve' }).first().waitFor();
  // A row decides by a key only when it has stood still for half a second.
  await tab.waitForTimeout(700);
  await tab.keyboard.press('y');
  await tab.getByText('the server has it').waitFor({ timeout: 60_000 });
  await go('/board');
  await tab.locator('[data-task="ta-2"]').getByText('landed as').waitFor({ timeout: 60_000 });
  assert.equal(task('ta-2').status, 'DONE');
});

test('a title of somebody else stays text on the board', async () => {
  ask('task', 'add', HOSTILE);
  await go('/board');
  await tab.getByText('<img src=x onerror=').first().waitFor();
  assert.equal(await tab.evaluate(() => globalThis.hacked), undefined);
});

test('a card is picked up and put back by keys, and its moves are spoken', async () => {
  // It waits for another task, so that no worker takes it meanwhile.
  const made = await request('POST', '/tasks', { title: 'Moved by keys', dependsOn: ['ta-9'] });
  await go('/board');
  await tab.locator(`[data-task="${made.id}"]`).focus();
  await tab.keyboard.press('Space');
  await tab.locator('[role="status"]').getByText('Moved by keys').or(tab.locator('[role="status"]').getByText(made.id)).first().waitFor({ state: 'attached' });
  await tab.keyboard.press('ArrowRight');
  await tab.keyboard.press('Escape');
  assert.equal(task(made.id).status, 'INBOX');
});

test('a comment on a line is kept by the server, and reaches the agent as a round', async () => {
  await go('/task/ta-1/review');
  await tab.getByRole('button', { name: 'Ask for changes' }).first().waitFor({ timeout: 60_000 });
  const { tip } = task('ta-1');
  await request('POST', '/tasks/ta-1/drafts', { path: 'commands/sum', side: 'new', line: 1, text: 'Say what it prints.', tip });
  await go('/task/ta-1/review');
  await tab.getByText('Say what it prints.').first().waitFor();
  await tab.getByRole('button', { name: /Send round/ }).first().click();
  await tab.getByRole('dialog').getByRole('button', { name: /Send 1 comment/ }).click();
  await tab.getByRole('dialog').waitFor({ state: 'detached' });
  const { items } = await request('GET', '/tasks/ta-1/rounds');
  assert.deepEqual(items.map((round) => [round.number, round.comments.length]), [[1, 1]]);
});

test('a server that is killed and started again is reconnecting or stale, and then live without a reload', async () => {
  await go('/board');
  await tab.getByText('Live').first().waitFor();
  await tab.evaluate(() => { globalThis.sameDocument = true; });
  fleet.kill('SIGKILL');
  await ended();
  await tab.getByText(/Reconnecting|Stale since/).first().waitFor({ timeout: 30_000 });
  assert.equal(await tab.getByRole('button', { name: 'New task' }).isEnabled(), false, 'actions are off');
  await start(port);
  await tab.getByText('Live').first().waitFor({ timeout: 60_000 });
  assert.equal(await tab.evaluate(() => globalThis.sameDocument), true);
});
