/** Sends a decision. It arrives also if the page is closed meanwhile, which the client of other requests does not need. */
import { keyHeader } from '../../api/session';
import type { Problem } from '../../api/client';
import type { Sending } from './decisions';

/** A browser refuses to outlive the page with a body that is larger than 64 kB. */
const KEPT_ALIVE_MAX = 60_000;

/** Null: the server took it. Else the words of the refusal. */
export async function deliver({ base, method, path, body }: Sending): Promise<string | null> {
  const text = JSON.stringify(body);
  try {
    const answer = await fetch(`${base}/api/v1${path}`, {
      method: method.toUpperCase(),
      headers: { accept: 'application/json', 'content-type': 'application/json', ...keyHeader() },
      body: text,
      keepalive: text.length < KEPT_ALIVE_MAX,
      cache: 'no-store',
    });
    if (answer.ok) return null;
    const problem = (await answer.json().catch(() => null)) as Partial<Problem> | null;
    return [problem?.detail ?? `The server answered ${answer.status}`, problem?.hint].filter(Boolean).join('. ');
  } catch (error) {
    // Whether it arrived is not known: the row that still waits, or is gone, says it.
    return `No answer came (${error instanceof Error ? error.message : String(error)}). Look whether it still waits.`;
  }
}
