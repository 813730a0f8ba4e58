import { expect, test } from 'vitest';
import { SseParser, readEvents, type ServerEvent } from '../src/api/sse';

/** The same stream, whatever the pieces in which it arrives. */
function parse(...pieces: string[]): string[] {
  const parser = new SseParser();
  return pieces.flatMap((piece) => parser.push(piece)).map((event) => `${event.id}|${event.event}|${event.data}`);
}

test('an event is complete at its empty line, not before', () => {
  expect(parse('event: view\ndata: {"seq":1}\n')).toEqual([]);
  expect(parse('event: view\ndata: {"seq":1}\n\n')).toEqual(['|view|{"seq":1}']);
});

test('every way to cut a stream into two pieces gives the same events', () => {
  const stream = 'id: 7\r\nevent: change\r\ndata: a\r\ndata: b\r\n\r\n: still here\r\n\r\ndata: ü\r\n\r\n';
  for (let cut = 0; cut <= stream.length; cut += 1) {
    expect(parse(stream.slice(0, cut), stream.slice(cut)), `cut at ${cut}`).toEqual(['7|change|a\nb', '7|message|ü']);
  }
});

test('lines end with LF, CRLF or CR', () => {
  for (const end of ['\n', '\r\n', '\r']) {
    // After a CR at the very end the parser waits for a LF that may follow.
    expect(parse(['event: view', 'data: x', '', ''].join(end), 'data')).toEqual(['|view|x']);
  }
});

test('several data lines are joined by line feeds, and an empty one counts', () => {
  expect(parse('data: one\ndata\ndata: two\n\n')).toEqual(['|message|one\n\ntwo']);
});

test('only one space after the colon is removed', () => {
  expect(parse('data:  two\ndata:none\n\n')).toEqual(['|message| two\nnone']);
});

test('comments, unknown fields and events without data are skipped', () => {
  expect(parse(': heartbeat\n\nretry: 10\nevent: nothing\n\ndata: x\n\n')).toEqual(['|message|x']);
});

test('a byte order mark at the start is no part of the first field', () => {
  expect(parse('\ufeffdata: x\n\n')).toEqual(['|message|x']);
});

test('a character whose bytes arrive apart is read whole, and every piece is reported', async () => {
  const bytes = new TextEncoder().encode('data: 字\n\n');
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const byte of bytes) controller.enqueue(new Uint8Array([byte]));
      controller.close();
    },
  });
  const events: ServerEvent[] = [];
  let pieces = 0;
  await readEvents(body, (event) => events.push(event), () => { pieces += 1; });
  expect(events.map((event) => event.data)).toEqual(['字']);
  expect(pieces).toBe(bytes.length);
});
