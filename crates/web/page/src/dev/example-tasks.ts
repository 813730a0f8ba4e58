/** Tasks of the example data, by status. Written for looking at, with the lengths and scripts that break layouts. */

import type { CardLine } from '../api/view';

export interface ExampleTask {
  id: string;
  title: string;
  /** Seconds in its status. */
  age: number;
  priority?: number;
  lines?: CardLine[];
  note?: string;
  agent?: string;
  added?: number;
  removed?: number;
  cost?: string;
  quiet?: boolean;
}

export const EXAMPLE_TASKS: Readonly<Record<string, readonly ExampleTask[]>> = {
  INBOX: [
    { id: 'ta-27', title: 'Print the product of the numbers', age: 240, priority: 0, note: 'cap' },
    { id: 'ta-28', title: 'Print the variance and say which of the two it is', age: 240, lines: [{ text: 'waits for ta-5', glyph: 'chain', tone: '', tasks: ['ta-5'] }], quiet: true },
    { id: 'ta-29', title: 'Percentile P of a column', age: 1320, priority: 1, lines: [{ text: 'waits for 3: ta-4 ta-5 ta-6', glyph: 'chain', tone: '', tasks: ['ta-4', 'ta-5', 'ta-6'] }] },
    { id: 'ta-30', title: 'Skip blank lines instead of refusing them', age: 1860, lines: [{ text: 'proposed by C, not accepted', glyph: 'pen', tone: 'warn' }], quiet: true },
    { id: 'ta-31', title: 'Accept a decimal comma where the locale has one', age: 3600, quiet: true, note: 'cap' },
    { id: 'ta-32', title: 'Read numbers from files named on the command line as well as from standard input, and say which file a refused line came from', age: 7200, quiet: true, note: 'cap' },
    { id: 'ta-33', title: '全角数字（０１２）も数として受け付ける', age: 7200, lines: [{ text: 'waits for ta-1', glyph: 'chain', tone: '', tasks: ['ta-1'] }], quiet: true },
    { id: 'ta-34', title: 'Histogram with ten bars', age: 10800, quiet: true, note: 'cap' },
    { id: 'ta-35', title: 'Say in the help what each command does with an empty input', age: 18000, lines: [{ text: 'never: ta-11 was canceled', glyph: 'dead', tone: 'bad', tasks: ['ta-11'] }], quiet: true },
    { id: 'ta-36', title: 'Let `tally` without a command list the commands', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-37', title: 'Exit with 3 where a line was refused', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-38', title: 'Round half to even', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-39', title: 'Numbers larger than 2^53 keep their digits', age: 86400, lines: [{ text: 'waits for ta-1', glyph: 'chain', tone: '', tasks: ['ta-1'] }], quiet: true },
    { id: 'ta-40', title: 'Scientific notation, `1e6`', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-41', title: 'Thousands separators', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-42', title: '支持以逗号分隔的数字列', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-43', title: 'Weighted mean', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-44', title: 'Mode, and all of them where there are several', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-45', title: 'Cumulative sum', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-46', title: 'Difference between neighbours', age: 86400, lines: [{ text: 'waits for ta-1', glyph: 'chain', tone: '', tasks: ['ta-1'] }], quiet: true },
    { id: 'ta-47', title: 'Sort by the second column', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-48', title: 'Group by the first column', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-49', title: 'Print JSON with `--json`', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-50', title: 'Print a table with aligned decimals', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-51', title: 'Completions for bash and zsh', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-52', title: 'A man page', age: 86400, lines: [{ text: 'waits for ta-1', glyph: 'chain', tone: '', tasks: ['ta-1'] }], quiet: true },
    { id: 'ta-53', title: 'Test on mawk and busybox awk', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-54', title: 'Run the tests in parallel', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-55', title: 'Time limit for a single test', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-56', title: 'Fail on a test without an assertion', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-57', title: 'Describe how to add a command', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-58', title: 'Changelog', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-59', title: 'Licence header', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-60', title: 'Name the command in every error message', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-61', title: 'Warn about a byte order mark', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-62', title: 'Windows line ends', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-63', title: 'Stop at the first NUL byte', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-64', title: 'Read compressed input', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-65', title: 'Colour only on a terminal', age: 86400, quiet: true, note: 'cap' },
    { id: 'ta-66', title: 'Show progress for long inputs', age: 86400, quiet: true, note: 'cap' },
  ],
  ASSIGNED: [
    { id: 'ta-9', title: 'Add report', age: 2640, lines: [{ text: 'waits for 3: ta-4 ta-5 ta-6', glyph: 'chain', tone: '', tasks: ['ta-4', 'ta-5', 'ta-6'] }], agent: 'claude' },
    { id: 'ta-26', title: 'Print the mode of a column, and all of them where several values are equally frequent', age: 7200, lines: [{ text: 'never: ta-11 was canceled', glyph: 'dead', tone: 'bad', tasks: ['ta-11'] }], agent: 'claude' },
    { id: 'ta-25', title: 'Say what is wrong with `adjutant.toml` in the words of the schema', age: 720, lines: [{ text: 'rate limit, again in 3:12', glyph: 'clock', tone: 'warn' }], agent: 'codex' },
  ],
  IN_PROGRESS: [
    { id: 'ta-4', title: 'Add median', age: 2280, priority: 1, lines: [{ text: 'D stuck: ended by signal 9, 5 in a row', glyph: 'worker.stuck', tone: 'bad' }], agent: 'claude sonnet', added: 2, cost: '$0.41' },
    { id: 'ta-1', title: 'Add sum', age: 540, priority: 1, lines: [{ text: 'A Edit commands/sum', glyph: 'worker.working', tone: '' }], agent: 'claude sonnet', added: 9, removed: 1, cost: '$0.07' },
    { id: 'ta-5', title: 'Add mean', age: 360, lines: [{ text: 'C Bash sh tests/run', glyph: 'worker.working', tone: '' }], agent: 'claude opus', added: 7, cost: '$0.22' },
    { id: 'ta-6', title: 'Add range', age: 300, lines: [{ text: 'E “The largest minus the smallest; I sort once.”', glyph: 'worker.working', tone: '' }], agent: 'codex', added: 4, cost: '$0.03' },
    { id: 'ta-14', title: 'Refuse a number that does not fit, and name the file, the line and the column in which it stands instead of only the line', age: 180, lines: [{ text: 'G Read crates/tally-core/src/parse/number/overflow.rs', glyph: 'worker.working', tone: '' }], agent: 'claude sonnet', added: 112, removed: 48, cost: '$0.64' },
    { id: 'ta-21', title: '千位分隔符：接受 1,234,567 并拒绝 12,34', age: 120, lines: [{ text: 'I Write tests/fixtures/zh-Hans-CN/分隔符.test', glyph: 'worker.working', tone: '' }], agent: 'codex', added: 31, removed: 2, cost: '$0.12' },
    { id: 'ta-13', title: 'Print the standard deviation', age: 40, lines: [{ text: 'J its tree is being made', glyph: 'worker.ready', tone: '' }], agent: 'claude sonnet' },
    { id: 'ta-7', title: 'Add help', age: 1860, lines: [{ text: 'B says DONE, the gate tests', glyph: 'worker.done', tone: '' }], agent: 'claude sonnet', added: 3, cost: '$0.05' },
  ],
  REVIEW: [
    { id: 'ta-8', title: 'Refuse what is not a number', age: 1020, lines: [{ text: 'waits for your review, 2 drafts', glyph: 'talk', tone: 'you' }], agent: 'claude sonnet', added: 22, removed: 3, cost: '$0.06' },
    { id: 'ta-2', title: 'Add max', age: 120, priority: 1, lines: [{ text: 'queue 1, moving main', glyph: 'queue', tone: '' }], agent: 'claude sonnet', added: 8, removed: 1, cost: '$0.05' },
    { id: 'ta-3', title: 'Add min', age: 120, priority: 1, lines: [{ text: 'queue 2, landing with ta-2', glyph: 'queue', tone: '' }], agent: 'claude sonnet', added: 8, removed: 1, cost: '$0.09' },
    { id: 'ta-10', title: 'Keep the order of equal lines', age: 240, lines: [{ text: 'queue 3, testing 0:41 of about 1:10', glyph: 'queue', tone: '' }], agent: 'codex', added: 5, removed: 5, cost: '$0.08' },
    { id: 'ta-18', title: 'Use the check in every command', age: 240, lines: [{ text: 'queue 4, testing 0:41 of about 1:10', glyph: 'queue', tone: '' }], agent: 'claude sonnet', added: 26, removed: 9, cost: '$0.31' },
    { id: 'ta-20', title: 'One place for exit codes', age: 300, lines: [{ text: 'queue 5, testing 0:12 of about 1:10', glyph: 'queue', tone: '' }], agent: 'claude opus', added: 44, removed: 37, cost: '$0.90' },
    { id: 'ta-67', title: 'Read the numbers of a whole folder, and say of which file each line is', age: 300, lines: [{ text: 'queue 6, testing 0:12 of about 1:10', glyph: 'queue', tone: '' }], agent: 'codex', added: 71, removed: 8, cost: '$0.33' },
    { id: 'ta-68', title: '数字の列を揃えて表示する', age: 360, lines: [{ text: 'queue 7, under suspicion', glyph: 'queue', tone: '' }], agent: 'claude sonnet', added: 19, removed: 4, cost: '$0.08' },
    { id: 'ta-69', title: 'Say which line was the first', age: 360, lines: [{ text: 'queue 8, under suspicion', glyph: 'queue', tone: '' }], agent: 'claude sonnet', added: 6, removed: 2, cost: '$0.04' },
    { id: 'ta-70', title: 'Percentile without sorting', age: 420, lines: [{ text: 'queue 9, waits for a slot', glyph: 'queue', tone: '' }], agent: 'codex', added: 40, removed: 11, cost: '$0.21' },
    { id: 'ta-71', title: 'Name the commands in README.md', age: 480, lines: [{ text: 'README.md in your checkout is in the way', glyph: 'queue', tone: 'you' }], agent: 'claude sonnet', added: 5, removed: 1, cost: '$0.02' },
  ],
  NEEDS_APPROVAL: [
    { id: 'ta-17', title: 'Keep fixtures out of the tree', age: 360, priority: 0, lines: [{ text: 'F asks: Bash git rm -r --cached …', glyph: 'task.NEEDS_APPROVAL', tone: 'you' }, { text: 'holds up 6', glyph: 'chain', tone: '' }], agent: 'claude sonnet', added: 14, removed: 2, cost: '$0.18' },
    { id: 'ta-19', title: 'Rewrite the parser without awk', age: 660, lines: [{ text: 'H budget: $2.00 of $2.00 spent', glyph: 'task.NEEDS_APPROVAL', tone: 'you' }, { text: 'holds up 1', glyph: 'chain', tone: '' }], agent: 'claude opus', added: 640, removed: 212, cost: '$2.00' },
  ],
  BLOCKED: [
    { id: 'ta-16', title: 'Print numbers in the locale of the user', age: 3600, lines: [{ text: '3 of 3 review rounds', glyph: 'task.BLOCKED', tone: 'bad' }, { text: 'you can clarify or cancel', glyph: 'pen', tone: 'you' }], agent: 'codex', added: 88, removed: 12, cost: '$1.12' },
    { id: 'ta-22', title: 'Vendor the test helpers', age: 10800, lines: [{ text: 'conflicts with main 3 times', glyph: 'task.BLOCKED', tone: 'bad' }], agent: 'claude sonnet', added: 310, cost: '$0.77' },
  ],
  DONE: [
    { id: 'ta-24', title: 'Say which file is missing', age: 180, lines: [{ text: 'landed as 31ed415', glyph: 'check', tone: '' }], agent: 'G, claude sonnet', cost: '$0.11', quiet: true },
    { id: 'ta-15', title: 'Read the first column only', age: 720, lines: [{ text: 'landed as 6d32f00', glyph: 'check', tone: '' }], agent: 'A, claude sonnet', cost: '$0.03', quiet: true },
    { id: 'ta-12', title: 'Let an empty input have a count of 0', age: 1200, lines: [{ text: 'landed as bb2cae3', glyph: 'check', tone: '' }], agent: 'C, claude opus', cost: '$0.09', quiet: true },
    { id: 'co-1', title: 'Tests say which command they test', age: 2460, lines: [{ text: 'landed as ee21c4e', glyph: 'check', tone: '' }], agent: 'B, claude sonnet', cost: '$0.05', quiet: true },
    { id: 'co-2', title: 'One folder for all tests', age: 3120, lines: [{ text: 'landed as 6f9122b', glyph: 'check', tone: '' }], agent: 'E, codex', cost: '$0.07', quiet: true },
    { id: 'co-3', title: 'Add count', age: 3600, lines: [{ text: 'landed as 1a13751', glyph: 'check', tone: '' }], agent: 'A, claude sonnet', cost: '$0.04', quiet: true },
    { id: 'co-4', title: 'Run without a terminal', age: 3600, lines: [{ text: 'landed as 32de7f9', glyph: 'check', tone: '' }], agent: 'I, codex', cost: '$0.12', quiet: true },
    { id: 'co-5', title: 'Shell only, no other program', age: 7200, lines: [{ text: 'landed as 64c3aa2', glyph: 'check', tone: '' }], agent: 'C, claude opus', cost: '$0.18', quiet: true },
    { id: 'co-6', title: 'Begin a README', age: 7200, lines: [{ text: 'landed as 89dade4', glyph: 'check', tone: '' }], agent: 'B, claude sonnet', cost: '$0.02', quiet: true },
  ],
  CANCELED: [
    { id: 'ta-11', title: 'Read from a database', age: 7200, quiet: true },
    { id: 'ta-23', title: 'Guess the locale', age: 9000, quiet: true },
  ],
};
