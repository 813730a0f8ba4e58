/** Reads server-sent events from a fetch: EventSource cannot send the page key. The format is that of the HTML standard. */

export interface ServerEvent {
  event: string;
  data: string;
  id: string;
}

/** Takes the stream in pieces of any size, and returns the events that each piece completes. */
export class SseParser {
  private rest = '';
  private data: string[] = [];
  private event = '';
  private id = '';
  private begun = false;

  push(chunk: string): ServerEvent[] {
    let text = this.rest + chunk;
    if (!this.begun && text !== '') {
      this.begun = true;
      if (text.startsWith('\ufeff')) text = text.slice(1);
    }
    const events: ServerEvent[] = [];
    let start = 0;
    for (;;) {
      const end = lineEnd(text, start);
      // A CR at the end may be the first half of CRLF: its line is taken with the next piece.
      if (end === -1 || (text[end] === '\r' && end === text.length - 1)) break;
      const complete = this.line(text.slice(start, end));
      if (complete) events.push(complete);
      start = end + (text[end] === '\r' && text[end + 1] === '\n' ? 2 : 1);
    }
    this.rest = text.slice(start);
    return events;
  }

  private line(line: string): ServerEvent | null {
    if (line === '') return this.dispatch();
    const colon = line.indexOf(':');
    if (colon === 0) return null;
    const field = colon === -1 ? line : line.slice(0, colon);
    let value = colon === -1 ? '' : line.slice(colon + 1);
    if (value.startsWith(' ')) value = value.slice(1);
    if (field === 'data') this.data.push(value);
    else if (field === 'event') this.event = value;
    else if (field === 'id' && !value.includes('\0')) this.id = value;
    return null;
  }

  private dispatch(): ServerEvent | null {
    const complete = this.data.length > 0 ? { event: this.event || 'message', data: this.data.join('\n'), id: this.id } : null;
    this.data = [];
    this.event = '';
    return complete;
  }
}

function lineEnd(text: string, from: number): number {
  for (let index = from; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === 10 || code === 13) return index;
  }
  return -1;
}

/** Calls `onEvent` for each event until the stream ends, and `onBytes` for every piece that arrives, also a comment. */
export async function readEvents(
  body: ReadableStream<Uint8Array>,
  onEvent: (event: ServerEvent) => void,
  onBytes: () => void,
): Promise<void> {
  const parser = new SseParser();
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    onBytes();
    for (const event of parser.push(decoder.decode(value, { stream: true }))) onEvent(event);
  }
}
