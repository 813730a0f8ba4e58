/** Live, reconnecting or stale: said at every moment, in the same place, by shape and word. */
import { useEffect, useRef } from 'react';
import { Glyph } from '../parts/Glyph';
import { clockTime, longAge } from '../parts/time';
import { useRealClockText } from '../store/clock';
import { nextTryIn, type Connection, type Phase } from '../store/connection';
import { checkNow } from '../store/driver';
import { useConnection } from '../store/store';
import { announce } from './announce';

export function ConnectionSign() {
  const connection = useConnection();
  useRootAttribute(connection.phase);
  useAnnouncement(connection);
  switch (connection.phase) {
    case 'opening':
      return <span className="live" data-is="opening"><Glyph name="connection.reconnecting" />Connecting</span>;
    case 'live':
      return (
        <span className="live" data-is="live">
          <Glyph name="connection.live" />Live <span className="seq small">seq {connection.seq?.toLocaleString('en')}</span>
        </span>
      );
    case 'reconnecting':
      return <Reconnecting connection={connection} />;
    case 'stale':
      return <Stale connection={connection} />;
    case 'signed-out':
      return <span className="live" data-is="signed-out"><Glyph name="connection.stale" />Signed out</span>;
  }
}

function Reconnecting({ connection }: { connection: Connection }) {
  const next = useNextTry(connection);
  return (
    <button type="button" className="live" data-is="reconnecting" onClick={checkNow} title={`${connection.reason}. Click to try now.`}>
      <Glyph name="connection.reconnecting" />
      <span className="wide-only">Reconnecting, {next}</span>
      <span className="narrow-only">{capital(next)}</span>
    </button>
  );
}

function Stale({ connection }: { connection: Connection }) {
  const since = connection.lastByteAt ?? Date.now();
  const age = useRealClockText((now) => longAge(now - since));
  const next = useNextTry(connection);
  return (
    <button type="button" className="live" data-is="stale" onClick={checkNow} title={`${connection.reason}. Click to try now.`}>
      <Glyph name="connection.stale" />
      <span>Stale since {clockTime(since)}</span>
      <span className="wide-only light">{age}, {next}</span>
    </button>
  );
}

function useNextTry(connection: Connection): string {
  return useRealClockText((now) => {
    const seconds = nextTryIn(connection, now);
    return seconds === null ? 'trying now' : `next try in ${seconds} s`;
  });
}

/** The style reads the state of the connection from <html>. */
function useRootAttribute(phase: Phase): void {
  useEffect(() => {
    const { dataset } = document.documentElement;
    if (phase === 'reconnecting' || phase === 'stale') dataset['live'] = phase;
    else delete dataset['live'];
  }, [phase]);
}

/** A change is said once; the countdown is not. */
function useAnnouncement(connection: Connection): void {
  const before = useRef<Phase>(connection.phase);
  const { phase } = connection;
  useEffect(() => {
    if (before.current === phase) return;
    if (phase === 'live' && before.current !== 'opening') announce('Live again.');
    if (phase === 'reconnecting') announce('Reconnecting. Actions are off.');
    if (phase === 'stale') announce('The data is stale. Actions are off until the page is live again.');
    if (phase === 'signed-out') announce('You are signed out.');
    before.current = phase;
  }, [phase]);
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
