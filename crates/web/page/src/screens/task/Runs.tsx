/** The runs of a task. The one at work stands first and open; the past ones are folded. */
import { Glyph } from '../../parts/Glyph';
import { Plain } from '../../parts/plain';
import type { TaskData } from './data';
import { Receipt } from './diff/Remarks';
import type { Round } from './talk';
import type { Run } from './types';
import { count, holderName, spendWords } from './words';

export function Runs({ data }: { data: TaskData }) {
  const runs = data.runs.value?.items ?? [];
  if (runs.length === 0) return null;
  // The states that a run rests in are told by its meta, not by their names.
  const busy = (run: Run) => run.meta.hasActiveTask;
  const ordered = [...runs.filter(busy), ...runs.filter((run) => !busy(run)).reverse()];
  return (
    <section className="sect">
      <h2 className="head">Runs<span className="push faint">{runs.length}{runs.some(busy) ? '' : ', no one at work'}</span></h2>
      <ul className="runs">
        {ordered.map((run, index) => <RunLine key={run.id} run={run} open={index === 0} rounds={data.talk.rounds.filter((round) => round.run === run.id)} />)}
      </ul>
    </section>
  );
}

function RunLine({ run, open, rounds }: { run: Run; open: boolean; rounds: readonly Round[] }) {
  const line = (
    <>
      <Glyph name={`run.${run.suspended ? 'suspended' : run.state}`} size={14} />
      <b>{run.id}</b> <span className="dim cut">{run.suspended ? 'suspended' : run.state}{run.pauseReason && `, ${run.pauseReason.replaceAll('_', ' ')}`}</span>
      <span className="push faint nowrap">{run.currentTurn} of {run.maxTurns} turns</span>
    </>
  );
  const more = (
    <>
      <div className="dim"><Plain text={holderName(run.holder)} />{holderName(run.holder) !== run.agent && <>, <Plain text={run.agent} /></>}, {count(run.toolCalls, 'call')}, {spendWords(run.cost)}</div>
      {run.lastError && <div className="bad failure"><b>{run.lastError.code}</b> <Plain text={run.lastError.message} /><span className="faint"> {run.lastError.recoverable ? 'It is tried again.' : 'It is not tried again.'}</span></div>}
      {run.question && <div className="you"><Plain text={run.question} /></div>}
      {rounds.map((round) => <div key={round.number} className="run-round">round {round.number}, {count(round.comments.length, 'comment')} <Receipt round={round} /></div>)}
    </>
  );
  if (open) return <li><div className="l1">{line}</div>{more}</li>;
  return <li><details><summary className="l1">{line}</summary>{more}</details></li>;
}
