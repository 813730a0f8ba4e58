/** The rail of the open worker: four truths, what it waits for, money, what a kill saves, the machine. */
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { WorkerRow } from '../../api/view';
import { Countdown } from '../../parts/Age';
import { Glyph } from '../../parts/Glyph';
import { Meter } from '../../parts/Meter';
import { Plain } from '../../parts/plain';
import { clockTime } from '../../parts/time';
import { useFacts, useRow, useTerms } from '../../store/store';
import { truthsOf, type Truth } from './truths';
import type { Details, Limits } from './use-details';
import { inboxOf, untilOf } from './WorkerList';

interface Props {
  row: WorkerRow;
  details: Details;
  comparable: boolean;
  limits: Limits;
}

export function WorkerRail({ row, details, comparable, limits }: Props) {
  const facts = useFacts();
  const terms = useTerms();
  const taskRow = useRow('tasks', row.task ?? '') ?? null;
  const queueRow = useRow('queue', row.task ?? '') ?? null;
  const { truths, contradictions } = truthsOf({ row, fleetRuns: facts?.running ?? false, fleetWanted: facts?.wanted ?? false, worker: details.worker, run: details.run, task: details.task, taskRow, queueRow, terms, comparable });
  return (
    <>
      <section className="sect truths">
        <h2 className="head">Four truths about {row.name}</h2>
        {contradictions.map((text) => <p key={text} className="contradiction" role="alert"><Plain text={text} /></p>)}
        {truths.map((truth) => <TruthLine key={truth.what} truth={truth} />)}
      </section>
      <Why row={row} details={details} />
      <Budget row={row} details={details} limits={limits} />
      <Kill row={row} />
      <Machine />
    </>
  );
}

function TruthLine({ truth }: { truth: Truth }) {
  const at = truth.at === null ? null : Date.parse(truth.at);
  return (
    <div className={truth.wrong ? 'truth wrong' : 'truth'}>
      <Glyph name={truth.glyph} tone={truth.wrong || truth.glyph === 'worker.stuck' || truth.glyph === 'run.error' || truth.glyph === 'task.BLOCKED' ? 'bad' : truth.glyph === 'task.NEEDS_APPROVAL' ? 'you' : truth.glyph === 'run.idle' ? 'faint' : undefined} />
      <div>
        <div className="l1"><span className="what">{truth.label}</span><b>{truth.state}</b></div>
        <div className="ev">
          <Plain text={truth.evidence} />
          {(truth.source || at !== null) && <div className="faint"><Plain text={truth.source} /> {at !== null && <time dateTime={truth.at ?? ''} title={new Date(at).toLocaleString()}>{clockTime(at)}</time>}</div>}
        </div>
      </div>
    </div>
  );
}

/** Only what does not hold: all else is as it should be. */
function Why({ row, details }: { row: WorkerRow; details: Details }) {
  const until = untilOf(row);
  const open = details.why?.guards.filter((guard) => !guard.holds) ?? [];
  const waits = row.tone === 'you';
  if (!until && open.length === 0 && !row.lastError && !waits) return null;
  return (
    <section className="sect" id="fleet-why" tabIndex={-1}>
      <h2 className="head">What {row.name} waits for</h2>
      {until && <p className="small warn limit"><Glyph name="clock" size={14} /><span><Plain text={row.text} />, again in <b><Countdown until={until} /></b></span></p>}
      <ul className="guards small">{open.map((guard) => <li key={guard.guard}><Glyph name="run.idle" size={12} tone="faint" /><Plain text={guard.detail} /></li>)}</ul>
      {waits && <p className="small you"><Link className="ref" href={inboxOf(row)}>Answer in the inbox</Link></p>}
      {row.lastError && <pre className="code small last-error"><Plain text={row.lastError} /></pre>}
    </section>
  );
}

function Budget({ row, details, limits }: { row: WorkerRow; details: Details; limits: Limits }) {
  const money = useFacts()?.money ?? null;
  const task = details.task?.cost;
  const run = details.run?.cost;
  if (row.task === null && !money) return null;
  const hatched = (task && limits.task !== null ? task.reservedUsd : 0) + (money && money.cap !== null ? money.reserved : 0) > 0;
  return (
    <section className="sect">
      <h2 className="head">{row.task === null ? 'Money' : `Budget of ${row.task}`}</h2>
      <div className="gauge">
        {task && <Bar label="task" spent={task.usd} reserved={task.reservedUsd} cap={limits.task} />}
        {run && limits.run !== null && <Bar label="run" spent={run.usd} reserved={run.reservedUsd} cap={limits.run} />}
        <Bar label={`all of ${row.name}`} spent={row.costUsd} reserved={0} cap={null} />
        {money && <Bar label="all today" spent={money.spent} reserved={money.reserved} cap={money.cap} />}
      </div>
      {hatched && <p className="small faint">Hatched: set aside for steps under way{money && money.reserved > 0 ? `, ${dollars(money.reserved)} in all` : ''}.</p>}
    </section>
  );
}

function Bar({ label, spent, reserved, cap }: { label: string; spent: number; reserved: number; cap: number | null }): ReactNode {
  return (
    <>
      <span>{label}</span>
      {cap === null ? <span /> : <Meter label={label} spent={spent} reserved={reserved} cap={cap} />}
      <span>{dollars(spent)}{cap === null ? '' : ` of ${dollars(cap)}`}</span>
    </>
  );
}

function dollars(amount: number): string {
  return `$${Number.isInteger(amount) && amount > 0 ? amount : amount.toFixed(2)}`;
}

function Kill({ row }: { row: WorkerRow }) {
  const kill = row.actions.find((action) => action.endsWork);
  if (!kill) return null;
  return (
    <section className="sect">
      <h2 className="head">If you {kill.label.toLowerCase()} {row.name}</h2>
      <p className="small dim"><Plain text={kill.happens.join(' ')} /></p>
    </section>
  );
}

function Machine() {
  const use = useFacts()?.machineUse;
  if (!use) return null;
  const { processorPercent: processor, memoryUsedBytes: memory, memoryBytes, diskFreeBytes: free, diskBytes } = use;
  return (
    <section className="sect">
      <h2 className="head">Machine</h2>
      <div className="gauge">
        <span>processor</span>{processor === null ? <span /> : <Meter label="processor" spent={processor} cap={100} />}<span>{processor === null ? 'not measured' : `${Math.round(processor)} %`}</span>
        <span>memory</span><Meter label="memory" spent={memory} cap={memoryBytes} /><span>{gigabytes(memory)} of {gigabytes(memoryBytes)} GB</span>
        <span>disk</span><Meter label="disk" spent={diskBytes - free} cap={diskBytes} /><span>{gigabytes(free)} GB free</span>
      </div>
    </section>
  );
}

function gigabytes(bytes: number): string {
  const amount = bytes / 1e9;
  return amount >= 10 ? amount.toFixed(0) : amount.toFixed(1);
}
