/** Says what was decided, with the one way back. */
import { useEffect, useSyncExternalStore } from 'react';
import { announce } from '../../frame/announce';
import { Button } from '../../parts/Button';
import { plain } from '../../parts/plain';
import { showToast } from '../../parts/Toast';
import { subscribe } from '../../store/clock';
import { lastHeld, type Decision, type Draft } from './decisions';
import { undo, useHeld } from './hold';

const quoted = (text: string) => plain(text.length > 80 ? `${text.slice(0, 79)}…` : text);

export function sayDecided(drafts: readonly Draft[]): void {
  const [first] = drafts;
  if (!first) return;
  const title = drafts.length === 1 ? `Decided: ${first.label}.` : `Decided: ${first.label}, ${drafts.length} rows.`;
  showToast({ glyph: 'check', title, text: drafts.length === 1 ? quoted(first.text) : '', action: <UndoButton toast /> });
}

/** Each refusal in the words of the rule; the rows wait again. */
export function sayRefused(refused: readonly Decision[], of: number): void {
  const [first] = refused;
  if (!first) return;
  const title = of === 1 ? `Refused: ${first.label}.` : `${refused.length} of ${of} ${refused.length === 1 ? 'was' : 'were'} refused.`;
  showToast({ glyph: 'back', tone: 'bad', title, text: refused.map((each) => `${of === 1 ? '' : `${quoted(each.text)}: `}${plain(each.note)}`).join(' ') });
}

/** Takes back the last decision. Returns false if none is held. */
export function undoLast(decisions: readonly Decision[]): boolean {
  const last = lastHeld(decisions);
  if (!last) return false;
  const back = undo(last.group);
  announce(`Undone. ${back.length === 1 ? 'It waits again.' : `${back.length} rows wait again.`}`);
  return true;
}

export function UndoButton({ toast = false }: { toast?: boolean }) {
  const { decisions } = useHeld();
  const last = lastHeld(decisions);
  // The toast of a decision that took effect, or was undone, leaves: only its own is open while this is mounted.
  useEffect(() => {
    if (toast && !last) showToast(null);
  }, [toast, last]);
  if (!last) return null;
  return (
    <span className="row">
      <span className="faint nowrap wide-only"><TakesEffect decision={last} /></span>
      <Button size="tiny" action="undo" onClick={() => undoLast(decisions)}>Undo</Button>
    </span>
  );
}

export function TakesEffect({ decision }: { decision: Decision }) {
  const seconds = useSyncExternalStore(subscribe, () => Math.max(0, Math.ceil((decision.dueAt - Date.now()) / 1000)));
  return <>takes effect in {seconds} s</>;
}
