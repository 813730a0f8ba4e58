/** The field in which a comment is written. Its text is kept by the screen, so that it outlives scrolling and changing tabs. */
import { useEffect, useRef } from 'react';
import { Button } from '../../../parts/Button';
import { lineWords } from '../talk';
import type { Composing } from './composing';

interface Props {
  composing: Composing;
  person: string;
  saving: boolean;
  onText: (text: string) => void;
  onKeep: () => void;
  onClose: () => void;
  /** Esc: the text stays, the keys of the diff work again. */
  onLeave: () => void;
}

export function Composer({ composing, person, saving, onText, onKeep, onClose, onLeave }: Props) {
  const field = useRef<HTMLTextAreaElement>(null);
  const { path, side, line, endLine, text, draft } = composing;
  // A range that grows by Shift and click keeps the focus in the field.
  useEffect(() => { field.current?.focus({ preventScroll: true }); }, [path, side, line, endLine]);
  return (
    <div className="talk draft">
      <article>
        <div className="by">
          <b>{person}</b> {draft ? 'changes a draft' : 'new comment, not kept yet'}
          <span className="push faint">{lineWords(composing)}</span>
        </div>
        <textarea ref={field} className="edit" rows={2} value={text} aria-label={`Comment on ${lineWords(composing)}`} onChange={(event) => onText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Escape' || event.nativeEvent.isComposing) return;
            event.preventDefault();
            event.stopPropagation();
            if (text.trim() === '') onClose();
            else onLeave();
          }} />
        <div className="row">
          <Button size="tiny" action="draft.keep" acts off={saving ? 'It is being kept.' : text.trim() === '' ? 'Write something first.' : null} onClick={onKeep}>Keep draft</Button>
          <Button size="tiny" look="quiet" onClick={onClose}>{draft ? 'Leave as it was' : 'Discard'}</Button>
        </div>
      </article>
    </div>
  );
}
