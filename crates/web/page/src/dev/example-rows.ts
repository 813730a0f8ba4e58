/** Workers, waiting items and queue of the example data. */
import type { QueueRow, WaitingRow, WorkerRow } from '../api/view';

type Aged<T> = Omit<T, 'seq' | 'since'> & { age: number };
type Shown = Pick<WorkerRow, 'id' | 'name' | 'state' | 'attention' | 'task' | 'title' | 'text' | 'agent' | 'tone'> & { age: number };

const worker = (id: string, state: WorkerRow['state'], attention: WorkerRow['attention'], age: number, task: string | null, title: string, text: string, agent: string, tone: WorkerRow['tone'] = ''): Shown =>
  ({ id, name: id, state, attention, age, task, title, text, agent, tone });

export const EXAMPLE_WORKERS: Shown[] = [
  worker('F', 'working', 'waits', 360, 'ta-17', 'Keep fixtures out of the tree', "asks: Bash git rm -r --cached 'locale/zh-Hans-CN/…", 'claude sonnet', 'you'),
  worker('H', 'working', 'waits', 660, 'ta-19', 'Rewrite the parser without awk', 'budget: $2.00 of $2.00', 'claude opus', 'you'),
  worker('D', 'stuck', 'stuck', 2280, 'ta-4', 'Add median', 'ended by signal 9, 5 in a row; tree is kept', 'claude sonnet', 'bad'),
  worker('K', 'idle', 'idle', 480, null, '', 'rate limit of codex, again in 3:12', 'codex'),
  worker('L', 'idle', 'idle', 60, null, '', 'In progress is full, 8 of 8', 'claude sonnet'),
  worker('B', 'done', 'work', 1860, 'ta-7', 'Add help', 'says DONE; the gate tests, 0:22 of about 1:10', 'claude sonnet'),
  worker('A', 'working', 'work', 540, 'ta-1', 'Add sum', 'Edit commands/sum', 'claude sonnet'),
  worker('C', 'working', 'work', 360, 'ta-5', 'Add mean', 'Bash sh tests/run', 'claude opus'),
  worker('E', 'working', 'work', 300, 'ta-6', 'Add range', '“The largest minus the smallest; I sort once.”', 'codex'),
  worker('G', 'working', 'work', 180, 'ta-14', 'Refuse a number that does not fit, and name the file', 'Read crates/tally-core/src/parse/number/overflow.rs', 'claude sonnet'),
  worker('I', 'working', 'work', 120, 'ta-21', '千位分隔符：接受 1,234,567', 'Write tests/fixtures/zh-Hans-CN/分隔符.test', 'codex'),
  worker('J', 'ready', 'work', 40, 'ta-13', 'Print the standard deviation', 'its tree is being made', 'claude sonnet'),
];

type AgedWaiting = Pick<Aged<WaitingRow>, 'kind' | 'glyph' | 'project' | 'text' | 'about' | 'blocks' | 'task' | 'age'>;

const waits = (kind: WaitingRow['kind'], glyph: string, text: string, about: string, blocks: number, age: number, task: string | null, project = 'tally'): AgedWaiting =>
  ({ kind, glyph, text, about, blocks: Array.from({ length: blocks }, (_, index) => `ta-${28 + index}`), age, task, project });

export const EXAMPLE_WAITING: AgedWaiting[] = [
  waits('approval', 'task.NEEDS_APPROVAL', 'F asks to run git rm -r --cached …', 'ta-17 Keep fixtures out of the tree', 6, 360, 'ta-17'),
  waits('question', 'architect.ESCALATED', 'What is the mean of no numbers at all: 0, or an error?', 'architect, spec tally', 4, 720, null),
  waits('review', 'task.REVIEW', 'Review: Refuse what is not a number', 'ta-8, +22 −3, checks green', 2, 1020, 'ta-8'),
  waits('stuck_worker', 'worker.stuck', 'D is stuck: ended by signal 9, five times in a row', 'ta-4 Add median', 2, 2280, 'ta-4'),
  waits('approval', 'task.NEEDS_APPROVAL', 'Budget of ta-19 is used up: $2.00 of $2.00', 'H, Rewrite the parser without awk', 1, 660, 'ta-19'),
  waits('checkout_in_the_way', 'queue', 'README.md in your checkout is in the way of a landing', 'ta-71, queue place 10', 1, 120, 'ta-71'),
  waits('blocked_task', 'task.BLOCKED', 'Blocked after 3 of 3 review rounds: what is the locale of the user?', 'ta-16 Print numbers in the locale of the user', 1, 3600, 'ta-16'),
  waits('blocked_task', 'task.BLOCKED', 'Blocked: conflicts with main three times, in tests/run', 'ta-22 Vendor the test helpers', 0, 10_800, 'ta-22'),
  waits('dead_dependency', 'dead', '2 tasks will never start: they depend on ta-11, which was canceled', 'ta-26, ta-35', 0, 7200, 'ta-26'),
  waits('proposal', 'pen', 'Accept a proposal: skip blank lines instead of refusing them', 'ta-30, proposed by C', 0, 1860, 'ta-30'),
  waits('proposal', 'task.INBOX', 'Accept a proposal: split the importer by bank', 'le-40, proposed by agent:claude', 1, 1500, null, 'ledger'),
];

export const EXAMPLE_QUEUE: Pick<QueueRow, 'task' | 'title' | 'state' | 'text'>[] = [
  { task: 'ta-2', title: 'Add max', state: 'landing', text: 'moving main' },
  { task: 'ta-3', title: 'Add min', state: 'landing', text: 'landing with ta-2' },
  { task: 'ta-10', title: 'Keep the order of equal lines', state: 'testing', text: 'testing 0:41 of about 1:10' },
  { task: 'ta-18', title: 'Use the check in every command', state: 'testing', text: 'testing 0:41 of about 1:10' },
  { task: 'ta-20', title: 'One place for exit codes', state: 'testing', text: 'testing 0:12 of about 1:10' },
  { task: 'ta-67', title: 'Read the numbers of a whole folder, and say of which file each line is', state: 'testing', text: 'testing 0:12 of about 1:10' },
  { task: 'ta-68', title: '数字の列を揃えて表示する', state: 'waits', text: 'waits for its turn' },
  { task: 'ta-69', title: 'Say which line was the first', state: 'waits', text: 'waits for its turn' },
  { task: 'ta-70', title: 'Percentile without sorting', state: 'waits', text: 'waits for a slot' },
  { task: 'ta-71', title: 'Name the commands in README.md', state: 'waits', text: 'README.md in your checkout is in the way' },
];
