/** Plan: what is asked for, the plan that it is worked on by, its versions, and what was said about it. */
import { EmptyState } from '../../parts/EmptyState';
import { Plain } from '../../parts/plain';
import type { Task } from './types';
import { dollars, moment } from './words';

export function Plan({ task }: { task: Task | null }) {
  if (!task) return null;
  const bullets = task.workPlan?.bullets ?? task.plan ?? [];
  const versions = planVersions(task);
  const others = (task.comments ?? []).filter((comment) => comment.kind !== 'plan');
  return (
    <div className="scroll prose" tabIndex={0} role="region" aria-label="Plan">
      <section className="sect">
        <h2 className="head">What is asked for</h2>
        {task.body ? <p className="said"><Plain text={task.body} /></p> : <p className="faint">It has only its title.</p>}
        {task.clarification && <><h3 className="head">Clarification</h3><p className="said"><Plain text={task.clarification} /></p></>}
      </section>
      <section className="sect">
        <h2 className="head">Plan {versions.length > 1 && `v${versions.length}`}
          <span className="push faint">
            {task.workPlan ? (task.workPlan.source ? `from: ${task.workPlan.source}` : '') : task.plan ? 'came with the task' : ''}
            {task.workPlan?.estimatedCost ? `, about ${dollars(task.workPlan.estimatedCost)}` : ''}
            {task.workPlan?.estimatedDuration ? `, about ${task.workPlan.estimatedDuration}` : ''}
          </span>
        </h2>
        {bullets.length > 0 ? <ol className="bullets">{bullets.map((bullet, index) => <li key={index}><Plain text={bullet} /></li>)}</ol>
          : <EmptyState title="There is no plan yet">It gets one when an agent takes it.</EmptyState>}
        {versions.length > 1 && versions.slice(0, -1).reverse().map((version, index) => (
          <details key={index} className="output">
            <summary>v{versions.length - 1 - index} <span className="faint">by <Plain text={version.by} />, {moment(version.at)}</span></summary>
            <p className="said dim"><Plain text={version.text} /></p>
          </details>
        ))}
      </section>
      {task.submission && (
        <section className="sect">
          <h2 className="head">Result</h2>
          <p className="said"><Plain text={task.submission.deliverable.content} /></p>
        </section>
      )}
      {others.length > 0 && (
        <section className="sect">
          <h2 className="head">Comments<span className="push faint">{others.length}</span></h2>
          {others.map((comment, index) => (
            <article key={index} className="comment">
              <div className="small faint"><b className="dim"><Plain text={comment.by} /></b> {comment.kind}, {moment(comment.at)}</div>
              <p className="said"><Plain text={comment.text} /></p>
            </article>
          ))}
        </section>
      )}
    </div>
  );
}

export function planVersions(task: Pick<Task, 'comments'>): NonNullable<Task['comments']> {
  return (task.comments ?? []).filter((comment) => comment.kind === 'plan');
}
