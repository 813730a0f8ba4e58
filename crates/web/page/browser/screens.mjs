// Addresses of all screens with example data. A new screen is added here, so that it is pictured and checked.
export const SCREENS = {
  inbox: '/inbox?fixture',
  'inbox-item': '/inbox/w0?fixture',
  board: '/board?fixture',
  'board-stale': '/board?fixture=stale',
  'board-reconnecting': '/board?fixture=reconnecting',
  fleet: '/fleet?fixture',
  queue: '/queue?fixture',
  task: '/task/ta-8?fixture',
  more: '/more?fixture',
  parts: '/parts?fixture',
  'parts-stale': '/parts?fixture=stale',
  palette: '/board?fixture',
  help: '/board?fixture',
  'signed-out': '/board?fixture=signed-out',
  'first-run': '/board?fixture=first',
};

/** The key that opens what the picture shows. */
export const KEYS = { palette: 'Control+k', help: '?' };
