/** What can be done about a row. What happens stands above each button. */
import { Link } from 'wouter';
import type { Action, WaitingRow } from '../../api/view';
import { Copyable } from '../../frame/Copyable';
import { Button } from '../../parts/Button';
import { Happens } from '../../parts/Happens';
import { Plain } from '../../parts/plain';
import { useFacts } from '../../store/store';
import { needsForm, placeOf, waysOf, type Ways } from './rows';
import type { InboxState } from './use-inbox';

const words = (action: Action) => (needsForm(action) ? `${action.label}…` : action.label);

type Where = (path: string) => string;

export function Fates({ ways, inbox, where }: { ways: Ways; inbox: InboxState; where: Where }) {
  // While rows are selected, the keys and the main button are theirs.
  const keys = inbox.picked.length === 0;
  return (
    <>
      <h2>What happens</h2>
      <div className={inbox.rested ? 'fates rested' : 'fates'}>
        {ways.yes && <Fate head="On yes" action={ways.yes} look={keys ? 'primary' : 'plain'} cap={keys ? 'approve' : ''} inbox={inbox} where={where} />}
        {ways.no && <Fate head="On no" action={ways.no} look="no" cap={keys ? 'deny' : ''} inbox={inbox} where={where} />}
      </div>
    </>
  );
}

interface FateProps {
  head: string;
  action: Action;
  look: 'primary' | 'plain' | 'no';
  cap: string;
  inbox: InboxState;
  where: Where;
}

function Fate({ head, action, look, cap, inbox, where }: FateProps) {
  return (
    <div className="fate">
      <h3>{head}</h3>
      <Happens sentences={action.happens} />
      <Way action={action} look={look} cap={cap} act={() => inbox.act(action)} where={where} />
    </div>
  );
}

/** A page is a link, a command is copied, a request is a button. */
function Way({ action, look, cap = '', act, where }: { action: Action; look: 'primary' | 'no' | 'plain'; cap?: string; act: () => void; where: Where }) {
  if (action.page) return <Link className={look === 'primary' ? 'btn primary' : 'btn'} href={where(action.page)}>{action.label}</Link>;
  if (!action.request && action.command) return <Copyable command={action.command} />;
  return <Button acts look={look} action={cap} off={action.refused} onClick={act}>{words(action)}</Button>;
}

export function Others({ actions, act, where, alone }: { actions: readonly Action[]; act: (action: Action) => void; where: Where; alone: boolean }) {
  return (
    <>
      <h2>{alone ? 'What you can do' : 'Other ways'}</h2>
      <ul className="ways">
        {actions.map((action) => (
          <li key={`${action.code} ${action.label} ${action.page ?? action.command ?? action.request?.path ?? ''}`}>
            <div className="dim">{action.happens.map((sentence, index) => <p key={index}><Plain text={sentence} /></p>)}</div>
            <Way action={action} look={action.endsWork ? 'no' : 'plain'} act={() => act(action)} where={where} />
          </li>
        ))}
      </ul>
    </>
  );
}

/** The two buttons of a narrow screen, at the bottom, each with its first consequence above it. */
export function DecidePhone({ row, inbox }: { row: WaitingRow; inbox: InboxState }) {
  const project = useFacts()?.project ?? '';
  const ways = waysOf(row.actions);
  const where = (path: string) => placeOf(row, project, path);
  if (!ways.yes && !ways.no) return null;
  return (
    <div className="decide-phone">
      {ways.no && <div><span>No: <Plain text={ways.no.happens[0] ?? ''} /></span><Way action={ways.no} look="no" act={() => inbox.act(ways.no as Action)} where={where} /></div>}
      {ways.yes && <div><span>Yes: <Plain text={ways.yes.happens[0] ?? ''} /></span><Way action={ways.yes} look="primary" act={() => inbox.act(ways.yes as Action)} where={where} /></div>}
    </div>
  );
}
