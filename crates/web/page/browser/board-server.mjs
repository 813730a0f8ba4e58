// A server of one project for the board: tasks with the statuses, moves and keys of the product, and its answers to a move.
import { serve } from './serve.mjs';

const STATUSES = [
  ['INBOX', 'Inbox', 'New: no agent has it.'], ['ASSIGNED', 'Assigned', 'Given to an agent that has not begun.'],
  ['IN_PROGRESS', 'In progress', 'An agent works on it, or is about to continue.'], ['REVIEW', 'Review', 'The checks passed. It waits for an approval, or for its landing.'],
  ['NEEDS_APPROVAL', 'Needs approval', 'It waits for your decision.'], ['BLOCKED', 'Blocked', 'It cannot go on without you.'],
  ['DONE', 'Done', 'Approved, and on main if it has code.'], ['CANCELED', 'Canceled', 'Given up. Its work is saved.'],
].map(([id, label, words]) => ({ id, label, words, glyph: `task.${id}`, final: id === 'DONE' || id === 'CANCELED' }));
const label = (id) => STATUSES.find((status) => status.id === id).label;

const FIELDS = {
  agents: { name: 'assigneeIds', label: 'Agents', kind: 'choices', required: true, choices: ['claude', 'codex'], text: 'Must have at least one assignee.' },
  plan: { name: 'workPlan.bullets', label: 'Plan', kind: 'list', required: true, choices: [], text: 'Work plan required for IN_PROGRESS.', items: [3, 6] },
  result: { name: 'deliverable.content', label: 'Result', kind: 'text', required: true, choices: [], text: 'Deliverable with content required for REVIEW.' },
  checklist: { name: 'reviewChecklist', label: 'Checklist', kind: 'checklist', required: true, choices: [], text: "Review checklist of the task's type required, with every item answered." },
  feedback: { name: 'feedback', label: 'Changes', kind: 'text', required: true, choices: [], text: 'Feedback required for changes.' },
  approval: { name: 'approval.decisionNote', label: 'Reason', kind: 'text', required: true, choices: [], text: 'Approval record with a decisionNote required for DONE.' },
  cause: { name: 'cause', label: 'Cause', kind: 'choice', required: true, choices: ['budget', 'red_action', 'yellow_action', 'turn_limit', 'escalation'], text: 'Approval request with a cause required for NEEDS_APPROVAL.' },
  reason: { name: 'reason', label: 'Reason', kind: 'choice', required: true, choices: ['loop', 'tool_failures', 'dependency', 'environment', 'manual'], text: 'Reason required for BLOCKED.' },
  decision: { name: 'decision', label: 'Decision', kind: 'text', required: true, choices: [], text: 'Decision required to leave NEEDS_APPROVAL.' },
  clarification: { name: 'clarification', label: 'Clarification', kind: 'text', required: false, choices: [], text: 'Clarified requirements required after the review limit.' },
};
const ROWS = {
  INBOX: { ASSIGNED: ['agents'], CANCELED: [] },
  ASSIGNED: { INBOX: [], IN_PROGRESS: ['plan', 'agents'], CANCELED: [] },
  IN_PROGRESS: { REVIEW: ['result', 'checklist'], NEEDS_APPROVAL: ['cause'], BLOCKED: ['reason'], CANCELED: [] },
  REVIEW: { IN_PROGRESS: ['plan', 'agents', 'feedback'], NEEDS_APPROVAL: ['cause'], BLOCKED: ['reason'], DONE: ['approval'], CANCELED: [] },
  NEEDS_APPROVAL: {
    INBOX: ['decision', 'clarification'], ASSIGNED: ['decision', 'agents', 'clarification'], IN_PROGRESS: ['decision', 'plan', 'agents', 'clarification'],
    REVIEW: ['decision', 'result', 'checklist', 'clarification'], BLOCKED: ['decision', 'reason'], DONE: ['decision', 'approval'], CANCELED: ['decision'],
  },
  BLOCKED: { ASSIGNED: ['agents', 'clarification'], IN_PROGRESS: ['plan', 'agents', 'clarification'], NEEDS_APPROVAL: ['cause'], CANCELED: [] },
};
const MOVES = STATUSES.flatMap((from) => STATUSES.filter((to) => to !== from).map((to) => {
  const names = ROWS[from.id]?.[to.id];
  const fields = (names ?? []).map((name) => FIELDS[name]);
  const asks = fields.length === 0 ? '' : `Asks for: ${fields.map((field) => field.label).join(', ')}.`;
  const refused = from.final ? 'The task is closed. To continue the work, add a new task that reopens it.' : `There is no move from ${from.label} to ${to.label}.`;
  return { from: from.id, to: to.id, allowed: names !== undefined, words: names ? asks : refused, fields };
}));

const LISTS = ['inbox', 'board', 'fleet', 'queue', 'task'];
const KEYS = [
  ['palette.open', ['Ctrl+K'], [], 'search or do'], ['help.open', ['?'], [], 'keys', true], ['back', ['Esc'], [], 'back'], ['filter', ['/'], ['board'], 'filter'],
  ['next', ['J', '↓'], LISTS, 'next', true], ['previous', ['K', '↑'], LISTS, 'previous'], ['left', ['H', '←'], ['board'], 'column to the left'],
  ['right', ['L', '→'], ['board'], 'column to the right'], ['open', ['Enter'], LISTS, 'open', true], ['board.move', ['Space'], ['board'], 'move', true],
  ['why', ['W'], ['board'], 'why', true], ['task.new', ['C'], ['board'], 'new task'], ['next.waiting', ['.'], ['board'], 'next that waits', true],
].map(([action, keys, views, words, foot = false]) => ({ action, keys, views, words, foot }));
const TERMS = {
  statuses: STATUSES, moves: MOVES, keys: KEYS, waitingKinds: [], attention: [], workerStates: [], queueSteps: [],
  types: ['bug', 'feature', 'task', 'epic', 'chore'], agents: ['claude', 'codex'],
};

export class BoardServer {
  seq = 100;
  tasks = new Map();
  waiting = [];
  columns = [];
  streams = new Set();
  /** What was asked for: `POST /tasks/t-1/transitions {"to":"REVIEW"}`. */
  asked = [];
  /** Tasks whose code has not landed. */
  notLanded = new Set();
  /** Answers are kept back until `release` is called. */
  held = null;

  /** `task('t-1', 'INBOX', { title: 'Add sum' })`. */
  task(id, status, more = {}) {
    this.tasks.set(id, {
      id, seq: 1, title: `Task ${id}`, status, rank: this.tasks.size, priority: 2, type: 'task', since: new Date(Date.now() - 60_000).toISOString(), lines: [], quiet: false, ...more,
    });
    return this;
  }

  async start() {
    this.http = await serve('dist', { api: (request, response, path) => this.answer(request, response, path) });
    this.timer = setInterval(() => this.send('heartbeat', { seq: this.seq, at: new Date().toISOString() }), 1000);
    return this;
  }

  async stop() {
    clearInterval(this.timer);
    await this.http.stop();
  }

  /** The row of a task changed, by whomever. */
  change(id, more) {
    this.seq += 1;
    this.tasks.set(id, { ...this.tasks.get(id), ...more, seq: this.seq });
    this.send('change', { seq: this.seq, at: new Date().toISOString(), gone: {}, tasks: [this.tasks.get(id)] });
  }

  send(event, data) {
    for (const stream of this.streams) stream.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  view() {
    const facts = {
      id: 'frame', seq: 1, project: 'tally', fleet: { text: 'fleet runs, 7 of 12 at work', glyph: 'worker.working' }, running: true, wanted: true, workers: 12, working: 7,
      main: { text: 'main green at', glyph: 'check', commit: '31ed415' }, mainTests: null, tests: [], money: null, cost: {}, machine: '', machineUse: null, firstRun: false,
      landedLastHour: 5, actions: [],
    };
    return { seq: this.seq, at: new Date().toISOString(), tasks: [...this.tasks.values()], columns: this.columns, workers: [], waiting: this.waiting, queue: [], facts: [facts] };
  }

  answer(request, response, path) {
    const json = (status, body) => response.writeHead(status, { 'content-type': status < 400 ? 'application/json' : 'application/problem+json' }).end(JSON.stringify(body));
    const route = path.replace('/api/v1', '');
    if (route === '/terms') return json(200, TERMS);
    if (route === '/view') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      this.streams.add(response);
      response.on('close', () => this.streams.delete(response));
      response.write(`event: view\ndata: ${JSON.stringify(this.view())}\n\n`);
      return true;
    }
    let text = '';
    request.on('data', (piece) => { text += piece; });
    request.on('end', async () => {
      const body = text ? JSON.parse(text) : {};
      if (request.method !== 'GET') this.asked.push(`${request.method} ${route} ${text}`.trim());
      if (request.method !== 'GET') await this.held;
      const [, , id, what, on] = route.split('/');
      if (what === 'transitions') return this.transition(id, body, json);
      if (route === '/tasks' && request.method === 'POST') return this.add(body, json);
      if (what === 'why') return json(200, { id, state: this.tasks.get(id)?.status, spec: null, guards: [{ guard: 'fleetRunning', holds: true, detail: 'the fleet runs' }, { guard: 'statusCap', holds: false, detail: 'In progress is full: 8 of 8' }], waiting: [], call: null });
      if (what === 'dependencies') return this.depend(id, request.method === 'POST' ? body.on : null, on, json);
      const task = this.tasks.get(id);
      if (!task) return json(404, { type: '', title: 'not found', status: 404, detail: `there is no task \`${id}\`` });
      if (request.method === 'PATCH') this.change(id, { ...body });
      return json(200, { ...this.tasks.get(id), body: task.body ?? 'In src/read.rs.', dependsOn: task.waitsFor ?? [], agent: task.agent ?? null });
    });
    return true;
  }

  transition(id, body, json) {
    const task = this.tasks.get(id);
    const names = ROWS[task.status]?.[body.to];
    const problem = (status, code, errors) => json(status, {
      type: `urn:adjutant:problem:${code}`, title: code, status, detail: `cannot move from ${task.status} to ${body.to}: ${errors.map((error) => error.message).join('; ')}`, success: false, errors,
    });
    if (!names) return problem(409, 'not-allowed', [{ field: 'status', message: `There is no move from ${label(task.status)} to ${label(body.to)}` }]);
    const errors = names.map((name) => FIELDS[name]).filter((field) => field.required && !has(field, body, task))
      .map((field) => ({ field: field.name.split('.')[0], message: field.text.replace(/\.$/, '') }));
    if (body.to === 'DONE' && this.notLanded.has(id)) errors.push({ field: 'landing', message: 'The task has code that has not landed' });
    if (errors.length > 0) return problem(422, 'missing-field', errors);
    json(200, { success: true, task: { ...task, status: body.to } });
    this.change(id, { status: body.to, since: new Date().toISOString(), agent: body.assigneeIds?.[0] ?? task.agent });
  }

  add(body, json) {
    if (!body.title?.trim()) return json(422, { type: '', title: 'missing field', status: 422, detail: 'title', errors: [{ field: 'title', message: 'A task needs a title' }] });
    const id = `t-${this.tasks.size + 1}`;
    this.task(id, 'INBOX', { title: body.title, priority: body.priority ?? 2, type: body.type ?? 'task', agent: body.agent, waitsFor: body.dependsOn ?? [] });
    json(201, { id });
    this.change(id, {});
  }

  depend(id, add, remove, json) {
    if (add === id) return json(409, { type: '', title: 'refused', status: 409, detail: 'a task cannot wait for itself' });
    const before = this.tasks.get(id).waitsFor ?? [];
    const waitsFor = add ? [...before, add] : before.filter((each) => each !== remove);
    json(add ? 201 : 200, {});
    this.change(id, { waitsFor, lines: waitsFor.length > 0 ? [{ text: `waits for ${waitsFor.join(' ')}`, glyph: 'chain', tone: '', tasks: waitsFor }] : [] });
  }
}

/** The move brings it, or the task has it already. */
function has(field, body, task) {
  if (field.kind === 'checklist') {
    const { type, items } = body.reviewChecklist ?? {};
    return type === task.type && items?.length > 0 && items.every(({ answer }) => answer?.trim());
  }
  const brought = field.name.split('.').reduce((inside, name) => inside?.[name], body);
  if (field.name === 'assigneeIds' && task.agent) return true;
  if (field.name === 'workPlan.bullets' && task.plan) return true;
  return Array.isArray(brought) ? brought.length >= (field.items?.[0] ?? 1) : Boolean(String(brought ?? '').trim());
}
