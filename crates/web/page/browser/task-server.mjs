// A small server of one task: view, terms and the routes that the task screen asks. It keeps drafts and rounds as the product's server does.
import { serve } from './serve.mjs';

export const TIP = '75c692c1d0e4f6a8b2c3d4e5f60718293a4b5c6d';
const key = (action, keys, words) => ({ action, keys, views: ['task'], words, foot: false });
const TERMS = {
  statuses: [{ id: 'REVIEW', label: 'Review', glyph: 'task.REVIEW', final: false, words: '' }, { id: 'IN_PROGRESS', label: 'In progress', glyph: 'task.IN_PROGRESS', final: false, words: '' }],
  moves: [], waitingKinds: [], attention: [], workerStates: [], queueSteps: [], types: [], agents: [],
  keys: [
    key('next', ['J', '↓'], 'next'), key('previous', ['K', '↑'], 'previous'), key('comment', ['M'], 'comment'), key('comment.range', ['Shift+↓'], 'longer range'),
    key('draft.keep', ['Ctrl+S'], 'keep'), key('send', ['Ctrl+Enter'], 'send'), key('viewed', ['V'], 'viewed'), key('approve', ['Y'], 'approve'), key('deny', ['N'], 'deny'), key('why', ['W'], 'why'),
  ],
};
const facts = { id: 'frame', seq: 1, project: 'tally', person: 'human:local', fleet: { text: 'fleet is off', glyph: 'worker.idle' }, main: { text: 'main green at', glyph: 'check', commit: '31ed415' }, money: null, machine: '', firstRun: false, actions: [], tests: [] };

export class TaskServer {
  seq = 7;
  streams = new Set();
  drafts = [];
  rounds = [];
  /** Requests that change something: method, path, body. */
  changes = [];
  keepsComments = true;
  title = 'Refuse what is not a number';
  patch = '';
  tip = TIP;
  entries = [];
  story = [];
  tests = [];

  async start() {
    this.http = await serve('dist', { api: (request, response, path) => this.answer(request, response, path) });
    this.timer = setInterval(() => this.send('heartbeat', { seq: this.seq, at: new Date().toISOString() }), 1000);
  }

  async stop() {
    clearInterval(this.timer);
    await this.http.stop();
  }

  row() {
    return {
      id: 'ta-8', seq: this.seq, title: this.title, status: 'REVIEW', rank: 1, priority: 3, type: 'feature', since: '2026-01-01T00:00:00Z', lines: [], added: 2, removed: 1, cost: '$0.06', waiting: 'w1',
    };
  }

  waiting() {
    const request = { method: 'POST', path: '/tasks/ta-8/review', body: { approve: true, tip: this.tip } };
    return {
      id: 'w1', seq: this.seq, rank: 1, kind: 'review', glyph: 'task.REVIEW', project: 'tally', severity: 'warning', who: 'person', text: `Review: ${this.title}`, about: '', since: null, blocks: [], task: 'ta-8',
      worker: null, approval: null, request: null, channel: null, call: null, question: null,
      actions: [
        { code: 'approve_review', label: 'Approve', answer: 'yes', happens: ['ta-8 joins the queue at place 3.'], request },
        { code: 'request_changes', label: 'Ask for changes', answer: 'no', happens: ['Its agent gets your text.'], request: { ...request, body: { approve: false } }, fields: [{ name: 'note', label: 'Changes', kind: 'text', required: true, text: '' }] },
      ],
    };
  }

  /** The task's row changes: the page fetches again what it shows. */
  change() {
    this.seq += 1;
    this.send('change', { seq: this.seq, at: new Date().toISOString(), gone: {}, tasks: [this.row()], waiting: [this.waiting()] });
  }

  send(event, data) {
    for (const stream of this.streams) stream.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  answer(request, response, path) {
    const json = (status, body) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (path === '/api/v1/terms') return json(200, TERMS);
    if (path === '/api/v1/caller') return json(200, { kind: 'person', name: 'local', role: 'human' });
    if (path === '/api/v1/view') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      this.streams.add(response);
      response.on('close', () => this.streams.delete(response));
      this.send('view', { seq: this.seq, at: new Date().toISOString(), tasks: [this.row()], columns: [], workers: [], waiting: [this.waiting()], queue: [], facts: [facts] });
      return true;
    }
    if (request.method === 'GET') {
      const found = this.read(path.replace('/api/v1', ''));
      return found ? json(200, found) : json(404, { type: '', title: 'not found', status: 404, detail: `there is nothing at ${path}` });
    }
    let text = '';
    request.on('data', (piece) => { text += piece; });
    request.on('end', () => {
      const body = text ? JSON.parse(text) : undefined;
      this.changes.push({ method: request.method, path: path.replace('/api/v1', ''), body });
      this.write(request.method, path, body);
      json(request.method === 'POST' ? 201 : 200, {});
    });
    return true;
  }

  read(path) {
    const page = (items) => ({ items, next: null });
    switch (path) {
      case '/tasks/ta-8': return { id: 'ta-8', title: this.title, status: 'REVIEW', type: 'feature', priority: 3, assigneeIds: [], agent: null, dependsOn: [], createdAt: '', tip: this.tip, branch: 'agent/B-ta-8', body: this.title, gate: { checks: [] }, comments: [] };
      case '/tasks/ta-8/review': return { task: {}, said: null, workMillis: 0, commits: [], commitsProblem: null, diffStat: null, diffProblem: null, movedBranch: null };
      case '/tasks/ta-8/why': return { id: 'ta-8', state: null, spec: null, guards: [{ guard: 'approved', holds: false, detail: this.title }], waiting: [], call: null };
      case '/tasks/ta-8/diff': return { task: 'ta-8', base: '31ed415', tip: this.tip, diff: this.patch };
      case '/tasks/ta-8/transcript': return { items: this.entries, next: null, more: false, resting: true };
      case '/tasks/ta-8/history': return page(this.story);
      case '/tasks/ta-8/tests': return page(this.tests);
      case '/tasks/ta-8/drafts': return this.keepsComments ? page(this.drafts) : undefined;
      case '/tasks/ta-8/rounds': return this.keepsComments ? page(this.rounds) : undefined;
      case '/runs': return page([]);
      default: return undefined;
    }
  }

  write(method, path, body) {
    if (path.endsWith('/drafts')) this.drafts = [...this.drafts, { ...body, id: `d${this.changes.length}`, at: new Date().toISOString(), by: 'local', moved: null }];
    else if (path.endsWith('/rounds')) {
      const comments = this.drafts.map(({ path: file, side, line, endLine, text: words }) => ({ path: file, side, line, endLine, text: words, moved: null }));
      this.rounds = [...this.rounds, { number: this.rounds.length + 1, at: new Date().toISOString(), by: 'local', tip: body.tip, note: body.note, comments, receipt: 'queued', run: null }];
      this.drafts = [];
    } else if (method === 'DELETE') this.drafts = this.drafts.filter((draft) => !path.endsWith(`/${draft.id}`));
    else if (method === 'PATCH') this.drafts = this.drafts.map((draft) => (path.endsWith(`/${draft.id}`) ? { ...draft, text: body.text } : draft));
  }
}
