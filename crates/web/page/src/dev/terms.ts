/** Terms of the example data. The real ones come from the server: nothing else of the page may read this file. */
import type { Move, Terms } from '../api/view';

type Status = Terms['statuses'][number]['id'];

const STATUSES: [Status, string][] = [
  ['INBOX', 'Inbox'], ['ASSIGNED', 'Assigned'], ['IN_PROGRESS', 'In progress'], ['REVIEW', 'Review'],
  ['NEEDS_APPROVAL', 'Needs approval'], ['BLOCKED', 'Blocked'], ['DONE', 'Done'], ['CANCELED', 'Canceled'],
];

const field = (name: string, label: string) => ({ name, label, kind: 'text' as const, required: true, text: '' });

const MOVES: Move[] = [
  { from: 'IN_PROGRESS', to: 'REVIEW', allowed: true, words: 'Asks for 2 fields: deliverable, checklist. The cost comes from the runs.', fields: [field('deliverable', 'Deliverable'), field('checklist', 'Checklist')] },
  { from: 'IN_PROGRESS', to: 'NEEDS_APPROVAL', allowed: true, words: 'Asks for 1 field: cause.', fields: [field('cause', 'Cause')] },
  { from: 'IN_PROGRESS', to: 'BLOCKED', allowed: true, words: 'Asks for 1 field: reason.', fields: [field('reason', 'Reason')] },
  { from: 'IN_PROGRESS', to: 'CANCELED', allowed: true, words: '', fields: [] },
  { from: 'IN_PROGRESS', to: 'INBOX', allowed: false, words: 'No row leads here. From In progress a task goes on, waits, or is given up.', fields: [] },
  { from: 'IN_PROGRESS', to: 'ASSIGNED', allowed: false, words: 'No row leads here. The next worker goes on in the same branch.', fields: [] },
  { from: 'IN_PROGRESS', to: 'DONE', allowed: false, words: 'Only from Review or Needs approval: it must be approved, and its merge in main.', fields: [] },
];

export const EXAMPLE_TERMS: Terms = {
  statuses: STATUSES.map(([id, label]) => ({ id, label, glyph: `task.${id}`, final: false, words: '', foot: false })),
  moves: MOVES,
  waitingKinds: [
    { id: 'approval', label: 'Needs approval', glyph: 'task.NEEDS_APPROVAL' },
    { id: 'review', label: 'Review', glyph: 'task.REVIEW' },
    { id: 'question', label: 'Question', glyph: 'architect.ESCALATED' },
    { id: 'stuck_worker', label: 'Stuck', glyph: 'worker.stuck' },
    { id: 'blocked_task', label: 'Blocked', glyph: 'task.BLOCKED' },
    { id: 'checkout_in_the_way', label: 'Landing', glyph: 'queue' },
    { id: 'dead_dependency', label: 'Never starts', glyph: 'dead' },
    { id: 'proposal', label: 'Proposal', glyph: 'pen' },
  ],
  attention: [{ id: 'waits', label: 'Wait for you', glyph: 'worker.idle' }, { id: 'stuck', label: 'Stuck', glyph: 'worker.idle' }, { id: 'idle', label: 'Idle', glyph: 'worker.idle' }, { id: 'work', label: 'At work', glyph: 'worker.idle' }],
  workerStates: [],
  queueSteps: [{ id: 'landing', label: 'Landing', glyph: 'arrow' }, { id: 'testing', label: 'Testing', glyph: 'clock' }, { id: 'waits', label: 'Waiting', glyph: 'queue' }, { id: 'held', label: 'Held up', glyph: 'clock' }],
  types: ['bug', 'feature', 'task', 'epic', 'chore'],
  agents: ['claude', 'codex'],
  keys: [
    { action: 'board.move', keys: ['Space'], views: ['board'], words: 'move', foot: true },
    { action: 'open', keys: ['Enter'], views: ['board', 'queue', 'fleet'], words: 'open', foot: true },
    { action: 'why', keys: ['W'], views: ['board', 'task'], words: 'why', foot: true },
    { action: 'next', keys: ['J', '↓'], views: [], words: 'next', foot: false },
    { action: 'previous', keys: ['K', '↑'], views: [], words: 'previous', foot: false },
    { action: 'filter', keys: ['/'], views: [], words: 'filter', foot: false },
    { action: 'task.new', keys: ['C'], views: ['board'], words: 'new task', foot: false },
    { action: 'approve', keys: ['Y'], views: ['inbox'], words: 'approve', foot: true },
    { action: 'deny', keys: ['N'], views: ['inbox'], words: 'deny', foot: true },
    { action: 'select', keys: ['X'], views: ['inbox'], words: 'select several', foot: true },
    { action: 'undo', keys: ['Z'], views: ['inbox'], words: 'undo', foot: true },
    { action: 'go.inbox', keys: ['G I'], views: [], words: 'go to the inbox', foot: false },
    { action: 'go.board', keys: ['G B'], views: [], words: 'go to the board', foot: false },
    { action: 'go.fleet', keys: ['G F'], views: [], words: 'go to the fleet', foot: false },
    { action: 'go.queue', keys: ['G Q'], views: [], words: 'go to the queue', foot: false },
    { action: 'connection.check', keys: ['R'], views: [], words: 'try now', foot: false },
    { action: 'palette.open', keys: ['Ctrl+K'], views: [], words: 'search or do', foot: false },
    { action: 'help.open', keys: ['?'], views: [], words: 'keys', foot: true },
  ],
};
