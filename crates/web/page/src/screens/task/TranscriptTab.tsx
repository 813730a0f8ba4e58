/** Transcript: what agents said and did, each call on one line with its result. It can be exported as text. */
import { memo, useCallback, useMemo, useState } from 'react';
import { Button } from '../../parts/Button';
import { EmptyState } from '../../parts/EmptyState';
import { Glyph } from '../../parts/Glyph';
import { Plain, plain } from '../../parts/plain';
import { clockTime } from '../../parts/time';
import { VirtualList } from '../../parts/VirtualList';
import { foldTranscript, resultLine, transcriptText, type Line } from './transcript-fold';
import { useEntries } from './transcript-data';
import { count } from './words';

export function TranscriptTab({ id, seq }: { id: string; seq: string }) {
  const { entries, problem, resting, whole } = useEntries(id, seq);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const lines = useMemo(() => foldTranscript(entries), [entries]);
  const ids = useMemo(() => lines.map((line) => line.key), [lines]);
  const byKey = useMemo(() => new Map(lines.map((line) => [line.key, line])), [lines]);
  const toggle = useCallback((key: string) => setOpen((before) => {
    const next = new Set(before);
    if (!next.delete(key)) next.add(key);
    return next;
  }), []);
  const download = () => {
    const url = URL.createObjectURL(new Blob([transcriptText(entries, plain)], { type: 'text/plain;charset=utf-8' }));
    const link = document.createElement('a');
    link.href = url;
    link.download = `${id}-transcript.txt`;
    link.click();
    // The browser reads it after the click.
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  };
  return (
    <div className="pane-in">
      <div className="tools">
        <span className="small dim">{count(lines.length, 'line')}{!whole && ', more is being loaded'}{resting ? ', nobody is at work' : ''}</span>
        <Button size="dense" className="push" off={entries.length === 0 ? 'There is nothing to export.' : whole ? null : 'It is still being loaded.'} onClick={download}>Export as text</Button>
      </div>
      {problem && <p className="sect bad"><Plain text={problem} /></p>}
      {whole && lines.length === 0 && !problem && <EmptyState glyph="run.idle" title="No agent has worked on it">What agents say and do stands here.</EmptyState>}
      {lines.length > 0 && <VirtualList ids={ids} estimate={28} label="Transcript" className="transcript" render={(key) => {
        const line = byKey.get(key);
        return line ? <LineView line={line} open={open.has(key)} onToggle={toggle} /> : null;
      }} />}
    </div>
  );
}

interface LineProps {
  line: Line;
  open: boolean;
  onToggle: (key: string) => void;
}

const FAILED = new Set(['failure', 'stop']);

const LineView = memo(function LineView({ line, open, onToggle }: LineProps) {
  const time = <time className="mono faint">{line.at ? clockTime(Date.parse(line.at)) : ''}</time>;
  if (line.type === 'step') return <div className="tr step">{time}<span className="strong"><Plain text={line.text} /></span></div>;
  if (line.type === 'said') {
    const bad = FAILED.has(line.kind);
    return <div className={bad ? 'tr said bad' : 'tr said'}>{time}<span>{line.kind !== 'text' && <><span className="tag">{line.kind}</span> </>}<Plain text={line.text} /></span></div>;
  }
  return (
    <div className="tr call">
      {time}
      <div>
        <button type="button" aria-expanded={open} onClick={() => onToggle(line.key)}>
          <Glyph name={open ? 'down' : 'right'} size={12} tone="faint" />
          <b className="mono"><Plain text={line.tool} /></b>
          <span className="mono cut"><Plain text={line.argument} /></span>
          <span className={line.failed ? 'cut bad' : 'cut faint'}>{line.failed && <Glyph name="x" size={12} />} <Plain text={resultLine(line.result)} /></span>
        </button>
        {open && <pre className="code"><Plain text={`${line.argument}\n\n${line.result ?? 'no result yet'}`} /></pre>}
      </div>
    </div>
  );
});
