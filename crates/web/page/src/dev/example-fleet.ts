/** What the server would answer about the worker A of the example data. Not in the product. */
import type { Answer } from '../api/client';
import type { components } from '../api/types';

type Schemas = components['schemas'];
type Entry = Schemas['Entry'];
type Asked = { path?: Record<string, string>; query?: Record<string, unknown>; signal?: AbortSignal } | undefined;

const now = Date.now();
const ago = (seconds: number) => new Date(now - seconds * 1000).toISOString();

/** Seconds ago, kind, text. */
const LINES: [number, string, string][] = [
  [549, 'step', 'ta-1 init, worker A'],
  [548, 'text', 'A sum is a loop over the lines.'],
  [547.5, 'call', 'Write(commands/sum)'], [547.4, 'result', 'Write: wrote commands/sum'],
  [547.3, 'call', 'Write(tests/sum.test)'], [547.2, 'result', 'Write: wrote tests/sum.test'],
  [546.9, 'call', 'Bash(git add -A && git commit -m "Add sum")'], [546.8, 'result', 'Bash: '],
  [546, 'text', 'DONE'], [545.9, 'end', 'ended with exit code 0'],
  [478, 'step', 'ta-1 test_failure, worker A'],
  [477, 'text', 'An empty input never sets s; it must be a number from the start.'],
  [476, 'call', 'Read(commands/sum)'], [475.9, 'result', "Read: # The sum of the numbers.\nawk '{ s += $1 } END { print s }'"],
  [475, 'call', 'Grep(print s in commands/)'], [474.9, 'result', 'Grep: commands/sum'],
  [60, 'call', 'Edit(commands/sum)'], [59.9, 'result', 'Edit: changed commands/sum'],
  [50, 'call', 'Bash(sh tests/run)'], [18, 'failure', "Bash: exit 1\nok    tests/count.test\nok    tests/help.test\nFAIL  tests/sum.test\n      sum of nothing: expected 0, got ''\nok    tests/max.test\nok    tests/min.test\n1 of 5 failed"],
  [16, 'retry', 'the model API is overloaded (529): attempt 2 follows in 4 s'],
  [9, 'text', 'It prints \u001b[31mred\u001b[0m text and <b>markup</b> that \u202edoes nothing\u202c. Now the test for an empty input should pass. I run all of them once before I commit.'],
  [4, 'call', 'Bash(sh tests/run)'],
];

const ENTRIES: Entry[] = LINES.map(([age, kind, text], index) => ({ cursor: index + 1, at: ago(age), kind, text }));

const spend = (usd: number): Schemas['Spend'] => ({ usd, inputTokens: 7000, outputTokens: 700, reservedUsd: 0.1, unpricedSteps: 0, estimatedSteps: 0, estimatedUsd: 0, setAsideUsd: 0 });

const RECORDS = [
  { seq: 1100, at: ago(90), kind: 'commented', data: { comment: 'comment', by: 'human:local', text: 'Keep awk; do not bring in bc.' } },
  { seq: 1101, at: ago(90), kind: 'effect_asked', data: { id: 'e6', what: { effect: 'tell_agent', text: 'Keep awk; do not bring in bc.' } } },
  { seq: 1102, at: ago(87), kind: 'effect_ended', data: { id: 'e6', how: 'done' } },
  { seq: 1103, at: ago(61), kind: 'run_moved', data: { input: { type: 'STEP', turn: 6 } } },
  { seq: 1110, at: ago(5), kind: 'commented', data: { comment: 'comment', by: 'human:local', text: 'Add the exit codes to README.md, too.' } },
  { seq: 1111, at: ago(5), kind: 'note_left', data: { note: 'Add the exit codes to README.md, too.' } },
].map((record) => ({ actor: '', command: '', stream: '', version: 1, ...record }));

export async function answerExample(method: string, path: string, options: Asked): Promise<Answer<unknown>> {
  const ok = (value: unknown): Answer<unknown> => ({ ok: true, value, seq: null });
  const name = options?.path?.['worker'] ?? options?.path?.['task'] ?? '';
  const isA = name === 'A' || name === 'ta-1';
  if (method !== 'get') return ok({});
  switch (path) {
    case '/workers/{worker}/transcript': {
      if (options?.query?.['wait']) await new Promise((resolve) => options.signal?.addEventListener('abort', resolve));
      return ok({ items: isA ? ENTRIES : [], next: isA ? String(ENTRIES.length) : null, more: false, resting: false });
    }
    case '/workers/{worker}':
      return ok({ name, worktree: 'A-ta-1', branch: 'agent/A-ta-1', task: 'ta-1', status: 'working', symbol: '●', session: 'bdf81c1f-8738', taskAssignedAt: ago(549), lastStepAt: ago(546), lastAction: isA ? 'Edit(commands/sum)' : null });
    case '/workers/{worker}/why':
      return ok({ id: name, state: 'worker.working', guards: isA ? [] : [{ guard: 'statusCap', holds: false, detail: 'In progress is full, 8 of 8' }] });
    case '/runs/{run}':
      return ok({ id: options?.path?.['run'], task: options?.path?.['run']?.split('.')[0], agent: 'claude', holder: { worker: 'A' }, state: 'running', currentTurn: 7, maxTurns: 50, suspended: false, question: null, toolCalls: 9, cost: spend(0.07), pauseReason: null, lastError: null, approval: null, meta: { hasActiveTask: true } });
    case '/tasks/{task}':
      return ok({ id: name, status: 'IN_PROGRESS', lease: isA ? { worker: 'A' } : undefined, branch: `agent/A-${name}`, tip: '31ed415a0', cost: spend(0.07), comments: isA ? [{ at: ago(90), by: 'human:local', kind: 'comment', text: '' }] : [] });
    case '/tasks/{task}/history':
      return ok({ items: Number(options?.query?.['after']) === 0 && isA ? RECORDS : [], next: null });
    case '/config':
      return ok({ settings: { budget: { task: 2_000_000, run: null } } });
    default:
      return ok({});
  }
}
