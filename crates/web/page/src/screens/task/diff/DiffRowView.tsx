/** One row of a diff, without comments. */
import { memo, type MouseEvent } from 'react';
import { Glyph } from '../../../parts/Glyph';
import { Plain, plain } from '../../../parts/plain';
import { Code } from './Code';
import type { DiffFile, DiffLine, Hunk } from './parse';
import { Lines, Path } from './Path';
import type { ViewedState } from './viewed';

const MARKS = { same: '', add: '+', del: '−' } as const;
const SPOKEN = { same: '', add: 'added: ', del: 'removed: ' } as const;

interface LineProps {
  file: DiffFile;
  line: DiffLine;
  /** It belongs to the chosen lines. */
  on: boolean;
  /** Null if comments cannot be kept. */
  onGutter: ((file: DiffFile, line: DiffLine, range: boolean) => void) | null;
  onLine: (file: DiffFile, line: DiffLine) => void;
}

export const LineRow = memo(function LineRow({ file, line, on, onGutter, onLine }: LineProps) {
  const click = () => {
    // A click that ends a selection of text is not meant for the line.
    if (!getSelection()?.toString()) onLine(file, line);
  };
  return (
    <div className={`dl ${line.kind}${on ? ' on' : ''}`} data-line={line.new ?? `old-${line.old}`} data-path={plain(file.path)}>
      {onGutter
        ? <Gutter file={file} line={line} onGutter={onGutter} />
        : <><span className="no">{line.old}</span><span className="no">{line.new}</span></>}
      <span className="mk" aria-hidden="true">{MARKS[line.kind]}</span>
      <span className="tx" dir="ltr" onClick={click}><span className="hide">{SPOKEN[line.kind]}</span><Code line={line} showCr={file.mixedEnds} /></span>
    </div>
  );
});

function Gutter({ file, line, onGutter }: { file: DiffFile; line: DiffLine; onGutter: NonNullable<LineProps['onGutter']> }) {
  return (
    <button type="button" className="gutter" tabIndex={-1} title="Comment on this line; with Shift on all lines up to it"
      onMouseDown={(event: MouseEvent) => event.shiftKey && event.preventDefault()}
      onClick={(event) => onGutter(file, line, event.shiftKey)}>
      <span className="no">{line.old}</span><span className="no">{line.new}</span><span className="hide">comment on this line</span>
    </button>
  );
}

export const HunkRow = memo(function HunkRow({ hunk }: { hunk: Hunk }) {
  return <div className="dl hunk"><span className="no" /><span className="no" /><span className="mk" /><span className="tx">{hunk.head}{hunk.words && <> <Plain text={hunk.words} /></>}</span></div>;
});

interface FileProps {
  file: DiffFile;
  folded: boolean;
  remarks: number;
  viewed: ViewedState;
  onFold: (path: string) => void;
  onViewed: (path: string) => void;
}

const CHANGES: Readonly<Record<DiffFile['change'], string | null>> = { changed: null, added: 'new', removed: 'removed', renamed: 'renamed', copied: 'copied' };

export const FileRow = memo(function FileRow({ file, folded, remarks, viewed, onFold, onViewed }: FileProps) {
  return (
    <header className="diff-file">
      <button type="button" className="fold" aria-expanded={!folded} aria-label={`${folded ? 'Unfold' : 'Fold'} ${plain(file.path)}`} onClick={() => onFold(file.path)}>
        <Glyph name={folded ? 'right' : 'down'} size={14} />
      </button>
      <Path path={file.path} />
      {CHANGES[file.change] && <span className="tag">{CHANGES[file.change]}</span>}
      <Lines added={file.added} removed={file.removed} />
      {folded && remarks > 0 && <span className="state small you"><Glyph name="talk" size={12} />{remarks}<span className="hide"> comments</span></span>}
      {viewed === 'changed' && <span className="tag warn">changed since viewed</span>}
      <label className="viewed push">
        <input type="checkbox" className="hide" checked={viewed === 'viewed'} onChange={() => onViewed(file.path)} aria-label={`Viewed ${plain(file.path)}`} />
        <span className="box" aria-hidden="true" data-checked={viewed === 'viewed'}>{viewed === 'viewed' && <Glyph name="check" size={12} />}</span>
        <span className="words">Viewed</span>
      </label>
    </header>
  );
});
