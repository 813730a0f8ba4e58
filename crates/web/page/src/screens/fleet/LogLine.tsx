/** One row of a transcript. A call is one line; what it gave opens below it, six lines at first. */
import { memo } from 'react';
import { Button } from '../../parts/Button';
import { Glyph } from '../../parts/Glyph';
import { Plain, plain } from '../../parts/plain';
import { clockTime } from '../../parts/time';
import { linesOf, summary, type CallRow, type MessageRow, type Row } from './fold';
import type { Opened } from './Transcript';

const SOME_LINES = 6;

interface Props {
  row: Row;
  /** Undefined: as it is at first. What failed is open. */
  opened: Opened | undefined;
  onOpen: (key: string, opened: Opened) => void;
}

export const LogLine = memo(function LogLine({ row, opened, onOpen }: Props) {
  if (row.kind === 'step') return <div className="step"><Plain text={row.text} /></div>;
  if (row.kind === 'call') return <Call row={row} opened={opened ?? (row.result?.failed || asks(row) ? 'some' : 'closed')} onOpen={onOpen} />;
  if (row.kind === 'message') return <Message row={row} />;
  return (
    <div className={`e note-${row.kind}`}>
      <Time at={row.at} />
      <p className="say">{row.kind === 'question' && <span className="what">asks: </span>}<Plain text={row.text} /></p>
    </div>
  );
});

/** What is being written. */
export function LiveLine({ text }: { text: string }) {
  return <div className="e now"><span className="t">now</span><p className="say"><Plain text={text} /></p></div>;
}

function Time({ at }: { at: number | null }) {
  return <span className="t">{at === null ? '' : clockTime(at)}</span>;
}

const WAITS = { runs: 'running', asks: 'asks you', lost: 'no result' } as const;

/** A person is asked about it: its call is shown whole. */
function asks(row: CallRow): boolean {
  return row.result === null && row.waits === 'asks';
}

function Call({ row, opened, onOpen }: { row: CallRow; opened: Opened; onOpen: Props['onOpen'] }) {
  const { result } = row;
  const lines = result ? linesOf(result.text) : [];
  const long = row.argument.includes('\n') || row.argument.length > 60;
  const foldable = lines.length > 0 || long;
  const isOpen = foldable && opened !== 'closed';
  return (
    <div className="e is-call">
      <Time at={row.at} />
      <div className="fold">
        <button
          type="button"
          className={result?.failed ? 'call err' : asks(row) ? 'call asks' : 'call'}
          aria-expanded={foldable ? isOpen : undefined}
          aria-disabled={foldable ? undefined : true}
          onClick={() => foldable && onOpen(row.key, isOpen ? 'closed' : 'some')}
        >
          <Glyph name={isOpen ? 'down' : 'right'} size={12} tone={foldable ? undefined : 'off'} />
          <b><Plain text={row.tool} /></b>
          <span className="cut" title={isOpen ? undefined : plain(row.argument)}><Plain text={row.argument} /></span>
          <span className="res">{result ? <Plain text={summary(result)} /> : WAITS[row.waits]}</span>
        </button>
        {isOpen && <Output row={row} lines={lines} long={long} all={opened === 'all'} onAll={() => onOpen(row.key, 'all')} />}
      </div>
    </div>
  );
}

function Output({ row, lines, long, all, onAll }: { row: CallRow; lines: string[]; long: boolean; all: boolean; onAll: () => void }) {
  const shown = all ? lines : lines.slice(0, SOME_LINES);
  return (
    <div className="out">
      {long && <pre className="code"><Plain text={row.argument} /></pre>}
      {lines.length > 0 && <pre className="code"><Plain text={shown.join('\n')} /></pre>}
      {shown.length < lines.length && <Button look="quiet" size="tiny" onClick={onAll}>{`all ${lines.length.toLocaleString('en')} lines`}</Button>}
    </div>
  );
}

const RECEIPTS = { queued: '', delivered: 'given to the agent', consumed: 'used' } as const;

function Message({ row }: { row: MessageRow }) {
  const { state, words, at } = row.receipt;
  return (
    <div className="e mine">
      <Time at={row.at} />
      <div>
        <p className="say"><Plain text={`${row.by}: ${row.text}`} /></p>
        <span className={state === 'consumed' ? 'receipt got' : 'receipt'}>
          <Glyph name={`receipt.${state}`} size={14} />
          {[RECEIPTS[state], at !== null && clockTime(at), words].filter(Boolean).join(', ').replace(/^(used|given to the agent), (?=\d)/, '$1 ')}
        </span>
      </div>
    </div>
  );
}
