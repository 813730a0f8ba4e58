/** The transcript of the open worker, for as long as it is shown, the page is live and somebody can see it. */
import { useEffect, useMemo, useSyncExternalStore } from 'react';
import { useActionsOn } from '../../store/store';
import { readPieces } from './run-stream';
import { TranscriptLog } from './transcript-log';

function useVisible(): boolean {
  return useSyncExternalStore((listener) => {
    document.addEventListener('visibilitychange', listener);
    return () => document.removeEventListener('visibilitychange', listener);
  }, () => document.visibilityState === 'visible');
}

export function useTranscript(worker: string, run: string | null, seq: number): TranscriptLog {
  const log = useMemo(() => new TranscriptLog(worker), [worker]);
  const live = useActionsOn();
  // A browser opens six connections to a server at most: a page that nobody sees holds none of them open.
  const on = useVisible() && live;
  useSyncExternalStore(log.subscribe, log.getVersion);
  useEffect(() => {
    if (!on) return;
    const abort = new AbortController();
    void log.follow(abort.signal);
    return () => abort.abort();
  }, [log, on]);
  useEffect(() => log.nudge(), [log, seq]);
  useEffect(() => {
    if (!on || run === null) return;
    const abort = new AbortController();
    void readPieces(log.placeIn(run), abort.signal, (text) => log.pieceCame(text));
    return () => abort.abort();
  }, [log, run, on]);
  return log;
}
