/** The page key, and the sign-in by a link. The names are those of the server: see docs/server.md, Authentication. */

const STORED = 'adj-page-key';
export const PAGE_KEY_HEADER = 'x-adj-page-key';

/** Null if nobody is signed in, or if the browser lets the page store nothing. */
export function pageKey(): string | null {
  try {
    return localStorage.getItem(STORED);
  } catch {
    return null;
  }
}

export function keyHeader(): Record<string, string> {
  const key = pageKey();
  return key ? { [PAGE_KEY_HEADER]: key } : {};
}

/**
 * Trades the secret of a link for a session. The secret stood behind the `#`, which no server sees: it is sent in a body, once.
 * The answer sets a cookie and brings the page key. Returns null if it worked, else a sentence that says why not.
 */
export async function enter(code: string): Promise<string | null> {
  if (!code) return 'This link has no code. Run `adj url` in the project for a new one.';
  try {
    const answer = await fetch('/session', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...keyHeader() },
      body: JSON.stringify({ code }),
    });
    const result = (await answer.json()) as { pageKey?: string; detail?: string; hint?: string };
    if (answer.ok && result.pageKey) {
      localStorage.setItem(STORED, result.pageKey);
      return null;
    }
    return [result.detail, result.hint].filter(Boolean).join(': ') || `The server answered ${answer.status}.`;
  } catch (error) {
    return `You could not be signed in: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Ends the session on the server, then forgets the key. */
export async function signOut(): Promise<void> {
  try {
    await fetch('/session', { method: 'DELETE', headers: keyHeader() });
  } finally {
    try {
      localStorage.removeItem(STORED);
    } catch {
      // Nothing was stored.
    }
  }
}
