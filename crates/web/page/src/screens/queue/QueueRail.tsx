/** Beside the queue: how main stands, the tests that run, and what landed lately. */
import { Link } from 'wouter';
import { useShallow } from 'zustand/react/shallow';
import { Age } from '../../parts/Age';
import { Glyph } from '../../parts/Glyph';
import { Plain } from '../../parts/plain';
import { clockTime } from '../../parts/time';
import { useFacts, useRow, useStore } from '../../store/store';

/** So many that landed lately are named. */
const LANDED = 5;

export function QueueRail() {
  return (
    <>
      <Main />
      <Tests />
      <Landed />
    </>
  );
}

function Main() {
  const facts = useFacts();
  if (!facts) return null;
  const { main, mainTests } = facts;
  return (
    <section className="sect">
      <h2 className="head">Main</h2>
      <p className="state strong"><Glyph name={main.glyph} size={14} tone={toneOf(mainTests?.state)} /><Plain text={main.text} /> <span className="mono">{main.commit}</span></p>
      {mainTests && (
        <>
          {mainTests.detail && <p className="small dim rail-text"><Plain text={mainTests.detail} /></p>}
          <dl className="kv rail-text">
            {mainTests.at && <><dt>tested</dt><dd>{clockTime(Date.parse(mainTests.at))}, <Age since={mainTests.at} long /> ago</dd></>}
            {mainTests.command && <><dt>command</dt><dd className="mono"><Plain text={mainTests.command} /></dd></>}
          </dl>
          {mainTests.output && <pre className="code rail-text" tabIndex={0} aria-label="Output of the tests"><Plain text={mainTests.output} /></pre>}
        </>
      )}
    </section>
  );
}

export function toneOf(state: string | undefined): string | undefined {
  return state === 'green' ? 'ok' : state === 'red' ? 'bad' : undefined;
}

function Tests() {
  const tests = useFacts()?.tests ?? [];
  if (tests.length === 0) return null;
  return (
    <section className="sect">
      <h2 className="head">Tests that run now</h2>
      <ul className="q-list">
        {tests.map((each) => (
          <li key={each.effect}><Glyph name="clock" size={14} /><span><code><Plain text={each.command} /></code> <span className="faint"><Age since={each.since} long /></span></span></li>
        ))}
      </ul>
    </section>
  );
}

function Landed() {
  const ids = useStore(useShallow((state) => state.rows.list('tasks', 'DONE').slice(0, LANDED)));
  const hour = useFacts()?.landedLastHour;
  return (
    <section className="sect">
      <h2 className="head">Landed lately {hour !== undefined && <span className="push">{hour} in the last hour</span>}</h2>
      {ids.length === 0 && <p className="small dim">Nothing has landed yet.</p>}
      <ul className="q-list">{ids.map((id) => <LandedTask key={id} id={id} />)}</ul>
      <p className="small rail-text"><Link className="ref" href="/board">All tasks</Link></p>
    </section>
  );
}

function LandedTask({ id }: { id: string }) {
  const task = useRow('tasks', id);
  if (!task) return null;
  return (
    <li>
      <Glyph name={`task.${task.status}`} size={14} />
      <span><Link className="ref" href={`/task/${id}`}>{id}</Link> <Plain text={task.title} /> <span className="faint nowrap"><Age since={task.since} /></span></span>
    </li>
  );
}
