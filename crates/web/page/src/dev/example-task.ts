/** Answers of the routes of one task, for looking at the task screen without a server. Not in the product. */
import type { Answer } from '../api/client';
import type { KeyTerm } from '../api/view';
import { putChanges, setTerms, useStore } from '../store/store';
import type { Draft, Round } from '../screens/task/talk';
import { EXAMPLE_ENTRIES, EXAMPLE_PATCH, EXAMPLE_STORY, EXAMPLE_TESTS } from './example-task-texts';

const TIP = '75c692c1d0e4f6a8b2c3d4e5f60718293a4b5c6d';
const key = (action: string, keys: string[], words: string, foot = false): KeyTerm => ({ action, keys, views: ['task'], words, foot });
const KEYS: KeyTerm[] = [
  key('approve', ['Y'], 'approve', true), key('deny', ['N'], 'deny, or ask for changes', true), key('comment', ['M'], 'comment', true), key('comment.range', ['Shift+↓'], 'longer range'),
  key('viewed', ['V'], 'viewed', true), key('draft.keep', ['Ctrl+S'], 'keep the draft'), key('send', ['Ctrl+Enter'], 'send'),
];

const ago = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString();
const spend = (usd: number, input: number) => ({ usd, inputTokens: input, outputTokens: input / 10, reservedUsd: 0, unpricedSteps: 0, estimatedSteps: 0, estimatedUsd: 0, setAsideUsd: 0 });
const meta = { canStart: true, hasActiveTask: false, resourcesAllocated: false, canExecuteTools: false, awaitingInput: false, requiresDecision: false };
const run = (id: string, turns: number, usd: number) => ({
  id, task: 'ta-8', agent: 'claude sonnet', holder: { worker: 'B' }, state: 'completed', currentTurn: turns, maxTurns: 50, suspended: false, question: null, toolCalls: turns * 2,
  cost: spend(usd, usd * 100_000), pauseReason: null, lastError: null, approval: null, meta,
});
const checks = ['nothing left uncommitted', 'the diff holds a change', 'no conflict markers', 'tests are green'].map((item) => ({ item, answer: 'yes' }));

const TASK = {
  id: 'ta-8', title: 'Refuse what is not a number', status: 'REVIEW', type: 'feature', priority: 3, assigneeIds: ['claude'], agent: null, dependsOn: ['ta-1', 'ta-2'], createdAt: ago(9000),
  body: 'A line that is not a number must be refused, with the file and the line in the message.\nToday `tally sum` takes it for 0.',
  workPlan: { bullets: ['Read how `check` passes numbers on', 'Refuse the first line that is none, and say its place first', 'Cover full-width digits by a test', 'Run the tests and commit'], source: 'agent', estimatedCost: 0.1 },
  submission: { deliverable: { content: 'branch agent/B-ta-8', artifacts: [TIP] }, reviewChecklist: { type: 'feature', items: checks }, costSummary: { totalCost: 0.06, runCount: 2, tokenCount: 6600 } },
  gate: { checks }, claims: null, needsPerson: { reason: 'policy', text: 'The policy asks a person about changes in commands/.' }, reviewCycles: 1, tip: TIP, branch: 'agent/B-ta-8', run: 'ta-8.2', cost: spend(0.06, 6000),
  comments: [
    { at: ago(3000), by: 'claude', kind: 'plan', text: '- Read how check passes numbers on\n- Refuse the first line that is none\n- Run the tests and commit' },
    { at: ago(1800), by: 'local', kind: 'changes', text: 'Say the line’s number before its text.' },
    { at: ago(1700), by: 'claude', kind: 'plan', text: '- Say its place first\n- Cover full-width digits by a test' },
  ],
};
const WHY = {
  id: 'ta-8', state: 'task.REVIEW', spec: 'tally', waiting: [], call: null,
  guards: [
    { guard: 'testsPass', holds: true, detail: 'The gate is green.' },
    { guard: 'approved', holds: false, detail: 'Nobody has approved it yet.', next: [{ code: 'approve_review', text: 'puts it into the queue' }, { code: 'request_changes', text: 'sends it back with your words' }] },
  ],
};

let drafts: Draft[] = [
  { id: 'd1', path: 'commands/check', side: 'new', line: 2, endLine: 3, text: 'A line such as ０１２ is refused here, but `sum` takes it. Which of the two do we want?', tip: TIP, at: ago(60), by: 'local', moved: null },
  { id: 'd2', path: 'tests/check.test', side: 'new', line: 4, endLine: 4, text: 'Please name the fixture after what it holds.', tip: TIP, at: ago(30), by: 'local', moved: null },
];
let rounds: Round[] = [{
  number: 1, at: ago(1800), by: 'local', tip: '31ed415', note: '', receipt: 'consumed', run: 'ta-8.2',
  comments: [
    { path: 'commands/check', side: 'new', line: 5, endLine: 5, text: 'Say the line’s number before its text; people look for the place first.', moved: 3 },
    { path: 'README.md', side: 'new', line: 12, endLine: 12, text: 'List exit code 3 here.', moved: null },
  ],
}];

let prepared = false;
function prepare(): void {
  if (prepared) return;
  prepared = true;
  const { terms, rows } = useStore.getState();
  const moves = [
    { from: 'REVIEW' as const, to: 'BLOCKED' as const, allowed: true, words: 'Asks for 1 field: reason.', fields: [{ name: 'reason', label: 'Reason', kind: 'choice' as const, required: true, choices: ['loop', 'dependency', 'manual'], text: 'Reason required for BLOCKED.' }] },
    { from: 'REVIEW' as const, to: 'CANCELED' as const, allowed: true, words: 'Gives it up. Its work is saved.', fields: [] },
    { from: 'REVIEW' as const, to: 'INBOX' as const, allowed: false, words: 'There is no move from Review to Inbox.', fields: [] },
  ];
  if (terms) setTerms({ ...terms, moves: [...terms.moves, ...moves], keys: [...KEYS, ...terms.keys.filter((row) => !KEYS.some((each) => each.action === row.action))] });
  const row = rows.row('tasks', 'ta-8');
  const waiting = [...rows.all('waiting').values()].find((each) => each.task === 'ta-8');
  const dependent = rows.row('tasks', 'ta-18');
  if (row && waiting) {
    putChanges([{
      seq: 1205, at: ago(0), gone: {},
      tasks: [{ ...row, seq: 1205, waiting: waiting.id, priority: 3, type: 'feature', model: null, spec: 'tally', holdsUp: 1 }, ...(dependent ? [{ ...dependent, waitsFor: ['ta-8'] }] : [])],
      waiting: [{ ...waiting, actions: waiting.actions.map((action) => (action.answer === 'yes' ? { ...action, happens: ['ta-8 joins the queue at place 11 and is merged with main there.', 'If the tests of the merge pass, main moves to it.'] } : action.answer === 'no' ? { ...action, happens: ['Its agent gets your text and continues in the same branch.', 'This is round 2 of 3.'] } : action)) }],
    }]);
  }
}

const page = (items: readonly unknown[]) => ({ items, next: null });

export function answer<T>(method: string, path: string, body: unknown): Answer<T> {
  prepare();
  const value = method === 'get' ? read(path.split('?')[0] ?? '', path) : write(method, path, body as Record<string, unknown>);
  if (value === undefined) return { ok: false, problem: { type: '', title: 'not found', status: 404, detail: `nothing at ${path}` } };
  return { ok: true, value: value as T, seq: null };
}

function read(path: string, whole: string): unknown {
  if (path === '/runs') return page([run('ta-8.1', 4, 0.02), run('ta-8.2', 6, 0.04)]);
  switch (path.replace(/^\/tasks\/[^/]+/, '')) {
    case '': return TASK;
    case '/review': return { task: TASK, said: 'Done: the place comes first now.', workMillis: 252_000, commits: [], commitsProblem: null, diffStat: null, diffProblem: null, movedBranch: null };
    case '/why': return WHY;
    case '/diff': return { task: 'ta-8', base: '31ed415', tip: TIP, diff: EXAMPLE_PATCH };
    case '/drafts': return page(drafts);
    case '/rounds': return page(rounds);
    case '/tests': return page(whole.includes('hooks') ? [] : EXAMPLE_TESTS);
    case '/transcript': return { items: whole.includes('after=0') ? EXAMPLE_ENTRIES : [], next: '99', more: false, resting: true };
    case '/history': return page(whole.includes('all=true') ? EXAMPLE_STORY.map((told, index) => ({ seq: 900 + index, at: told.timestamp, actor: told.actor, command: 'c', stream: 'task/ta-8', version: index, kind: 'task_moved', data: { text: told.text } })) : EXAMPLE_STORY);
    default: return undefined;
  }
}

function write(method: string, path: string, body: Record<string, unknown>): unknown {
  if (path.endsWith('/rounds')) {
    rounds = [...rounds, { number: rounds.length + 1, at: ago(0), by: 'local', tip: TIP, note: String(body['note']), comments: drafts.map((draft) => ({ ...draft })), receipt: 'queued', run: null }];
    drafts = [];
  } else if (method === 'post') drafts = [...drafts, { ...(body as unknown as Draft), id: `d${Math.random()}`, at: ago(0), by: 'local' }];
  else if (method === 'delete') drafts = drafts.filter((draft) => !path.endsWith(`/${draft.id}`));
  else drafts = drafts.map((draft) => (path.endsWith(`/${draft.id}`) ? { ...draft, text: String(body['text']) } : draft));
  return {};
}
