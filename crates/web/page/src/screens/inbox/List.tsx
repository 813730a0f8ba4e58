/** The list of everything that waits, what holds up most first, and below it what was just decided. */
import { useEffect, useRef } from 'react';
import { Link } from 'wouter';
import type { WaitingRow } from '../../api/view';
import { Age } from '../../parts/Age';
import { Button } from '../../parts/Button';
import { EmptyState } from '../../parts/EmptyState';
import { Glyph } from '../../parts/Glyph';
import { Menu } from '../../parts/Menu';
import { Plain, plain } from '../../parts/plain';
import { useTerms } from '../../store/store';
import { lastHeld, returned, type Decision } from './decisions';
import { undo, useHeld } from './hold';
import { addressOf } from './rows';
import { useSeen } from './seen';
import { TakesEffect } from './Undo';
import { useWaitingRows, type InboxState } from './use-inbox';

export function List({ inbox }: { inbox: InboxState }) {
  const { groups, cursor } = inbox;
  const list = useRef<HTMLDivElement>(null);
  useFollow(list, cursor.focused);
  const empty = groups.every((group) => group.rows.length === 0);
  return (
    <>
      <Head inbox={inbox} />
      <div className="scroll" ref={list}>
        {empty && <Empty filtered={inbox.kind !== ''} />}
        {groups.map((group) => (
          <section key={group.key} aria-label={group.name || 'This project'}>
            {group.name && <h2 className="group"><Plain text={group.name} /><span className="faint light">{group.words}</span></h2>}
            <ul>
              {group.rows.map((row) => (
                <Ask
                  key={row.id}
                  row={row}
                  focused={row.id === cursor.focused}
                  picked={cursor.picked.includes(row.id)}
                  picking={cursor.picked.length > 0}
                  onPick={() => inbox.pick(row.id)}
                />
              ))}
            </ul>
          </section>
        ))}
        <JustDecided />
      </div>
    </>
  );
}

function Head({ inbox }: { inbox: InboxState }) {
  const rows = useWaitingRows();
  const terms = useTerms();
  const people = rows.filter((row) => row.who !== 'service').length;
  const services = rows.length - people;
  const kinds = [...new Set(rows.map((row) => row.kind))];
  const label = (kind: string) => terms?.waitingKinds.find((term) => term.id === kind)?.label ?? kind;
  const choice = (id: string, words: string) => ({ id: id || 'all', label: words, checked: inbox.kind === id, run: () => inbox.setKind(id) });
  return (
    <div className="pane-head">
      <span className="strong">{people} {people === 1 ? 'waits' : 'wait'} for you</span>
      {rows.length > 0 && <span className="small faint cut">{services > 0 ? `${services} for a service` : 'what holds up most comes first'}</span>}
      {(kinds.length > 1 || inbox.kind !== '') && (
        <span className="push">
          <Menu label="Kind" className="btn quiet tiny" items={[choice('', 'All'), ...kinds.map((kind) => choice(kind, label(kind)))]}>
            {inbox.kind ? label(inbox.kind) : 'All'} <Glyph name="down" size={12} />
          </Menu>
        </span>
      )}
    </div>
  );
}

function Empty({ filtered }: { filtered: boolean }) {
  if (filtered) return <EmptyState title="None of this kind waits">Choose another kind, or all of them.</EmptyState>;
  return (
    <EmptyState glyph="check" title="Nothing waits for you">
      Questions, reviews and calls that need a person come here by themselves.
    </EmptyState>
  );
}

interface AskProps {
  row: WaitingRow;
  focused: boolean;
  picked: boolean;
  picking: boolean;
  onPick: () => void;
}

function Ask({ row, focused, picked, picking, onPick }: AskProps) {
  const seen = useSeen(row.id);
  const { decisions } = useHeld();
  const failed = decisions.find((each) => each.id === row.id && each.note !== '');
  const service = row.who === 'service';
  const classes = ['ask', focused && 'sel', seen && 'seen', picked && 'picked', picking && 'picking'];
  return (
    <li className={classes.filter(Boolean).join(' ')} data-waiting={row.id}>
      <span className="sign">
        <Glyph name={row.glyph} tone={seen || service ? 'faint' : 'you'} />
        <button type="button" role="checkbox" aria-checked={picked} aria-label={`Select: ${plain(row.text)}`} onClick={onPick}>
          <span className={picked ? 'box on' : 'box'}>{picked && <Glyph name="check" size={12} />}</span>
        </button>
      </span>
      <Link className="q" href={addressOf(row.id)} aria-current={focused ? 'true' : undefined}>
        {!seen && <span className="hide">Unread: </span>}<Plain text={row.text} />
      </Link>
      <div className={row.blocks.length > 1 ? 'blocks' : 'blocks dim'}>{row.blocks.length > 0 && `holds up ${row.blocks.length}`}</div>
      <div className="l2">
        <span className="cut"><Plain text={row.about} /></span>
        <span className="push nowrap faint">{row.since && <Age since={row.since} />}</span>
      </div>
      {failed && <div className="l2 bad">{failed.label}: {plain(failed.note)}</div>}
    </li>
  );
}

/** Held decisions with their undo, results, and rows that left by themselves. Below the list, so that it pushes nothing. */
function JustDecided() {
  const { decisions, left } = useHeld();
  const last = lastHeld(decisions);
  const shown = decisions.filter((each) => !returned(each));
  if (shown.length === 0 && left.length === 0) return null;
  return (
    <section aria-label="Just decided" className="just">
      <h2 className="group">Just decided</h2>
      <ul>
        {[...shown].reverse().map((each) => (
          <li key={`${each.group} ${each.id}`} className="ask seen" data-decided={each.id} data-state={each.state}>
            <Glyph name={each.state === 'moot' ? 'back' : 'check'} tone={each.state === 'sent' ? 'ok' : 'faint'} />
            <div className="q">{each.label}: <Plain text={each.text} /></div>
            <div className="blocks">
              {each.state === 'held' && <Button size="tiny" action={each === last ? 'undo' : ''} onClick={() => undo(each.group)}>Undo</Button>}
            </div>
            <div className="l2"><Progress decision={each} /></div>
          </li>
        ))}
        {left.map((each) => (
          <li key={each.id} className="ask seen" data-left={each.id}>
            <Glyph name="back" tone="faint" />
            <div className="q"><Plain text={each.text} /></div>
            <div className="l2">no longer waits: decided elsewhere, or moot</div>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Progress({ decision }: { decision: Decision }) {
  if (decision.state === 'held') return <TakesEffect decision={decision} />;
  if (decision.state === 'sending') return <>is being sent</>;
  if (decision.state === 'sent') return <>the server has it</>;
  return <Plain text={decision.note} />;
}

/** Keeps the focused row in sight, and the keyboard's focus on it if it was on a row. */
function useFollow(list: React.RefObject<HTMLDivElement | null>, focused: string | null): void {
  const before = useRef(focused);
  useEffect(() => {
    if (focused === null || before.current === focused) return;
    before.current = focused;
    const item = list.current?.querySelector<HTMLElement>(`[data-waiting="${CSS.escape(focused)}"]`);
    item?.scrollIntoView({ block: 'nearest' });
    const active = document.activeElement;
    if (active && active !== document.body && list.current?.contains(active)) item?.querySelector('a')?.focus({ preventScroll: true });
  }, [list, focused]);
}
