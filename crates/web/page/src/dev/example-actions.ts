/** What can be done, as the server sends it, for the example data. */
import type { Action, WaitingRow } from '../api/view';

const request = { method: 'POST', path: '/approvals/q7/decision', body: { approve: true } };

export const EXAMPLE_CALL: NonNullable<WaitingRow['call']> = {
  tool: 'Bash',
  argument: "git rm -r --cached 'locale/zh-Hans-CN/numbers'",
  input: {
    command: "cd tests/fixtures && find . -name '*.tmp' -print0 | xargs -0 rm -f -- && git rm -r --cached 'locale/zh-Hans-CN/numbers-with-fullwidth-digits'",
    description: 'Stop tracking generated fixtures and remove leftovers',
    timeout: 120000,
  },
  text: "cd tests/fixtures && git rm -r --cached 'locale/zh-Hans-CN/numbers'",
};

const approve: Action = {
  code: 'approve_request', label: 'Approve', answer: 'yes', request,
  happens: ['The call of Bash runs once, in the tree of F.', 'ta-17 goes back to In progress.', 'The rule stays: the next call of this kind is asked about again.'],
};
const deny: Action = {
  code: 'deny_request', label: 'Deny', answer: 'no', request: { ...request, body: { approve: false } },
  fields: [{ name: 'note', label: 'Reason', kind: 'text', required: false, text: 'Why. The agent gets this text.' }],
  happens: ['F is told that you denied it, with your words, and goes on without it.', 'Nothing is removed; ta-17 goes back to In progress.'],
};
const always: Action = { code: 'approve_always', label: 'Always allow this call', happens: ['Exactly this call is allowed for the rest of the task.'], request };
const show: Action = { code: 'show_review', label: 'Review', happens: ['Shows what it changes, and what its tests said.'], page: '/task/ta-8/review' };

export const EXAMPLE_ACTIONS: Readonly<Record<'approval' | 'review' | 'worker', Action[]>> = {
  approval: [approve, always, deny],
  review: [show, { ...approve, code: 'approve_review' }, { ...deny, code: 'request_changes', label: 'Ask for changes' }],
  worker: [
    { code: 'pause_run', label: 'Pause', happens: ['Pauses the run after its turn.'], request },
    { code: 'choose_agent', label: 'Give to another agent', happens: ['Gives it to another agent.'], request, fields: [{ name: 'agent', label: 'Agent', kind: 'choice', required: true, choices: ['claude', 'codex'], text: 'The agent that goes on with it.' }] },
    { code: 'kill_worker', label: 'Kill', endsWork: true, happens: ['The processes of A end.', 'What is in its tree is saved to a reference of git first.', 'ta-1 keeps its branch; another worker goes on with it.'], request },
  ],
};
