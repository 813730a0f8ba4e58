/** The foot of the diff: the drafts that will be sent as one numbered round. */
import { Button } from '../../parts/Button';
import { Glyph } from '../../parts/Glyph';
import { plain } from '../../parts/plain';
import { lineWords, type Place, type Talk } from './talk';

interface Props {
  talk: Talk;
  cursor: Place | null;
  composing: boolean;
  onComment: () => void;
  onSend: () => void;
}

export function RoundBar({ talk, cursor, composing, onComment, onSend }: Props) {
  const { drafts, rounds } = talk;
  const last = rounds.at(-1);
  if (talk.missing) return null;
  if (drafts.length === 0 && !last && (!cursor || composing)) return null;
  const files = [...new Set(drafts.map((draft) => draft.path))];
  return (
    <div className={cursor && !composing ? 'round' : 'round rests'}>
      {drafts.length > 0 ? (
        <>
          <Glyph name="pen" size={14} tone="you" />
          <span className="cut"><b>Round {talk.nextRound}</b>, {drafts.length} {drafts.length === 1 ? 'draft' : 'drafts'}{' '}
            <span className="dim wide-only">on {files.length === 1 ? plain(files[0] ?? '') : `${files.length} files`}</span>
          </span>
        </>
      ) : last && (
        <>
          <span className={last.receipt === 'consumed' ? 'receipt got' : 'receipt'}><Glyph name={`receipt.${last.receipt}`} size={14} /></span>
          <span className="cut"><b>Round {last.number}</b>, {last.comments.length} {last.comments.length === 1 ? 'comment' : 'comments'} {last.receipt}{last.run && ` in run ${plain(last.run)}`}</span>
        </>
      )}
      <span className="push row">
        {cursor && !composing && <Button size="dense" look="quiet" action="comment" acts onClick={onComment}>Comment on {lineWords(cursor)}</Button>}
        {drafts.length > 0 && <Button size="dense" action="send" acts onClick={onSend}>Send round</Button>}
      </span>
    </div>
  );
}
