/** One task beside the board: why it is where it is, what it depends on, what waits for it. */
import { useEffect, useMemo, useState } from 'react';
import { Link } from 'wouter';
import { useShallow } from 'zustand/react/shallow';
import { call } from '../../api/client';
import type { components } from '../../api/types';
import { announce } from '../../frame/announce';
import { Button } from '../../parts/Button';
import { Drawer } from '../../parts/Drawer';
import { Glyph } from '../../parts/Glyph';
import { problemWords } from '../../parts/form';
import { Plain } from '../../parts/plain';
import { SlipLine } from '../../parts/Slip';
import { TaskPicker } from '../../parts/TaskPicker';
import { showToast } from '../../parts/Toast';
import { useRow, useStore, useTerms } from '../../store/store';
import { focusCard, setBoard } from './state';

type Why = components['schemas']['TaskWhy'];

export function CardDrawer({ task }: { task: string }) {
  const row = useRow('tasks', task);
  const { why, depends, problem } = useDetails(task, row?.seq);
  const close = () => { setBoard({ drawer: null }); focusCard(task); };
  if (!row) return null;
  return (
    <Drawer title={task} onClose={close}>
      <section className="sect">
        <h3 className="strong"><Plain text={row.title} /></h3>
        <div className="slip-lines">{row.lines.map((line, index) => <SlipLine key={index} line={line} names={row.waitsFor} tabs />)}</div>
        <p className="row drawer-buttons">
          <Link className="btn dense" href={`/task/${encodeURIComponent(task)}`}>Open</Link>
          <Button size="dense" acts onClick={() => setBoard({ dialog: { kind: 'edit', task } })}>Edit</Button>
          <Button size="dense" acts onClick={() => setBoard({ dialog: { kind: 'targets', task } })}>Move…</Button>
        </p>
      </section>
      <section className="sect">
        <h3 className="head">Why</h3>
        {problem && <p className="small bad"><Plain text={problem} /></p>}
        {why && why.guards.length === 0 && <p className="small dim">Nothing holds it up.</p>}
        <ul className="guards">
          {why?.guards.map((guard, index) => (
            <li key={index} className={guard.holds ? 'dim' : undefined}>
              <Glyph name={guard.holds ? 'check' : 'x'} size={12} tone={guard.holds ? 'ok' : 'bad'} />
              <span><span className="hide">{guard.holds ? 'holds: ' : 'does not hold: '}</span><Plain text={guard.detail} /></span>
            </li>
          ))}
        </ul>
      </section>
      <Dependencies task={task} depends={depends} />
      <HoldsUp task={task} />
    </Drawer>
  );
}

/** Fetched when the drawer opens, and again when the row of the task has changed. */
function useDetails(task: string, seq: number | undefined) {
  const [why, setWhy] = useState<Why | null>(null);
  const [depends, setDepends] = useState<readonly string[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    const gone = new AbortController();
    const options = { path: { task }, signal: gone.signal };
    void Promise.all([call('get', '/tasks/{task}/why', options), call('get', '/tasks/{task}', options)]).then(([first, second]) => {
      if (gone.signal.aborted) return;
      if (first.ok) setWhy(first.value);
      if (second.ok) setDepends(second.value.dependsOn);
      setProblem(first.ok ? null : problemWords(first.problem));
    });
    return () => gone.abort();
  }, [task, seq]);
  return { why, depends, problem };
}

function Dependencies({ task, depends }: { task: string; depends: readonly string[] | null }) {
  const [busy, setBusy] = useState(false);
  const change = async (on: string, add: boolean) => {
    setBusy(true);
    const answer = add
      ? await call('post', '/tasks/{task}/dependencies', { path: { task }, body: { on } })
      : await call('delete', '/tasks/{task}/dependencies/{on}', { path: { task, on } });
    setBusy(false);
    if (answer.ok) announce(add ? `${task} waits for ${on} now.` : `${task} no longer waits for ${on}.`);
    else showToast({ glyph: 'back', tone: 'bad', title: `${task} is as it was.`, text: problemWords(answer.problem) });
  };
  return (
    <section className="sect">
      <h3 className="head">Depends on</h3>
      {depends?.length === 0 && <p className="small dim">Nothing.</p>}
      <ul className="tasks">
        {depends?.map((on) => (
          <Named key={on} task={on}>
            <Button look="quiet" size="tiny" glyph="x" acts off={busy ? 'It is being done.' : null} aria-label={`No longer wait for ${on}`} onClick={() => void change(on, false)} />
          </Named>
        ))}
      </ul>
      <div className="form-field">
        <label htmlFor="add-dependency" className="hide">Add a task that must be done first</label>
        <TaskPicker id="add-dependency" chosen={[]} without={[task, ...(depends ?? [])]} onChange={([on]) => { if (on) void change(on, true); }} />
      </div>
    </section>
  );
}

function HoldsUp({ task }: { task: string }) {
  const ids = useStore(useShallow((state) => {
    const out: string[] = [];
    for (const row of state.rows.all('tasks').values()) if (row.waitsFor?.includes(task)) out.push(row.id);
    return out;
  }));
  if (ids.length === 0) return null;
  return (
    <section className="sect">
      <h3 className="head">Holds up</h3>
      <ul className="tasks">{ids.map((id) => <Named key={id} task={id} />)}</ul>
    </section>
  );
}

function Named({ task, children }: { task: string; children?: React.ReactNode }) {
  const row = useRow('tasks', task);
  const statuses = useTerms()?.statuses;
  const status = useMemo(() => statuses?.find((each) => each.id === row?.status), [statuses, row?.status]);
  return (
    <li>
      <Glyph name={status?.glyph ?? 'dead'} size={14} tone={row ? undefined : 'bad'} />
      <Link className="ref id" href={`/task/${encodeURIComponent(task)}`}>{task}</Link>
      <span className="cut small">{row ? <Plain text={row.title} /> : <span className="bad">there is no such task</span>}</span>
      {children}
    </li>
  );
}
