/** Work that is done one at a time, and once more if it was asked for meanwhile: many changes cost few requests. */
export class Latest {
  private running = false;
  private again = false;
  private readonly abort = new AbortController();

  constructor(private readonly work: (signal: AbortSignal) => Promise<void>) {}

  ask(): void {
    if (this.running) this.again = true;
    else if (!this.abort.signal.aborted) void this.run();
  }

  stop(): void {
    this.abort.abort();
  }

  private async run(): Promise<void> {
    this.running = true;
    do {
      this.again = false;
      await this.work(this.abort.signal);
    } while (this.again && !this.abort.signal.aborted);
    this.running = false;
  }
}
