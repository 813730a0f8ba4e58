/** Where this page is served: `/` for one project, `/p/NAME` if the server has several. Every address is relative to it. */

export function baseOf(pathname: string): string {
  const match = /^\/p\/([^/]+)(?:\/|$)/.exec(pathname);
  return match ? `/p/${match[1]}` : '';
}

/** Without a slash at its end: empty, or `/p/NAME`. */
export const base = typeof location === 'undefined' ? '' : baseOf(location.pathname);
