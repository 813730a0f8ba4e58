/** The rail: why, checks, runs and cost, dependencies, approvals. */
import { Link } from 'wouter';
import type { Action } from '../../api/view';
import { Glyph } from '../../parts/Glyph';
import { Plain } from '../../parts/plain';
import { useRow, useTerms } from '../../store/store';
import { useDependents, type TaskData } from './data';
import { Runs } from './Runs';
import type { Task } from './types';
import { Why } from './Why';
import { answerTone, count, duration, endTone, moment, spendWords, TONE_GLYPHS } from './words';

export function Side({ data, choose }: { data: TaskData; choose: (action: Action) => void }) {
  const task = data.task.value;
  return (
    <>
      <Why data={data} choose={choose} />
      <ChecksShort data={data} />
      <Runs data={data} />
      {task && <Cost task={task} workMillis={data.reviewed.value?.workMillis ?? null} />}
      <Dependencies data={data} />
      {task && <Approvals task={task} />}
    </>
  );
}

function ChecksShort({ data }: { data: TaskData }) {
  const task = data.task.value;
  const checks = task?.gate?.checks ?? [];
  const tests = data.tests.value?.items ?? [];
  if (checks.length === 0 && tests.length === 0) return null;
  return (
    <section className="sect">
      <h2 className="head">Checks{task?.tip && <span className="push faint">of <span className="mono">{task.tip.slice(0, 7)}</span></span>}</h2>
      <ul className="checks">
        {checks.map((check, index) => {
          const tone = answerTone(check.answer);
          return <li key={index}><Glyph name={TONE_GLYPHS[tone]} size={14} tone={tone} /><span><Plain text={check.item} /></span><span className="faint">{check.answer !== 'yes' && <Plain text={check.answer ?? 'no answer'} />}</span></li>;
        })}
        {tests.map((test) => {
          const tone = endTone(test.ended);
          return (
            <li key={test.effect} className="with-output">
              <Glyph name={TONE_GLYPHS[tone]} size={14} tone={tone} />
              <details className="output">
                <summary><code><Plain text={test.command} /></code> <span className="faint">{test.ended ?? 'runs now'}</span></summary>
                <pre className="code"><Plain text={test.output || 'It printed nothing.'} /></pre>
              </details>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function Cost({ task, workMillis }: { task: Task; workMillis: number | null }) {
  const { cost } = task;
  if (!cost) return null;
  return (
    <section className="sect">
      <h2 className="head">Cost</h2>
      <dl className="kv">
        <dt>spent</dt><dd>{spendWords(cost)}</dd>
        <dt>tokens</dt><dd>{cost.inputTokens.toLocaleString('en')} in, {cost.outputTokens.toLocaleString('en')} out</dd>
        {workMillis !== null && workMillis > 0 && <><dt>time</dt><dd>{duration(workMillis)} at work</dd></>}
      </dl>
    </section>
  );
}

function Dependencies({ data }: { data: TaskData }) {
  const on = data.task.value?.dependsOn ?? data.row?.waitsFor ?? [];
  const dependents = useDependents(data.id, data.row?.seq ?? 0);
  const tries = data.task.value?.otherTries ?? [];
  if (on.length + dependents.length + tries.length === 0) return null;
  return (
    <section className="sect">
      <h2 className="head">Dependencies</h2>
      <TaskLinks words="depends on" ids={on} />
      <TaskLinks words="holds up" ids={dependents} />
      <TaskLinks words="other tries" ids={tries} />
    </section>
  );
}

function TaskLinks({ words, ids }: { words: string; ids: readonly string[] }) {
  if (ids.length === 0) return null;
  return (
    <>
      <h3 className="small faint">{words} {ids.length > 1 && ids.length}</h3>
      <ul className="links">{ids.map((id) => <TaskLink key={id} id={id} />)}</ul>
    </>
  );
}

function TaskLink({ id }: { id: string }) {
  const row = useRow('tasks', id);
  const status = useTerms()?.statuses.find((each) => each.id === row?.status);
  return (
    <li>
      <Glyph name={status?.glyph ?? 'task'} size={14} tone="dim" />
      <Link href={`/task/${encodeURIComponent(id)}`} className="ref">{id}</Link>
      <span className="cut"><Plain text={row?.title ?? 'not on the board'} /></span>
      <span className="faint nowrap">{status?.label}</span>
    </li>
  );
}

function Approvals({ task }: { task: Task }) {
  const given = [
    task.approved && { by: task.approved.by, at: task.approved.at, note: task.approved.note, of: task.approved.tip },
    task.completion && { by: task.completion.approvedBy, at: task.completion.approvedAt, note: task.completion.decisionNote, of: task.landed?.merge ?? null },
  ].filter((each) => each !== null && each !== undefined);
  if (given.length === 0 && !task.reviewerId && !task.needsPerson && !task.landed && !task.reviewCycles) return null;
  return (
    <section className="sect">
      <h2 className="head">Approvals</h2>
      <ul className="why">
        {task.needsPerson && <li><Glyph name="task.NEEDS_APPROVAL" size={14} tone="dim" /><span><Plain text={task.needsPerson.text} /></span></li>}
        {task.reviewerId && <li><Glyph name="pen" size={14} tone="dim" /><span>Reviewed by <Plain text={task.reviewerId} />{task.reviewerLacks && <>; <Plain text={task.reviewerLacks} /></>}</span></li>}
        {given.map((each, index) => (
          <li key={index}><Glyph name="check" size={14} tone="ok" /><span>Approved by <b><Plain text={each.by} /></b>, {moment(each.at)}{each.note && <>: <Plain text={each.note} /></>}</span></li>
        ))}
        {task.landed && <li><Glyph name="task.DONE" size={14} tone="ok" /><span>Landed as <code>{task.landed.merge.slice(0, 7)}</code></span></li>}
        {task.reviewCycles ? <li><Glyph name="talk" size={14} tone="dim" /><span>{count(task.reviewCycles, 'review')} asked for changes</span></li> : null}
      </ul>
    </section>
  );
}
