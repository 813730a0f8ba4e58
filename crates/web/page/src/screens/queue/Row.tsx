/** One task on its way to main: place, title, what happens now, how long it takes. */
import { Link } from 'wouter';
import type { QueueRow } from '../../api/view';
import { Age } from '../../parts/Age';
import { Button } from '../../parts/Button';
import { Plain, plain } from '../../parts/plain';
import { clockTime, countdown } from '../../parts/time';
import { useClockText } from '../../store/clock';
import { elapsedOf, expectedTimes, isActive, isOverdue } from './steps';
import type { Retry } from './use-retry';

interface Props {
  row: QueueRow;
  /** All rows, by place: those in front decide when this one is expected. */
  all: readonly QueueRow[];
  focused: boolean;
  retry: Retry;
}

export function Row({ row, all, focused, retry }: Props) {
  const [action] = row.actions;
  const approved = [row.approvedBy && `approved by ${row.approvedBy}`, row.approvedAt && `at ${clockTime(Date.parse(row.approvedAt))}`].filter(Boolean).join(' ');
  return (
    <li className={focused ? 'q-row sel' : 'q-row'} data-queue={row.id} data-state={row.state}>
      <span className="pos">{row.rank}</span>
      <span className="task">
        <Link href={`/task/${row.task}`} aria-current={focused ? 'true' : undefined} title={approved ? plain(approved) : undefined}>
          <span className="id faint">{row.task}</span> <b><Plain text={row.title} /></b>
        </Link>
      </span>
      <span className={row.state === 'held' ? 'note warn' : 'note'}>
        <span className={row.state === 'held' ? 'whole' : 'two'}><Plain text={row.text} /></span>
        {row.command && <code className="cut" title={plain(row.command)}><Plain text={row.command} /></code>}
      </span>
      <span className="spent">
        {isActive(row) ? <Elapsed row={row} /> : row.since && <Age since={row.since} long />}
      </span>
      {action ? (
        <span className="do">
          <Button acts size="dense" action={focused ? 'queue.retry' : ''} off={retry.busy === row.id ? 'It is being sent.' : action.refused} title={plain(action.happens.join(' '))} onClick={() => retry.act(row, action)}>
            {action.label}
          </Button>
        </span>
      ) : <span className="eta"><Expected row={row} all={all} /></span>}
    </li>
  );
}

/** `0:41 of about 1:10`, with a bar that grows once a second. */
function Elapsed({ row }: { row: QueueRow }) {
  const text = useClockText((now) => {
    const spent = elapsedOf(row, now);
    return spent === null ? '' : countdown(Math.floor(spent / 1000) * 1000);
  });
  const part = useClockText((now) => {
    const spent = elapsedOf(row, now);
    return spent === null || !row.expectedSeconds ? '' : String(Math.min(100, Math.round(spent / (row.expectedSeconds * 10))));
  });
  if (text === '') return null;
  return (
    <>
      <span>{text}{row.expectedSeconds !== null && <span className="faint"> of about {countdown(row.expectedSeconds * 1000)}</span>}</span>
      {part !== '' && <span className="lane-bar" aria-hidden="true"><i style={{ width: `${part}%` }} /></span>}
    </>
  );
}

/** Amber is time: it takes longer than half of the others did. */
const OVERDUE = 'overdue';

function Expected({ row, all }: { row: QueueRow; all: readonly QueueRow[] }) {
  const text = useClockText((now) => {
    if (row.state === 'held') return '';
    if (isOverdue(row, now)) return OVERDUE;
    const at = expectedTimes(all, now).get(row.id);
    return at === undefined ? 'unknown' : `about ${clockTime(at).slice(0, 5)}`;
  });
  return <span className={text === OVERDUE ? 'warn' : 'dim'}>{text}</span>;
}
