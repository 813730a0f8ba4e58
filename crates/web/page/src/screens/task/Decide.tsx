/** The answers to what waits, and the menu of everything else. */
import { useMemo } from 'react';
import { useLocation } from 'wouter';
import type { Action } from '../../api/view';
import { useActions } from '../../keys/actions';
import { Button } from '../../parts/Button';
import { Glyph } from '../../parts/Glyph';
import { Menu } from '../../parts/Menu';
import { Plain } from '../../parts/plain';
import { useActionsOn } from '../../store/store';
import type { TaskData } from './data';
import { Dialogs, type Open } from './Dialogs';
import { otherTip } from './ways';
import { count } from './words';

interface Props {
  data: TaskData;
  open: Open;
  setOpen: (open: Open) => void;
}

/** What a button or a key does: a page is opened, everything else is shown with its consequences first. */
export function useChoose(data: TaskData, setOpen: (open: Open) => void): (action: Action) => void {
  const [, go] = useLocation();
  const review = data.waiting?.kind === 'review';
  const drafts = data.talk.drafts.length;
  return (action) => {
    if (action.page && !action.request) go(action.page);
    else if (review && drafts > 0 && action === data.ways.yes) setOpen({ type: 'pending', action });
    else if (review && drafts > 0 && action === data.ways.no) setOpen({ type: 'send' });
    else setOpen({ type: 'action', action });
  };
}

export function Decide({ data, open, setOpen }: Props) {
  const { ways, talk, waiting } = data;
  const live = useActionsOn();
  const choose = useChoose(data, setOpen);
  const tip = otherTip(ways.yes, data.diff.value?.tip ?? null);
  const yesOff = ways.yes?.refused ?? tip;
  const drafts = waiting?.kind === 'review' ? talk.drafts.length : 0;

  const off = !live;
  useActions(useMemo(() => {
    const group = `On ${data.id}`;
    const named = (action: Action | null, id: string, why: string | null) => (action ? [{ id, label: action.label, group, acts: true, off: why ?? action.refused ?? null, run: () => choose(action) }] : []);
    return [
      ...named(ways.yes, 'approve', yesOff),
      ...named(ways.no, 'deny', null),
      ...ways.others.map((action) => ({ id: `task ${action.code} ${action.label}`, label: action.label, group, acts: Boolean(action.request), off: action.refused ?? null, run: () => choose(action) })),
    ];
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [ways, yesOff, drafts, data.id]));

  return (
    <>
      <div className="acts">
        {ways.others.length > 0 && (
          <Menu label={`What can be done with ${data.id}`} className="btn quiet icon" items={ways.others.map((action) => ({
            id: `${action.code} ${action.label}`, label: action.label, off: action.refused ?? (off && action.request ? 'The page is not live.' : null), run: () => choose(action),
          }))}>
            <Glyph name="more" /><span className="hide">More</span>
          </Menu>
        )}
        {ways.no && <Answer action={ways.no} id="deny" drafts={drafts} choose={choose} off={ways.no.refused} />}
        {ways.yes && <Answer action={ways.yes} id="approve" primary choose={choose} off={yesOff} />}
      </div>
      <Dialogs data={data} open={open} setOpen={setOpen} />
    </>
  );
}

interface AnswerProps {
  action: Action;
  id: string;
  primary?: boolean;
  drafts?: number;
  off: string | null | undefined;
  choose: (action: Action) => void;
}

function Answer({ action, id, primary = false, drafts = 0, off, choose }: AnswerProps) {
  return (
    <Button look={primary ? 'primary' : 'plain'} acts action={id} off={off} title={action.happens.join(' ')} onClick={() => choose(action)}>
      <Plain text={action.label} />{drafts > 0 && <> <span className="num">{drafts}</span></>}
    </Button>
  );
}

/** On a narrow screen the same two stand at the bottom, each with its first consequence above it. */
export function DecideNarrow({ data, setOpen }: Omit<Props, 'open'>) {
  const { ways, talk, waiting } = data;
  const choose = useChoose(data, setOpen);
  if (!ways.yes && !ways.no) return null;
  const drafts = waiting?.kind === 'review' ? talk.drafts.length : 0;
  const answer = (action: Action, primary: boolean, words: string, off: string | null | undefined) => (
    <div>
      <span className="happens-first"><Plain text={words} /></span>
      <Button look={primary ? 'primary' : 'plain'} acts off={off} onClick={() => choose(action)}><Plain text={action.label} /></Button>
    </div>
  );
  return (
    <div className="decide-phone">
      {ways.no && answer(ways.no, false, drafts > 0 ? `Round ${talk.nextRound} with ${count(drafts, 'draft')}` : ways.no.happens[0] ?? '', ways.no.refused)}
      {ways.yes && answer(ways.yes, true, ways.yes.happens[0] ?? '', ways.yes.refused ?? otherTip(ways.yes, data.diff.value?.tip ?? null))}
    </div>
  );
}
