/** History: compact, as a timeline, or every record; failures alone if wanted. */
import { useState } from 'react';
import { Button } from '../../parts/Button';
import { EmptyState } from '../../parts/EmptyState';
import { Glyph } from '../../parts/Glyph';
import { Plain } from '../../parts/plain';
import { longAge } from '../../parts/time';
import { VirtualList } from '../../parts/VirtualList';
import { askAll, part } from './ask';
import { foldStory, isFailure, type StoryLine } from './history-fold';
import { useLoaded } from './load';
import type { LogRecord, Told } from './types';
import { count, moment } from './words';

const MODES = [['compact', 'Compact'], ['timeline', 'Timeline'], ['full', 'Full']] as const;
type Mode = (typeof MODES)[number][0];
const TONES: Readonly<Record<Told['tone'], string>> = { plain: 'faint', good: 'ok', warning: 'warn', you: 'you', error: 'bad' };
const GLYPHS: Readonly<Record<Told['tone'], string>> = { plain: 'right', good: 'check', warning: 'worker.stuck', you: 'pen', error: 'x' };

export function HistoryTab({ id, seq }: { id: string; seq: number }) {
  const [mode, setMode] = useState<Mode>('compact');
  const [failures, setFailures] = useState(false);
  const story = useLoaded(mode !== 'full', seq, (signal) => askAll<Told>(`/tasks/${part(id)}/history?story=true`, signal));
  const records = useLoaded(mode === 'full', seq, (signal) => askAll<LogRecord>(`/tasks/${part(id)}/history?all=true`, signal));
  const shown = mode === 'full' ? records : story;
  const told = (story.value?.items ?? []).filter((each) => !failures || isFailure(each));
  const failed = (story.value?.items ?? []).filter(isFailure).length;
  return (
    <div className="pane-in">
      <div className="tools">
        <span className="seg small" role="radiogroup" aria-label="How much">
          {MODES.map(([each, label]) => <button key={each} type="button" role="radio" aria-checked={mode === each} onClick={() => setMode(each)}>{label}</button>)}
        </span>
        <Button size="dense" look={failures ? 'plain' : 'quiet'} aria-pressed={failures} off={mode === 'full' ? 'Full shows every record of the log.' : null} onClick={() => setFailures(!failures)}>
          Failures only{story.value ? ` (${failed})` : ''}
        </Button>
        {shown.value?.cut && <span className="faint small">Only the first {count(shown.value.items.length, 'entry', 'entries')} are shown.</span>}
      </div>
      {shown.problem && shown.problem.status !== 0 && <p className="sect bad"><Plain text={shown.problem.detail} /></p>}
      {mode === 'full' && <Records records={records.value?.items ?? []} />}
      {mode === 'timeline' && <Timeline items={told} />}
      {mode === 'compact' && <Compact lines={foldStory(told)} />}
      {mode !== 'full' && story.value && told.length === 0 && <EmptyState glyph="check" title={failures ? 'Nothing failed' : 'Nothing happened yet'} />}
    </div>
  );
}

function Compact({ lines }: { lines: readonly StoryLine[] }) {
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="History">
      <ol className="story">
        {lines.map((line) => (line.type === 'told' ? <ToldLine key={line.key} told={line.told} /> : (
          <li key={line.key} className="folded">
            <details>
              <summary>{count(line.items.length, 'step')} without anything to note</summary>
              <ol className="story">{line.items.map((told, index) => <ToldLine key={index} told={told} />)}</ol>
            </details>
          </li>
        )))}
      </ol>
    </div>
  );
}

function ToldLine({ told }: { told: Told }) {
  return (
    <li>
      <time className="faint mono" dateTime={told.timestamp}>{moment(told.timestamp)}</time>
      <Glyph name={GLYPHS[told.tone]} size={14} tone={TONES[told.tone]} />
      <span className={told.tone === 'error' ? 'bad' : ''}>{told.tone === 'error' && <span className="hide">failed: </span>}<Plain text={told.text} /></span>
      <span className="faint small cut">{told.run && <Plain text={told.run} />}</span>
    </li>
  );
}

/** An entry that comes later than this after the one before says how much later. */
const GAP_MS = 30_000;

function Timeline({ items }: { items: readonly Told[] }) {
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Timeline">
      <ol className="timeline">
        {items.map((told, index) => {
          const before = items[index - 1];
          const gap = before ? Date.parse(told.timestamp) - Date.parse(before.timestamp) : 0;
          return (
            <li key={index} className={TONES[told.tone]}>
              <div className="entry">
                <Glyph name={GLYPHS[told.tone]} size={14} />
                <span className="ink"><Plain text={told.text} /></span>
                <span className="small faint"><time dateTime={told.timestamp}>{moment(told.timestamp)}</time>{gap > GAP_MS && `, ${longAge(gap)} later`}, <Plain text={told.actor} />{told.run && <>, run <Plain text={told.run} /></>}</span>
              </div>
            </li>
          );
        })}
      </ol>
    </div>
  );
}

function Records({ records }: { records: readonly LogRecord[] }) {
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const byId = new Map(records.map((record) => [String(record.seq), record]));
  const toggle = (seq: number) => setOpen((before) => {
    const next = new Set(before);
    if (!next.delete(seq)) next.add(seq);
    return next;
  });
  return (
    <VirtualList ids={[...byId.keys()]} estimate={28} label="Every record" className="records" render={(id) => {
      const record = byId.get(id);
      if (!record) return null;
      return (
        <div className="record">
          <button type="button" aria-expanded={open.has(record.seq)} onClick={() => toggle(record.seq)}>
            <Glyph name={open.has(record.seq) ? 'down' : 'right'} size={12} tone="faint" />
            <span className="mono faint">{record.seq}</span><time className="mono faint" dateTime={record.at}>{moment(record.at)}</time>
            <span className="mono">{record.kind}</span><span className="faint cut"><Plain text={`${record.stream}, ${record.actor}`} /></span>
          </button>
          {open.has(record.seq) && <pre className="code"><Plain text={JSON.stringify(record.data, null, 2)} /></pre>}
        </div>
      );
    }} />
  );
}
