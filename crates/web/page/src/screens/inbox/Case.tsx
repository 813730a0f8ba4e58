/** One question, whole: who asks, the call, what it holds up, and what happens on yes and on no. */
import { useEffect, useRef, useState } from 'react';
import { Link } from 'wouter';
import type { Action, WaitingRow } from '../../api/view';
import { Age } from '../../parts/Age';
import { Button } from '../../parts/Button';
import { Glyph } from '../../parts/Glyph';
import { Plain } from '../../parts/plain';
import { clockTime } from '../../parts/time';
import { useFacts, useTerms } from '../../store/store';
import { Fates, Others } from './Ways';
import { useHeld } from './hold';
import { inputText, placeOf, titleOf, waysOf } from './rows';
import type { InboxState } from './use-inbox';

export function Case({ row, inbox }: { row: WaitingRow; inbox: InboxState }) {
  const top = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (top.current?.parentElement) top.current.parentElement.scrollTop = 0;
  }, [row.id]);
  const { decisions } = useHeld();
  const failed = decisions.find((each) => each.id === row.id && each.note !== '');
  const ways = waysOf(row.actions);
  const project = useFacts()?.project ?? '';
  const where = (path: string) => placeOf(row, project, path);
  const { title, before, question } = titleOf(row);
  return (
    <article className="case" ref={top} aria-label="The question">
      <Kind row={row} where={where} />
      {before && <p className="small dim"><Plain text={before} /></p>}
      <h1><Plain text={title} /></h1>
      {failed && <p className="refused" role="alert"><Glyph name="back" size={14} tone="bad" />{failed.label}: <Plain text={failed.note} /></p>}
      {question && (
        <>
          <h2>What is asked</h2>
          <p className="asked-text"><Plain text={question} /></p>
        </>
      )}
      {row.call && <Call call={row.call} />}
      {row.blocks.length > 0 && (
        <>
          <h2>It holds up {row.blocks.length} {row.blocks.length === 1 ? 'task' : 'tasks'}</h2>
          <div className="chain">{row.blocks.map((task) => <Link key={task} className="ref" href={where(`/task/${task}`)}>{task}</Link>)}</div>
        </>
      )}
      {(ways.yes || ways.no) && <Fates ways={ways} inbox={inbox} where={where} />}
      {ways.others.length > 0 && <Others actions={ways.others} act={(action: Action) => inbox.act(action)} where={where} alone={!ways.yes && !ways.no} />}
    </article>
  );
}

function Kind({ row, where }: { row: WaitingRow; where: (path: string) => string }) {
  const label = useTerms()?.waitingKinds.find((term) => term.id === row.kind)?.label ?? row.kind;
  const project = useFacts()?.project;
  const since = row.since ? Date.parse(row.since) : NaN;
  const service = row.who === 'service';
  return (
    <div className="kind">
      <span className={service ? 'state strong' : 'state you strong'}><Glyph name={row.glyph} />{label}</span>
      {row.project !== project && <span>project <b><Plain text={row.project} /></b></span>}
      {row.task && <Link className="ref" href={where(`/task/${row.task}`)}>{row.task}</Link>}
      {row.worker && <span>worker <Link className="ref" href={where(`/fleet/${row.worker}`)}><Plain text={row.worker} /></Link></span>}
      {row.since && !Number.isNaN(since) && <span>since {clockTime(since)}, <Age since={row.since} long /></span>}
      {service && <span className="warn state"><Glyph name="clock" size={12} />waits for a service</span>}
    </div>
  );
}

function Call({ call }: { call: NonNullable<WaitingRow['call']> }) {
  const [copied, setCopied] = useState(false);
  const text = inputText(call.input);
  useEffect(() => setCopied(false), [text]);
  const copy = () => void navigator.clipboard?.writeText(text).then(() => setCopied(true), () => setCopied(false));
  return (
    <>
      <h2>The call, whole <span className="light">an edited call would be a new question</span></h2>
      <div className="call-block">
        <header>
          <b><Plain text={call.tool} /></b>
          <Button look="quiet" size="tiny" glyph="copy" className="push" onClick={copy}>{copied ? 'Copied' : 'Copy'}</Button>
        </header>
        <pre tabIndex={0} aria-label="Input of the call"><Plain text={text} /></pre>
      </div>
    </>
  );
}
