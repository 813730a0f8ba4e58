/** The head of a task: what it is, who worked on it, and what can be done. */
import { Age } from '../../parts/Age';
import { Glyph } from '../../parts/Glyph';
import { Plain } from '../../parts/plain';
import type { ReactNode } from 'react';
import type { TaskData } from './data';
import { Lines } from './diff/Path';
import { count, dollars, holderName } from './words';

export function TaskHead({ data, children }: { data: TaskData; children: ReactNode }) {
  const { row, terms } = data;
  const task = data.task.value;
  const status = terms?.statuses.find((each) => each.id === (row?.status ?? task?.status));
  const type = row?.type ?? task?.type;
  const priority = row?.priority ?? task?.priority;
  const branch = task?.branch;
  const spec = row?.spec ?? data.why.value?.spec;
  return (
    <div className="task-head">
      <div className="facts">
        <span className="state strong"><Glyph name={status?.glyph ?? 'task'} />{status?.label ?? row?.status}</span>
        <span className="id">{data.id}</span>
        <span>{priority !== undefined && `P${priority} `}{type}</span>
        {row && <span><Age since={row.since} long /> in {status?.label}</span>}
        {row && (row.added || row.removed) ? <span className="narrow-only"><Lines added={row.added ?? 0} removed={row.removed ?? 0} /></span> : null}
      </div>
      <h1><Plain text={row?.title ?? task?.title ?? data.id} /></h1>
      <div className="facts">
        {branch && <span className="mono cut"><Plain text={branch} /></span>}
        <Worker data={data} />
        {row && (row.added || row.removed) ? (
          <span className="wide-only">{data.files.length > 0 && `${count(data.files.length, 'file')}, `}<Lines added={row.added ?? 0} removed={row.removed ?? 0} /></span>
        ) : null}
        {(row?.cost ?? task?.cost) && <span className="wide-only">{row?.cost ?? (task?.cost && task.cost.usd > 0 ? dollars(task.cost.usd) : '')}</span>}
        {spec && <span className="wide-only">spec <Plain text={spec} /></span>}
        {task?.pullRequest && <span className="wide-only cut">pull request <Plain text={task.pullRequest} /></span>}
      </div>
      {children}
    </div>
  );
}

function Worker({ data }: { data: TaskData }) {
  const { row } = data;
  const last = data.runs.value?.items.at(-1);
  const who = row?.worker ?? (last ? holderName(last.holder) : null);
  const agent = [row?.agent, row?.model].filter(Boolean).join(' ');
  if (!who && !agent) return null;
  if (!who) return <span>for <Plain text={agent} /></span>;
  return <span>{row?.worker ? 'worked on by' : 'last worked on by'} <b><Plain text={who} /></b>{agent && <>, <Plain text={agent} /></>}</span>;
}
