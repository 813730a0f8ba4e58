// The board in Chromium against a small server: moves by pointer and by keys, refusals, forms, and ten thousand tasks.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { BoardServer } from './board-server.mjs';
import { launch } from './serve.mjs';

let browser;
let server;
let tab;
before(async () => { browser = await launch(); });
after(() => browser?.close());
afterEach(async () => {
  await tab?.context().close();
  await server?.stop();
});

async function open(prepare, { width = 1440, height = 900, address = '/board' } = {}) {
  server = new BoardServer();
  prepare(server);
  await server.start();
  tab = await browser.newPage({ viewport: { width, height }, reducedMotion: 'reduce' });
  tab.failures = [];
  tab.on('pageerror', (error) => tab.failures.push(error.message));
  await tab.goto(server.http.origin + address);
  await tab.locator('.col').first().waitFor();
}

const few = (it) => it
  .task('t-1', 'INBOX', { title: 'Add sum' }).task('t-2', 'INBOX', { title: 'Add mean', agent: 'codex' })
  .task('t-3', 'IN_PROGRESS', { title: 'Add median', agent: 'claude' }).task('t-4', 'REVIEW', { title: 'Add max', agent: 'claude', plan: true });

const column = (status) => tab.locator(`.col[data-status="${status}"]`);
const card = (id) => tab.locator(`.card[data-task="${id}"]`);
const cardIn = (status, id) => column(status).locator(`.card[data-task="${id}"]`);
const spoken = (text) => tab.waitForFunction((words) => document.querySelector('[aria-live="assertive"]')?.textContent.includes(words), text, { timeout: 5000 });
const focusedCard = () => tab.evaluate(() => document.activeElement?.closest('.card')?.dataset.task ?? null);

async function drag(id, status) {
  const from = await card(id).boundingBox();
  const to = await column(status).boundingBox();
  await tab.mouse.move(from.x + 40, from.y + 12);
  await tab.mouse.down();
  await tab.mouse.move(from.x + 60, from.y + 30, { steps: 3 });
  await tab.mouse.move(to.x + to.width / 2, to.y + 300, { steps: 6 });
}

test('a card is dragged to another column, and only allowed columns are lit meanwhile', async () => {
  await open((it) => few(it).task('t-5', 'ASSIGNED', { title: 'Add report' }));
  await drag('t-5', 'INBOX');
  await tab.locator('.board.moving').waitFor();
  const lit = await tab.locator('.col.legal').evaluateAll((columns) => columns.map((each) => each.dataset.status));
  assert.deepEqual(lit, ['INBOX', 'IN_PROGRESS', 'CANCELED']);
  assert.match(await column('REVIEW').locator('.rule').textContent(), /There is no move from Assigned to Review\./);
  assert.match(await column('IN_PROGRESS').locator('.rule').textContent(), /Asks for: Plan, Agents\./);
  await tab.mouse.up();
  await cardIn('INBOX', 't-5').waitFor();
  await spoken('t-5 is in Inbox.');
  assert.deepEqual(server.asked, ['POST /tasks/t-5/transitions {"to":"INBOX"}']);
  assert.equal(await tab.locator('.board.moving').count(), 0);
});

test('a card that is dropped on a forbidden column goes back and says the rule, and nothing is sent', async () => {
  await open(few);
  await drag('t-1', 'REVIEW');
  await tab.mouse.up();
  await tab.locator('.toast').waitFor();
  assert.match(await tab.locator('.toast').textContent(), /t-1 is back in Inbox\. Review was refused: There is no move from Inbox to Review\./);
  await spoken('Review was refused');
  assert.match(await cardIn('INBOX', 't-1').textContent(), /Review refused: There is no move/);
  assert.deepEqual(server.asked, []);
});

test('a card is moved by keys over allowed targets only, and every step is spoken', async () => {
  await open((it) => few(it).task('t-5', 'ASSIGNED', { title: 'Add report' }));
  await card('t-5').focus();
  await tab.keyboard.press('Space');
  await spoken('t-5 Add report is in your hand. 3 targets.');
  await tab.keyboard.press('ArrowRight');
  await spoken('In progress, 2 of 3 targets. Asks for: Plan, Agents.');
  await tab.keyboard.press('ArrowRight');
  await spoken('Canceled, 3 of 3 targets.');
  await tab.keyboard.press('ArrowRight');
  await spoken('Inbox, 1 of 3 targets.');
  assert.match(await tab.locator('.foot').textContent(), /Moving t-5\. Inbox, 1 of 3 targets/);
  await tab.keyboard.press('Enter');
  await spoken('t-5 is in Inbox.');
  await cardIn('INBOX', 't-5').waitFor();
  // The focus went with the card.
  await tab.waitForFunction(() => document.activeElement?.closest('.card')?.dataset.task === 't-5');
});

test('Esc puts the card back, also after a walk', async () => {
  await open(few);
  await card('t-3').focus();
  await tab.keyboard.press('Space');
  await tab.keyboard.press('ArrowRight');
  await tab.locator('.slip.hand').waitFor();
  await tab.keyboard.press('Escape');
  await spoken('t-3 is back in In progress.');
  assert.equal(await tab.locator('.board.moving').count(), 0);
  assert.equal(await focusedCard(), 't-3');
  assert.deepEqual(server.asked, []);
});

test('a form asks only for what is missing, shows problems at the fields, and the move is made', async () => {
  await open(few);
  await card('t-4').focus();
  await tab.keyboard.press('Space');
  await tab.keyboard.press('ArrowLeft');
  await tab.keyboard.press('Space');
  // The task has a plan and an agent: only the changes are missing.
  const form = tab.locator('.action-form');
  await form.waitFor();
  assert.deepEqual(await form.locator('.form-field > label, .form-field > legend').allTextContents(), ['Changes']);
  await form.getByRole('button', { name: 'Move to In progress' }).click();
  await form.locator('.message').waitFor();
  assert.match(await form.locator('.message').textContent(), /Feedback required for changes/);
  assert.equal(await tab.evaluate(() => document.activeElement?.tagName), 'TEXTAREA');
  await tab.keyboard.type('Name the file.');
  await form.getByRole('button', { name: 'Move to In progress' }).click();
  await cardIn('IN_PROGRESS', 't-4').waitFor();
  await spoken('t-4 is in In progress.');
  assert.equal(server.asked.at(-1), 'POST /tasks/t-4/transitions {"to":"IN_PROGRESS","feedback":"Name the file."}');
});

test('a result and a checklist become members inside of the body', async () => {
  await open(few);
  await drag('t-3', 'REVIEW');
  await tab.mouse.up();
  const form = tab.locator('.action-form');
  await form.getByLabel('Result').fill('It prints the median.');
  await form.getByLabel('Question 1').fill('Tests run?');
  await form.getByLabel('Answer 1').fill('Yes, 12 of 12.');
  await form.getByRole('button', { name: 'Move to Review' }).click();
  await cardIn('REVIEW', 't-3').waitFor();
  assert.deepEqual(JSON.parse(server.asked.at(-1).replace(/^[^{]*/, '')), {
    to: 'REVIEW', deliverable: { content: 'It prints the median.' }, reviewChecklist: { type: 'task', items: [{ item: 'Tests run?', answer: 'Yes, 12 of 12.' }] },
  });
});

test('a move that the server refuses returns the card with the words of the rule', async () => {
  await open((it) => { few(it); it.notLanded.add('t-4'); });
  await card('t-4').focus();
  await tab.keyboard.press('Control+k');
  await tab.keyboard.type('t-4 to done');
  await tab.keyboard.press('Enter');
  const form = tab.locator('.action-form');
  await form.getByLabel('Reason').fill('Looks right.');
  await form.getByRole('button', { name: 'Move to Done' }).click();
  await tab.locator('.toast').waitFor();
  assert.match(await tab.locator('.toast').textContent(), /t-4 is back in Review\. Done was refused: The task has code that has not landed\./);
  await spoken('The task has code that has not landed');
  assert.match(await cardIn('REVIEW', 't-4').textContent(), /Done refused: The task has code/);
  await tab.locator('.toast').getByRole('button', { name: 'Why' }).click();
  await tab.locator('.drawer').getByText('In progress is full: 8 of 8').waitFor();
});

test('somebody else moves the card in the hand: its row wins, and the person is told', async () => {
  await open(few);
  await card('t-3').focus();
  await tab.keyboard.press('Space');
  await tab.locator('.board.moving').waitFor();
  server.change('t-3', { status: 'BLOCKED' });
  await tab.locator('.toast').waitFor();
  assert.match(await tab.locator('.toast').textContent(), /t-3 is in Blocked now\. It was moved while it was in your hand/);
  assert.equal(await tab.locator('.board.moving').count(), 0);
  await cardIn('BLOCKED', 't-3').waitFor();
  await tab.keyboard.press('Enter');
  assert.deepEqual(server.asked, []);
});

test('somebody else moves a card for which a form is open: the form says so and sends nothing', async () => {
  await open(few);
  await drag('t-3', 'BLOCKED');
  await tab.mouse.up();
  const form = tab.locator('.action-form');
  await form.getByLabel('Reason').selectOption('manual');
  server.change('t-3', { status: 'INBOX' });
  await form.getByText('t-3 is in Inbox now').waitFor();
  assert.equal(await form.getByRole('button', { name: 'Move to Blocked' }).getAttribute('aria-disabled'), 'true');
});

test('a card is where it was until the server has answered, and says where it is going', async () => {
  await open((it) => few(it).task('t-5', 'ASSIGNED', { title: 'Add report' }));
  let release;
  server.held = new Promise((done) => { release = done; });
  await drag('t-5', 'INBOX');
  await tab.mouse.up();
  await cardIn('ASSIGNED', 't-5').getByText('on its way to Inbox').waitFor();
  release();
  await cardIn('INBOX', 't-5').waitFor();
});

test('empty columns hide, and are targets all the same', async () => {
  await open(few);
  await tab.getByRole('button', { name: /folded/ }).click();
  await tab.getByRole('menuitemradio', { name: 'Hide empty columns' }).click();
  const widths = () => tab.locator('.board > .col').evaluateAll((columns) => columns.map((each) => Math.round(each.getBoundingClientRect().width)));
  const before = await widths();
  assert.equal(before.length, 3);
  await card('t-3').focus();
  await tab.keyboard.press('Space');
  await tab.locator('.dock .col.legal[data-status="BLOCKED"]').waitFor();
  assert.deepEqual(await widths(), before);
});

test('a task that comes into a folded column opens no column and folds none', async () => {
  await open(few);
  const state = () => tab.locator('.board > .col').evaluateAll((columns) => columns.map((each) => each.classList.contains('folded')));
  const before = await state();
  server.change('t-1', { status: 'CANCELED' });
  await column('CANCELED').getByText('1').waitFor();
  assert.deepEqual(await state(), before);
});

test('keys walk the cards, open one, and find the next that waits', async () => {
  await open((it) => {
    few(it);
    it.waiting = [{ id: 'w1', seq: 1, rank: 0, kind: 'review', glyph: 'task.REVIEW', project: 'tally', text: 'Review', about: '', since: null, blocks: [], task: 't-4', actions: [] }];
  });
  await tab.keyboard.press('j');
  assert.equal(await focusedCard(), 't-1');
  await tab.keyboard.press('ArrowDown');
  assert.equal(await focusedCard(), 't-2');
  await tab.keyboard.press('ArrowRight');
  assert.equal(await focusedCard(), 't-3');
  await tab.keyboard.press('h');
  assert.ok(['t-1', 't-2'].includes(await focusedCard()));
  await tab.keyboard.press('.');
  assert.equal(await focusedCard(), 't-4');
  await tab.keyboard.press('Enter');
  await tab.waitForURL('**/task/t-4');
});

test('a filter leaves what it finds, with the count of all beside it; groups have heads', async () => {
  await open(few);
  await tab.keyboard.press('/');
  await tab.keyboard.type('mea');
  await tab.locator('.totals').getByText('1 of 4 tasks').waitFor();
  assert.match(await column('INBOX').locator('header').textContent(), /1 of 2/);
  await tab.keyboard.press('Escape');
  await tab.locator('.totals').getByText('4 tasks', { exact: false }).waitFor();
  await tab.getByRole('button', { name: 'Group: status' }).click();
  await tab.getByRole('menuitemradio', { name: 'In each status by agent' }).click();
  assert.deepEqual(await column('INBOX').locator('.group, .card .id').allTextContents(), ['codex', 't-2', 'No agent', 't-1']);
});

test('a new task has dependencies by picking, and a dependency is taken away in the drawer', async () => {
  await open(few);
  await tab.keyboard.press('c');
  const form = tab.locator('.action-form');
  await form.getByRole('button', { name: 'Add task' }).click();
  await form.locator('.message').waitFor();
  await form.getByLabel('Title').fill('Add help');
  await form.getByLabel('Depends on').fill('median');
  await tab.keyboard.press('Enter');
  await form.getByRole('button', { name: 'Add task' }).click();
  await cardIn('INBOX', 't-5').waitFor();
  assert.equal(server.asked.at(-1), 'POST /tasks {"title":"Add help","dependsOn":["t-3"]}');
  await tab.waitForFunction(() => document.activeElement?.closest('.card')?.dataset.task === 't-5');
  await tab.keyboard.press('w');
  await tab.locator('.drawer').getByRole('button', { name: 'No longer wait for t-3' }).click();
  await spoken('t-5 no longer waits for t-3.');
  await tab.locator('.drawer').getByText('Nothing.').waitFor();
});

test('only what was changed of a task is sent', async () => {
  await open(few);
  await card('t-1').focus();
  await tab.keyboard.press('Control+k');
  await tab.keyboard.type('edit t-1');
  await tab.keyboard.press('Enter');
  const form = tab.locator('.action-form');
  await form.getByLabel('Title').fill('Add the sum');
  await form.getByRole('button', { name: 'Save' }).click();
  await spoken('t-1 is changed.');
  assert.equal(server.asked.at(-1), 'PATCH /tasks/t-1 {"title":"Add the sum"}');
  await cardIn('INBOX', 't-1').getByText('Add the sum').waitFor();
});

test('while the page is not live no card can be picked up', async () => {
  await open(few);
  await card('t-3').focus();
  server.streams.forEach((stream) => stream.destroy());
  await server.http.stop();
  await tab.waitForFunction(() => document.documentElement.dataset.live === 'reconnecting');
  await tab.keyboard.press('Space');
  await spoken('actions are off');
  assert.equal(await tab.locator('.board.moving').count(), 0);
});

test('on a narrow screen one column is shown, and a sheet lists the targets', async () => {
  await open((it) => few(it).task('t-5', 'ASSIGNED', { title: 'Add report' }), { width: 390, height: 844 });
  await tab.getByRole('button', { name: /^Assigned/ }).click();
  await card('t-5').click();
  const move = tab.getByRole('button', { name: 'Move t-5…' });
  assert.ok((await move.boundingBox()).height >= 44);
  await move.click();
  const off = tab.locator('.targets [aria-disabled]');
  assert.equal(await off.count(), 4);
  assert.match(await off.first().textContent(), /There is no move from Assigned/);
  await tab.locator('.targets').getByRole('button', { name: /^Inbox/ }).click();
  await spoken('t-5 is in Inbox.');
  assert.deepEqual(server.asked, ['POST /tasks/t-5/transitions {"to":"INBOX"}']);
});

test('nothing scrolls sideways at any width, and every column is in sight', async () => {
  await open(few, { width: 1440 });
  for (const width of [1920, 1440, 1280, 1024, 721]) {
    await tab.setViewportSize({ width, height: 800 });
    await tab.waitForFunction((wanted) => innerWidth === wanted, width);
    const seen = await tab.evaluate(async () => {
      await new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); });
      const columns = [...document.querySelectorAll('.col')].map((each) => each.getBoundingClientRect());
      return { count: columns.length, right: Math.max(...columns.map((each) => each.right)), scroll: document.documentElement.scrollWidth, narrow: columns.filter((each) => each.width > 41 && each.width < 176).length };
    });
    assert.equal(seen.count, 8, `${width}`);
    assert.ok(seen.right <= width + 1 && seen.scroll <= width, `${width}: ${JSON.stringify(seen)}`);
    assert.equal(seen.narrow, 0, `${width}`);
  }
});

test('ten thousand tasks scroll: few cards are mounted, the focused one stays, and frames are not lost', async () => {
  await open((it) => {
    for (let number = 0; number < 10_000; number += 1) it.task(`t-${number}`, number < 9000 ? 'INBOX' : ['ASSIGNED', 'IN_PROGRESS', 'REVIEW', 'DONE'][number % 4], { title: `Task number ${number} with a title of a usual length` });
  });
  await card('t-0').focus();
  const result = await column('INBOX').locator('.scroll').evaluate(async (list) => {
    const gaps = [];
    let before = performance.now();
    for (let frame = 0; frame < 120; frame += 1) {
      list.scrollTop += 300;
      await new Promise((done) => { requestAnimationFrame(done); });
      gaps.push(performance.now() - before);
      before = performance.now();
    }
    gaps.sort((a, b) => a - b);
    return { mounted: document.querySelectorAll('.card').length, focused: document.activeElement?.closest('.card')?.dataset.task, median: gaps[60], high: gaps[113], top: list.scrollTop };
  });
  console.log(`10,000 tasks: ${result.mounted} cards mounted, frame ${result.median.toFixed(1)} ms at the median, ${result.high.toFixed(1)} ms at the 95th percentile`);
  assert.ok(result.mounted < 150, `${result.mounted}`);
  assert.ok(result.top > 30_000, `${result.top}`);
  assert.equal(result.focused, 't-0');
  assert.ok(result.median < 50, `${result.median}`);
  // A key brings the focused card back into sight.
  await tab.keyboard.press('j');
  await tab.waitForFunction(() => {
    const box = document.activeElement?.closest('.card[data-task="t-1"]')?.getBoundingClientRect();
    return box && box.top > 0 && box.bottom < innerHeight;
  });
  assert.deepEqual(tab.failures, []);
});
