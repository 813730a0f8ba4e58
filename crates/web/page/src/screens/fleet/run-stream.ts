/** What an agent writes, piece by piece: the durable stream of its run, from now on. */
import { base } from '../../api/base';
import { keyHeader } from '../../api/session';
import { readEvents } from '../../api/sse';
import { example } from './requests';

interface RunEvent {
  type: string;
  text?: string;
}

interface Control {
  streamNextOffset?: string;
  streamClosed?: boolean;
}

/** Where a reader is: it goes on from there after a break. */
export interface StreamPlace {
  run: string;
  offset: string;
}

/** Calls `onPiece` until the run ends or the signal. A connection that the server ends goes on where it was. */
export async function readPieces(place: StreamPlace, signal: AbortSignal, onPiece: (text: string) => void): Promise<void> {
  const { run } = place;
  if (__FIXTURE__ && example) return run === 'ta-1.1' ? onPiece('All of them pass but one. I look at what it') : undefined;
  let closed = false;
  while (!closed && !signal.aborted) {
    let told = false;
    try {
      const answer = await fetch(`${base}/v1/stream/runs/${encodeURIComponent(run)}?offset=${encodeURIComponent(place.offset)}&live=sse`, {
        headers: { accept: 'text/event-stream', ...keyHeader() }, cache: 'no-store', signal,
      });
      const kind = answer.headers.get('content-type') ?? '';
      if (!answer.ok || !answer.body || !kind.startsWith('text/event-stream')) return;
      await readEvents(answer.body, (event) => {
        const data = parsed(event.data);
        if (Array.isArray(data)) {
          const text = (data as RunEvent[]).filter((each) => each.type === 'stream:token').map((each) => each.text ?? '').join('');
          if (text !== '') onPiece(text);
        } else if (data) {
          const control = data as Control;
          closed ||= control.streamClosed === true;
          if (control.streamNextOffset) {
            told = true;
            place.offset = control.streamNextOffset;
          }
        }
      }, () => undefined);
    } catch {
      // The transcript has the whole text; the caller begins anew when the page is live again.
      return;
    }
    // A server that ends each connection at once is not asked again and again.
    if (!told) return;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
