/** One line of a file as text: words that changed are marked, tabs are drawn, control characters stand as their code. */
import { memo, useState, type ReactNode } from 'react';
import { Plain } from '../../../parts/plain';
import type { DiffLine } from './parse';
import { markDifferences, type Piece } from './pairs';

/** A longer line is folded: thousands of wrapped rows of one line would push everything else away. */
const SHOWN_MAX = 2000;

interface Props {
  line: DiffLine;
  showCr: boolean;
}

export const Code = memo(function Code({ line, showCr }: Props) {
  const [whole, setWhole] = useState(false);
  const long = line.text.length > SHOWN_MAX && !whole;
  const text = long ? line.text.slice(0, SHOWN_MAX) : line.text;
  const pieces: Piece[] = !long && line.pair !== undefined ? markDifferences(text, line.pair) : [{ text, marked: false }];
  return (
    <>
      {pieces.map((piece, index) => (piece.marked ? <mark key={index}>{tabbed(piece.text)}</mark> : <span key={index}>{tabbed(piece.text)}</span>))}
      {long && (
        <button type="button" className="more" onClick={() => setWhole(true)}>
          {(line.text.length - SHOWN_MAX).toLocaleString('en')} more characters
        </button>
      )}
      {line.cr && showCr && <span className="control" title="This line ends with CR LF, others do not">CR</span>}
      {line.noEnd && <span className="control">no line end</span>}
    </>
  );
});

function tabbed(text: string): ReactNode {
  if (!text.includes('\t')) return <Plain text={text} />;
  return text.split('\t').map((part, index) => (
    <span key={index}>{index > 0 && <span className="tab">{'\t'}</span>}{part !== '' && <Plain text={part} />}</span>
  ));
}
