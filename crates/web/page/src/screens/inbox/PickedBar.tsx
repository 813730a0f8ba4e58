/** Several at once: exactly the rows that stand here are decided, all or none. */
import { Button } from '../../parts/Button';
import { Glyph } from '../../parts/Glyph';
import { Plain, plain } from '../../parts/plain';
import { together, waysOf } from './rows';
import type { InboxState } from './use-inbox';

export function PickedBar({ inbox }: { inbox: InboxState }) {
  const { picked } = inbox;
  if (picked.length === 0) return null;
  const yes = together(picked, 'yes');
  const no = together(picked, 'no');
  return (
    <section className={inbox.rested ? 'picked-bar rested' : 'picked-bar'} aria-label="Selected rows">
      <header>
        <h2>{picked.length} selected</h2>
        <span className="small faint">these are decided, and nothing else</span>
        <Button look="quiet" size="tiny" className="push" onClick={inbox.clear}>Clear</Button>
      </header>
      <ul>
        {picked.map((row) => (
          <li key={row.id} data-picked={row.id}>
            <Glyph name={row.glyph} size={14} tone="you" />
            <div>
              <p><Plain text={row.text} /></p>
              {row.call && <p className="mono dim"><Plain text={`${row.call.tool} ${JSON.stringify(row.call.input)}`} /></p>}
              {(['yes', 'no'] as const).map((answer) => (
                <p key={answer} className="small dim">On {answer}: <Plain text={waysOf(row.actions)[answer]?.happens.join(' ') ?? 'there is no such answer here.'} /></p>
              ))}
            </div>
            <Button look="quiet" size="tiny" glyph="x" aria-label={`Take out: ${plain(row.text)}`} onClick={() => inbox.pick(row.id)} />
          </li>
        ))}
      </ul>
      <footer>
        <Button acts look="primary" action="approve" off={yes.why} onClick={() => inbox.answer('yes')}>{yes.label}{yes.form && '…'}</Button>
        <Button acts look="no" action="deny" off={no.why} onClick={() => inbox.answer('no')}>{no.label}{no.form && '…'}</Button>
        {(yes.why ?? no.why) && <span className="small dim"><Plain text={yes.why ?? no.why ?? ''} /></span>}
      </footer>
    </section>
  );
}
