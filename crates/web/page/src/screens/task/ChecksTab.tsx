/** Checks: what the gate found, the checklist with its evidence, and every run of tests and hooks with its output. */
import { EmptyState } from '../../parts/EmptyState';
import { Glyph } from '../../parts/Glyph';
import { Plain } from '../../parts/plain';
import { askAll, part } from './ask';
import type { TaskData } from './data';
import { useLoaded } from './load';
import type { Task, TestRun } from './types';
import { answerTone, endTone, TONE_GLYPHS } from './words';

type Checks = NonNullable<Task['gate']>['checks'];

export function ChecksTab({ data }: { data: TaskData }) {
  const task = data.task.value;
  const hooks = useLoaded(true, data.row?.seq ?? 0, (signal) => askAll<TestRun>(`/tasks/${part(data.id)}/tests?hooks=true`, signal));
  const tests = data.tests.value?.items ?? [];
  const ran = hooks.value?.items ?? [];
  const gate = task?.gate?.checks ?? [];
  const list = task?.submission?.reviewChecklist.items ?? [];
  const own = list.filter((item) => !gate.some((check) => check.item === item.item));
  return (
    <div className="scroll prose" tabIndex={0} role="region" aria-label="Checks">
      {task?.claims && (
        <section className="sect">
          <h2 className="head">Handed in without the gate</h2>
          <p className="said"><Glyph name="worker.stuck" size={14} tone="warn" /> Nothing of it was checked. <Plain text={task.claims.by} /> says: <Plain text={task.claims.content} /></p>
          <CheckList checks={task.claims.checks} />
        </section>
      )}
      {gate.length > 0 && <section className="sect"><h2 className="head">The gate</h2><CheckList checks={gate} /></section>}
      {own.length > 0 && <section className="sect"><h2 className="head">Checklist</h2><CheckList checks={own} /></section>}
      {tests.length > 0 && <section className="sect"><h2 className="head">Tests<span className="push faint">{tests.length}</span></h2>{tests.map((test) => <TestOutput key={test.effect} test={test} />)}</section>}
      {ran.length > 0 && <section className="sect"><h2 className="head">Hooks<span className="push faint">{ran.length}</span></h2>{ran.map((test) => <TestOutput key={test.effect} test={test} />)}</section>}
      {data.tests.problem && data.tests.problem.status !== 0 && <p className="sect bad"><Plain text={data.tests.problem.detail} /></p>}
      {gate.length + list.length + tests.length + ran.length === 0 && data.tests.value && <EmptyState glyph="check" title="Nothing was checked yet">The gate runs when an agent says that it is done.</EmptyState>}
    </div>
  );
}

function CheckList({ checks }: { checks: Checks }) {
  return (
    <ul className="checks">
      {checks.map((check, index) => {
        const tone = answerTone(check.answer);
        return <li key={index}><Glyph name={TONE_GLYPHS[tone]} size={14} tone={tone} /><span><Plain text={check.item} /></span><span className="faint"><Plain text={check.answer ?? 'no answer'} /></span></li>;
      })}
    </ul>
  );
}

function TestOutput({ test }: { test: TestRun }) {
  const tone = endTone(test.ended);
  return (
    <article className="test">
      <div className="l1"><Glyph name={TONE_GLYPHS[tone]} size={14} tone={tone} /><code><Plain text={test.command} /></code>{test.hook && <span className="tag">{test.hook}</span>}<span className={tone === 'bad' ? 'push bad' : 'push dim'}>{test.ended ?? 'runs now'}</span></div>
      <div className="small faint mono cut" title="The folder in which it ran"><Plain text={test.folder} /></div>
      <pre className="code"><Plain text={test.output || 'It printed nothing.'} /></pre>
    </article>
  );
}
