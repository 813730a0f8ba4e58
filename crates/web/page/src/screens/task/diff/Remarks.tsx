/** Comments in the line where they belong: drafts, and those of a round with its receipt. */
import { useState } from 'react';
import { Button } from '../../../parts/Button';
import { Glyph } from '../../../parts/Glyph';
import { Plain } from '../../../parts/plain';
import { showToast } from '../../../parts/Toast';
import { clockTime } from '../../../parts/time';
import { keyOf, lineWords, movedWords, type Draft, type Remark, type Round, type Sent, type Talk } from '../talk';

interface Props {
  remarks: readonly Remark[];
  where: string | null;
  talk: Talk;
  onEdit: (draft: Draft) => void;
}

export function Remarks({ remarks, where, talk, onEdit }: Props) {
  return (
    <>
      {remarks.map((remark) => ('draft' in remark
        ? <DraftRemark key={keyOf(remark)} draft={remark.draft} where={where} talk={talk} onEdit={onEdit} />
        : <SentRemark key={keyOf(remark)} sent={remark.sent} round={remark.round} where={where} />))}
    </>
  );
}

function DraftRemark({ draft, where, talk, onEdit }: { draft: Draft; where: string | null; talk: Talk; onEdit: (draft: Draft) => void }) {
  const [busy, setBusy] = useState(false);
  const moved = movedWords(draft.moved);
  const discard = async () => {
    setBusy(true);
    const problem = await talk.discard(draft.id);
    setBusy(false);
    if (problem) showToast({ glyph: 'back', tone: 'bad', title: 'The draft is still there.', text: problem.detail });
  };
  return (
    <div className={moved ? 'talk draft moved' : 'talk draft'}>
      <article>
        <div className="by">
          <b><Plain text={draft.by} /></b> draft, kept on the server
          {moved && <span className="tag">{moved}</span>}
          <span className="push faint">{where ?? lineWords(draft)}</span>
        </div>
        <p><Plain text={draft.text} /></p>
        <div className="row">
          <Button size="tiny" acts onClick={() => onEdit(draft)}>Edit</Button>
          <Button size="tiny" look="quiet" acts off={busy ? 'It is being discarded.' : null} onClick={() => void discard()}>Discard</Button>
        </div>
      </article>
    </div>
  );
}

function SentRemark({ sent, round, where }: { sent: Sent; round: Round; where: string | null }) {
  const moved = movedWords(sent.moved);
  return (
    <div className={moved ? 'talk moved' : 'talk'}>
      <article>
        <div className="by">
          <b><Plain text={round.by} /></b> round {round.number}, {clockTime(Date.parse(round.at)).slice(0, 5)}
          {moved && <span className="tag">{moved}</span>}
          <span className="faint">{where ?? lineWords(sent)}</span>
          <Receipt round={round} />
        </div>
        <p><Plain text={sent.text} /></p>
      </article>
    </div>
  );
}

/** The proof that the agent got it: the server's word, with its glyph. */
export function Receipt({ round }: { round: Round }) {
  const got = round.receipt === 'consumed';
  return (
    <span className={got ? 'push receipt got' : 'push receipt'}>
      <Glyph name={`receipt.${round.receipt}`} size={14} />
      {round.receipt}{round.run && <> in run <Plain text={round.run} /></>}
    </span>
  );
}
