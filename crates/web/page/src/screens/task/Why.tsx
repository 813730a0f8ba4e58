/** Why a task is where it is: the conditions, those that do not hold first, with what can be done. */
import type { Action } from '../../api/view';
import { Age } from '../../parts/Age';
import { Button } from '../../parts/Button';
import { Glyph } from '../../parts/Glyph';
import { Plain } from '../../parts/plain';
import type { TaskData } from './data';
import type { Guard } from './types';
import { byCode } from './ways';

interface Props {
  data: TaskData;
  choose: (action: Action) => void;
}

export function Why({ data, choose }: Props) {
  const { waiting, row } = data;
  const why = data.why.value;
  const guards = [...(why?.guards ?? [])].sort((a, b) => Number(a.holds) - Number(b.holds));
  return (
    <section className="sect" id="task-why" tabIndex={-1}>
      <h2 className="head">Why it is here</h2>
      <ul className="why">
        {waiting && (
          <li className="you">
            <Glyph name={waiting.glyph} size={14} />
            <span><b><Plain text={waiting.text} /></b>{waiting.since && <>, for <Age since={waiting.since} long /></>}{waiting.who !== 'person' && <>. Decided by: {waiting.who}</>}</span>
          </li>
        )}
        {guards.map((guard, index) => <GuardLine key={index} guard={guard} data={data} choose={choose} yours={Boolean(waiting)} />)}
        {row?.lines.filter((line) => guards.length === 0 && line.text !== waiting?.text).map((line, index) => (
          <li key={`line ${index}`} className={line.tone}><Glyph name={line.glyph} size={14} /><span><Plain text={line.text} /></span></li>
        ))}
        {data.why.problem && data.why.problem.status !== 0 && <li className="bad"><Glyph name="x" size={14} /><span><Plain text={data.why.problem.detail} /></span></li>}
      </ul>
      {waiting?.question && <p className="asked"><Plain text={waiting.question} /></p>}
      {(waiting?.call ?? why?.call) && <pre className="code call"><Plain text={(waiting?.call ?? why?.call)?.text ?? ''} /></pre>}
    </section>
  );
}

function GuardLine({ guard, data, choose, yours }: { guard: Guard; data: TaskData; choose: (action: Action) => void; yours: boolean }) {
  const glyph = guard.holds ? 'check' : yours ? 'right' : 'clock';
  const next = guard.holds ? [] : guard.next ?? [];
  return (
    <li>
      <Glyph name={glyph} size={14} tone={guard.holds ? 'ok' : 'dim'} />
      <div>
        <Plain text={guard.detail} />
        {next.length > 0 && (
          <ul className="nexts">
            {next.map((offered, index) => {
              const action = byCode(data.ways, offered.code);
              // The two answers stand in the head already: here are only their words.
              const button = action && action !== data.ways.yes && action !== data.ways.no;
              return (
                <li key={index}>
                  {button && <Button size="tiny" acts={Boolean(action.request)} off={action.refused} onClick={() => choose(action)}><Plain text={action.label} /></Button>}
                  <span className="faint">{action && !button && <><Plain text={action.label} /> </>}<Plain text={offered.text} /></span>
                </li>
              );
            })}
          </ul>
        )}
        {guard.output && <details className="output"><summary>output</summary><pre className="code"><Plain text={guard.output} /></pre></details>}
      </div>
    </li>
  );
}
