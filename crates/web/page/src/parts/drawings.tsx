/** The drawings of all glyphs, by name: `machine.state` for a state, one word for a sign. */
import type { ReactNode } from 'react';

/** Full where the shape itself is filled. */
const full = { fill: 'currentColor', stroke: 'none' } as const;
const square = 'M4.75 2.25h6.5a2.5 2.5 0 0 1 2.5 2.5v6.5a2.5 2.5 0 0 1-2.5 2.5h-6.5a2.5 2.5 0 0 1-2.5-2.5v-6.5a2.5 2.5 0 0 1 2.5-2.5z';
const diamond = 'M8 1.9 14.1 8 8 14.1 1.9 8z';
const hexagon = 'M8 1.75 13.5 4.9v6.2L8 14.25 2.5 11.1V4.9z';
const triangle = 'M4.5 3.2v9.6L12.5 8z';
const question = (
  <>
    <path d="M6.3 6.5a1.75 1.75 0 1 1 2.5 1.6c-.55.27-.8.55-.8 1.1" />
    <circle cx="8" cy="11.3" r=".9" {...full} />
  </>
);

export const drawings: Readonly<Record<string, ReactNode>> = {
  // worker
  'worker.idle': <circle cx="8" cy="8" r="5.25" />,
  'worker.ready': <><circle cx="8" cy="8" r="5.25" /><path d="M8 2.75a5.25 5.25 0 0 0 0 10.5z" {...full} /></>,
  'worker.working': <circle cx="8" cy="8" r="5.75" {...full} />,
  'worker.done': <path d="M2.8 8.8 6.2 12.2 13.2 4.4" strokeWidth="2" />,
  'worker.stuck': <><path d="M8 2.4v7" strokeWidth="2.6" /><circle cx="8" cy="13.2" r="1.5" {...full} /></>,
  // task
  'task.INBOX': <path d={square} strokeDasharray="2.1 2.1" />,
  'task.ASSIGNED': <><path d={square} /><circle cx="8" cy="8" r="1.75" {...full} /></>,
  'task.IN_PROGRESS': <><path d={square} /><path d="M2.25 8h11.5v3.25a2.5 2.5 0 0 1-2.5 2.5h-6.5a2.5 2.5 0 0 1-2.5-2.5z" {...full} /></>,
  'task.REVIEW': <><path d={square} /><rect x="5" y="5" width="6" height="6" rx="1" {...full} /></>,
  'task.NEEDS_APPROVAL': <><path d={square} />{question}</>,
  'task.BLOCKED': <path fillRule="evenodd" d="M4.25 1.5h7.5a2.75 2.75 0 0 1 2.75 2.75v7.5a2.75 2.75 0 0 1-2.75 2.75h-7.5A2.75 2.75 0 0 1 1.5 11.75v-7.5A2.75 2.75 0 0 1 4.25 1.5zM4.5 7v2h7V7z" {...full} />,
  'task.DONE': <><rect x="1.5" y="1.5" width="13" height="13" rx="2.75" {...full} /><path d="M4.6 8.4 7 10.8 11.5 5.6" className="cutout" strokeWidth="1.8" /></>,
  'task.CANCELED': <><path d={square} /><path d="m5.6 5.6 4.8 4.8M10.4 5.6l-4.8 4.8" /></>,
  // run
  'run.idle': <path d="M4 8h8" />,
  'run.starting': <path d={triangle} />,
  'run.running': <path d="M4.5 2.8v10.4L13 8z" fill="currentColor" />,
  'run.paused': <path d="M5 3.2v9.6M11 3.2v9.6" strokeWidth="2.2" />,
  'run.error': <><path d={triangle} /><path d="M2.5 13.5 13.5 2.5" /></>,
  'run.completed': <><path d="M3.2 3.2v9.6L10 8z" fill="currentColor" /><path d="M12.8 3.2v9.6" strokeWidth="2" /></>,
  'run.suspended': <path d="M5 3.2v9.6M11 3.2v9.6" strokeWidth="2.2" strokeDasharray=".1 3.2" />,
  // turn
  'turn.OFFLINE': <path d={diamond} strokeDasharray="2 2.2" />,
  'turn.IDLE': <path d={diamond} />,
  'turn.QUEUED': <><path d={diamond} /><circle cx="8" cy="8" r="1.75" {...full} /></>,
  'turn.ACTIVE': <path d={diamond} fill="currentColor" />,
  'turn.WAITING': <><path d={diamond} /><path d="M8 1.9v12.2L1.9 8z" {...full} /></>,
  // architect
  'architect.WAITING': <path d={hexagon} />,
  'architect.REQUEST': <><path d={hexagon} /><circle cx="8" cy="8" r="2.25" {...full} /></>,
  'architect.ESCALATED': <><path d={hexagon} />{question}</>,
  'architect.DONE': <><path d={hexagon} /><path d="m5.4 8.2 1.9 1.9 3.4-3.9" /></>,
  // receipt
  'receipt.queued': <circle cx="8" cy="8" r="2.5" strokeDasharray="1.6 1.5" />,
  'receipt.delivered': <path d="m3.5 8.4 3 3 6-6.6" />,
  'receipt.consumed': <path d="m1.5 8.4 3 3 6-6.6M7.6 11.1l.4.3 6-6.6" />,
  // connection
  'connection.live': <><circle cx="8" cy="8" r="3" {...full} /><circle cx="8" cy="8" r="6" strokeWidth="1.25" opacity=".45" /></>,
  'connection.reconnecting': <><path d="M13.2 8a5.2 5.2 0 0 1-9.3 3.2M2.8 8a5.2 5.2 0 0 1 9.3-3.2" /><path d="M12.4 1.9v3.2H9.2M3.6 14.1v-3.2h3.2" /></>,
  'connection.stale': <><circle cx="8" cy="8" r="5.5" /><path d="M4.2 11.8 11.8 4.2" /></>,
  'connection.past': <><path d="M2.6 6.2A5.75 5.75 0 1 1 2.3 9M2.2 3.2v3.2h3.2" /><path d="M8 5v3.2l2.2 1.4" /></>,
  // signs
  mark: <path d="M2.5 8.2 8 3.2l5.5 5M2.5 13 8 8l5.5 5" />,
  search: <><circle cx="7" cy="7" r="4.25" /><path d="m10.3 10.3 3.2 3.2" /></>,
  down: <path d="m4.5 6.2 3.5 3.6 3.5-3.6" />,
  right: <path d="m6.2 4.5 3.6 3.5-3.6 3.5" />,
  left: <path d="M9.8 4.5 6.2 8l3.6 3.5" />,
  up: <path d="m4.5 9.8 3.5-3.6 3.5 3.6" />,
  arrow: <path d="M3 8h9.5M9 4.5 12.5 8 9 11.5" />,
  back: <path d="M13 8H3.5M7 4.5 3.5 8 7 11.5" />,
  chain: <path d="M6.8 9.2 9.2 6.8M7.2 4.9l1.5-1.5a2.75 2.75 0 0 1 3.9 3.9l-1.5 1.5M8.8 11.1l-1.5 1.5a2.75 2.75 0 0 1-3.9-3.9l1.5-1.5" />,
  dead: <path d="m7.2 4.9 1.5-1.5a2.75 2.75 0 0 1 3.9 3.9l-1.5 1.5M8.8 11.1l-1.5 1.5a2.75 2.75 0 0 1-3.9-3.9l1.5-1.5M2.5 2.5l11 11" />,
  clock: <><circle cx="8" cy="8" r="5.5" /><path d="M8 5v3.2l2.2 1.3" /></>,
  more: <><circle cx="3.5" cy="8" r="1.1" {...full} /><circle cx="8" cy="8" r="1.1" {...full} /><circle cx="12.5" cy="8" r="1.1" {...full} /></>,
  plus: <path d="M8 3.5v9M3.5 8h9" />,
  x: <path d="m4.5 4.5 7 7M11.5 4.5l-7 7" />,
  check: <path d="m3.2 8.6 3.2 3.2 6.4-7.2" />,
  talk: <path d="M2.5 4.5a1.5 1.5 0 0 1 1.5-1.5h8a1.5 1.5 0 0 1 1.5 1.5v5A1.5 1.5 0 0 1 12 11H7.5L4.8 13.3V11H4a1.5 1.5 0 0 1-1.5-1.5z" />,
  copy: <><rect x="5.5" y="5.5" width="8" height="8" rx="1.5" /><path d="M10.5 5.5v-1.5A1.5 1.5 0 0 0 9 2.5H4A1.5 1.5 0 0 0 2.5 4v5A1.5 1.5 0 0 0 4 10.5h1.5" /></>,
  cap: <path d="M3 13V7.5M6.3 13V5M9.7 13V7.5M13 13V3M2 13.5h12" />,
  pen: <path d="M10.6 3.2 12.8 5.4 5.6 12.6 2.9 13.1 3.4 10.4z" />,
  inbox: <path d="M2.5 9.5 4.2 3.5h7.6l1.7 6v3a1 1 0 0 1-1 1h-9a1 1 0 0 1-1-1zM2.5 9.5H6a2 2 0 0 0 4 0h3.5" />,
  board: <path d="M3 3v10M8 3v7M13 3v4" />,
  fleet: <><circle cx="4.5" cy="5" r="2" /><circle cx="11.5" cy="5" r="2" {...full} /><circle cx="4.5" cy="11.5" r="2" {...full} /><circle cx="11.5" cy="11.5" r="2" /></>,
  queue: <path d="M3 4h10M3 8h7M3 12h4" />,
  menu: <path d="M3 4.5h10M3 8h10M3 11.5h10" />,
  moon: <path d="M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z" />,
};

/** What stands for a state that this page has no drawing of: the plain shape of its machine. */
export const shapes: Readonly<Record<string, ReactNode>> = {
  worker: <circle cx="8" cy="8" r="5.25" />,
  task: <path d={square} />,
  run: <path d={triangle} />,
  turn: <path d={diamond} />,
  architect: <path d={hexagon} />,
};
