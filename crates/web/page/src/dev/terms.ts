/** Terms of the example data. The real ones come from the server: nothing else of the page may read this file. */
import type { Move, Terms } from '../api/view';

const STATUSES: [string, string][] = [
  ['INBOX', 'Inbox'], ['ASSIGNED', 'Assigned'], ['IN_PROGRESS', 'In progress'], ['REVIEW', 'Review'],
  ['NEEDS_APPROVAL', 'Needs approval'], ['BLOCKED', 'Blocked'], ['DONE', 'Done'], ['CANCELED', 'Canceled'],
];

const field = (name: string, label: string) => ({ name, label, kind: 'text', required: true });

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
  statuses: STATUSES.map(([id, label]) => ({ id, label, glyph: `task.${id}` })),
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
  attention: [{ id: 'waits', label: 'Wait for you' }, { id: 'stuck', label: 'Stuck' }, { id: 'idle', label: 'Idle' }, { id: 'work', label: 'At work' }],
  keys: [
    { action: 'board.move', keys: ['Space'], views: ['board'], words: 'move', foot: true },
    { action: 'open', keys: ['Enter'], views: ['board', 'queue', 'fleet'], words: 'open', foot: true },
    { action: 'why', keys: ['W'], views: ['board', 'task'], words: 'why', foot: true },
    { action: 'next', keys: ['J', '↓'], views: [], words: 'next' },
    { action: 'previous', keys: ['K', '↑'], views: [], words: 'previous' },
    { action: 'filter', keys: ['/'], views: [], words: 'filter' },
    { action: 'task.new', keys: ['C'], views: ['board'], words: 'new task' },
    { action: 'approve', keys: ['Y'], views: ['inbox'], words: 'approve', foot: true },
    { action: 'deny', keys: ['N'], views: ['inbox'], words: 'deny', foot: true },
    { action: 'select', keys: ['X'], views: ['inbox'], words: 'select several', foot: true },
    { action: 'undo', keys: ['Z'], views: ['inbox'], words: 'undo', foot: true },
    { action: 'go.inbox', keys: ['G I'], views: [], words: 'go to the inbox' },
    { action: 'go.board', keys: ['G B'], views: [], words: 'go to the board' },
    { action: 'go.fleet', keys: ['G F'], views: [], words: 'go to the fleet' },
    { action: 'go.queue', keys: ['G Q'], views: [], words: 'go to the queue' },
    { action: 'connection.check', keys: ['R'], views: [], words: 'try now' },
    { action: 'palette.open', keys: ['Ctrl+K'], views: [], words: 'search or do' },
    { action: 'help.open', keys: ['?'], views: [], words: 'keys', foot: true },
  ],
};
