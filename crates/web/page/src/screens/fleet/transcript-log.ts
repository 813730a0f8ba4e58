/**
 * The transcript of one worker as it is read: first its end, then what follows by waiting for it, and what is older once somebody
 * wants it. It is read again only after an answer: a wait that the server holds open is not a timer.
 */
import type { Problem } from '../../api/client';
import { Fold, type Entry, type LogRow } from './fold';
import { entriesCame, noLiveText, openedWith, pieceCame, shownText, type LiveText } from './live-text';
import { ask } from './requests';
import type { StreamPlace } from './run-stream';

/** Entries in a request: the most that the server gives. */
const PAGE = 1000;

export type Reading = 'first' | 'following' | 'resting' | 'off';

export class TranscriptLog {
  private entries: Entry[] = [];
  private fold: Fold;
  private next: string | null = null;
  private live: LiveText = noLiveText;
  private readonly listeners = new Set<() => void>();
  private place: StreamPlace | null = null;
  private wake: (() => void) | null = null;
  private woken = false;

  version = 0;
  reading: Reading = 'first';
  problem: Problem | null = null;
  /** Whether there is something before the first row. */
  earlier: 'unknown' | 'there' | 'reading' | 'none' = 'unknown';
  earlierCount = 0;

  constructor(readonly worker: string) {
    this.fold = new Fold(worker);
  }

  get rows(): readonly LogRow[] {
    return this.fold.rows;
  }

  get liveText(): string {
    return shownText(this.live);
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  getVersion = (): number => this.version;

  /** Something happened to the worker: one that rested may have gone on. */
  nudge(): void {
    this.woken = true;
    this.wake?.();
  }

  /** Reads until the signal ends it. */
  async follow(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.wake?.());
    while (!signal.aborted) {
      this.woken = false;
      const wait = this.next !== null;
      const answer = await ask('get', '/workers/{worker}/transcript', {
        path: { worker: this.worker },
        query: { limit: PAGE, ...(this.next === null ? {} : { after: this.next }), ...(wait ? { wait: true } : {}) },
        signal,
      });
      if (signal.aborted) break;
      if (!answer.ok) {
        this.problem = answer.problem;
        this.set('off');
        await this.sleep();
        continue;
      }
      this.problem = null;
      const { items, next, more, resting } = answer.value;
      const first = this.next === null;
      // A worker that has said nothing yet: the next request begins at the beginning.
      this.next = next ?? '0';
      if (first) this.earlier = items.length > 0 && (items[0]?.cursor ?? 1) > 1 ? 'there' : 'none';
      this.append(items, resting ? 'resting' : 'following');
      if (resting && items.length === 0 && !more && !this.woken) await this.sleep();
    }
    this.reading = this.reading === 'first' ? 'first' : 'off';
  }

  private async sleep(): Promise<void> {
    if (this.woken) return;
    await new Promise<void>((resolve) => { this.wake = resolve; });
    this.wake = null;
  }

  private append(items: readonly Entry[], reading: Reading): void {
    if (items.length === 0) return this.set(reading);
    // A second reader may have been faster: what is there is not put twice.
    const last = this.entries[this.entries.length - 1]?.cursor ?? 0;
    const fresh = items.filter((item) => item.cursor > last);
    for (const item of fresh) this.entries.push(item);
    this.fold.push(fresh);
    this.live = last === 0 ? openedWith(this.live, fresh[fresh.length - 1]) : entriesCame(this.live, fresh);
    this.reading = reading;
    this.changed();
  }

  /** Everything before the first row, from the beginning: the interface has no way backwards. */
  async readEarlier(signal: AbortSignal): Promise<void> {
    const until = this.entries[0]?.cursor;
    if (this.earlier !== 'there' || until === undefined) return;
    this.earlier = 'reading';
    this.changed();
    const found: Entry[] = [];
    let after = '0';
    for (;;) {
      const answer = await ask('get', '/workers/{worker}/transcript', { path: { worker: this.worker }, query: { after, limit: PAGE }, signal });
      if (signal.aborted || !answer.ok) {
        this.earlier = 'there';
        return this.changed();
      }
      const fresh = answer.value.items.filter((item) => item.cursor < until);
      for (const item of fresh) found.push(item);
      this.earlierCount = found.length;
      const end = fresh.length < answer.value.items.length || !answer.value.more;
      after = answer.value.next ?? after;
      if (end) break;
      this.changed();
    }
    this.entries = found.concat(this.entries);
    this.fold = new Fold(this.worker);
    this.fold.push(this.entries);
    this.earlier = 'none';
    this.changed();
  }

  pieceCame(text: string): void {
    this.live = pieceCame(this.live, text);
    this.changed();
  }

  /** Where the stream of the run is read on; a new run begins now, and what the old one left unsaid is gone. */
  placeIn(run: string): StreamPlace {
    if (this.place?.run !== run) {
      this.place = { run, offset: 'now' };
      this.live = noLiveText;
      this.changed();
    }
    return this.place;
  }

  private set(reading: Reading): void {
    if (this.reading === reading && this.problem === null) return;
    this.reading = reading;
    this.changed();
  }

  private changed(): void {
    this.version += 1;
    for (const listener of this.listeners) listener();
  }
}
