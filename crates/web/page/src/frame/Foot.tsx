/** Left: facts of the fleet, or the mode that the page is in. Right: the keys of this view. */
import { Glyph } from '../parts/Glyph';
import { Keys } from '../parts/KeyCap';
import { Meter } from '../parts/Meter';
import { Plain } from '../parts/plain';
import { clockTime, longAge } from '../parts/time';
import { useRealClockText } from '../store/clock';
import type { Connection } from '../store/connection';
import { useConnection, useFacts, useTerms } from '../store/store';
import { useMode } from './mode';

export function Foot({ view }: { view: string }) {
  return (
    <footer className="foot">
      <FootLeft />
      <FootKeys view={view} />
    </footer>
  );
}

function FootLeft() {
  const mode = useMode();
  const connection = useConnection();
  if (connection.phase === 'reconnecting' || connection.phase === 'stale') return <NotLive connection={connection} />;
  if (mode) return <span className="facts">{mode}</span>;
  return <Facts />;
}

function NotLive({ connection }: { connection: Connection }) {
  const at = connection.lastByteAt;
  const age = useRealClockText((now) => (at === null ? '' : longAge(now - at)));
  if (at === null || connection.seq === null) return <span className="facts">no data has arrived yet</span>;
  if (connection.phase === 'stale') {
    return <span className="facts">what you see is {age} old; moving, deciding and sending are off until the page is live again</span>;
  }
  return <span className="facts">last record {connection.seq.toLocaleString('en')} at {clockTime(at)}, {age} ago; goes on from there without a reload</span>;
}

function Facts() {
  const facts = useFacts();
  if (!facts) return <span className="facts" />;
  const { money } = facts;
  return (
    <span className="facts">
      <span className="state"><Glyph name={facts.fleet.glyph} size={12} /><Plain text={facts.fleet.text} /></span>
      <span className="state">
        <Glyph name={facts.main.glyph} size={12} />{facts.main.text} {facts.main.commit && <span className="mono">{facts.main.commit}</span>}
      </span>
      {money && (
        <span className="money">
          {money.text} <Meter label="spent today" spent={money.spent} reserved={money.reserved} cap={money.cap} />
          {money.cap !== null && ` of $${money.cap}`}
        </span>
      )}
      <span className="faint cut machine">{facts.machine}</span>
    </span>
  );
}

/** While the page is not live, its own actions are off: only these two are shown. */
const NOT_LIVE = ['connection.check', 'help.open'];

function FootKeys({ view }: { view: string }) {
  const { phase } = useConnection();
  const live = phase !== 'reconnecting' && phase !== 'stale';
  const keys = useTerms()?.keys.filter((row) =>
    live ? row.foot && (row.views.length === 0 || row.views.includes(view)) : NOT_LIVE.includes(row.action)) ?? [];
  return (
    <span className="keys">
      {keys.map((row) => <span key={row.action}><Keys keys={row.keys[0] ?? ''} />{row.words}</span>)}
    </span>
  );
}
