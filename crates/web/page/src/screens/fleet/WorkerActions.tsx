/** What can be done with a worker or the fleet, as the server offers it. What ends work, or asks for something, opens a dialog. */
import { useCallback, useState, type ReactNode } from 'react';
import { useLocation } from 'wouter';
import { request } from '../../api/client';
import type { Action } from '../../api/view';
import { announce } from '../../frame/announce';
import { ActionForm } from '../../parts/ActionForm';
import { Button } from '../../parts/Button';
import { Dialog } from '../../parts/Dialog';
import { plain } from '../../parts/plain';
import { showToast } from '../../parts/Toast';

export interface Doer {
  run: (action: Action, title?: string) => void;
  dialog: ReactNode;
}

/** Whether something stands between the button and what happens: the label ends with an ellipsis. */
export function asksFirst(action: Action): boolean {
  return action.endsWork === true || (action.fields ?? []).length > 0 || (!action.request && action.command !== undefined);
}

export function labelOf(action: Action): string {
  return asksFirst(action) ? `${action.label}…` : action.label;
}

/** `Kill A`, `A: Give to another agent`. */
export function titleOf(action: Action, of: string): string {
  if (of === '') return action.label;
  return action.endsWork ? `${action.label} ${of}` : `${of}: ${action.label}`;
}

export function useDoer(): Doer {
  const [, go] = useLocation();
  const [asked, setAsked] = useState<{ action: Action; title: string } | null>(null);
  const run = useCallback((action: Action, title?: string) => {
    if (action.refused) return announce(action.refused);
    if (asksFirst(action)) return setAsked({ action, title: title ?? action.label });
    if (action.page) return go(action.page);
    void send(action);
  }, [go]);
  const close = () => setAsked(null);
  const done = () => {
    announce(`${asked?.title ?? 'It'}: done.`);
    close();
  };
  const dialog = asked && (
    <Dialog title={plain(asked.title)} onClose={close}>
      {asked.action.request
        ? <ActionForm action={asked.action} onDone={done} onCancel={close} />
        : <><p>{asked.action.happens.join(' ')}</p><pre className="code">{asked.action.command}</pre></>}
    </Dialog>
  );
  return { run, dialog };
}

async function send(action: Action): Promise<void> {
  if (!action.request) return;
  const { method, path, body } = action.request;
  const answer = await request(method, path, body);
  if (answer.ok) announce(action.happens.join(' ') || `${action.label}: done.`);
  else showToast({ glyph: 'back', tone: 'bad', title: `${action.label} was refused.`, text: plain([answer.problem.detail, answer.problem.hint].filter(Boolean).join('. ')) });
}

interface ButtonProps {
  action: Action;
  /** About what: the title of its dialog. */
  of: string;
  doer: Doer;
  size?: 'normal' | 'tiny';
  /** Red only where the work of one worker ends by it: all else is as quiet as its neighbours. */
  look?: 'plain' | 'no';
}

/** Signs and keys that belong to some of the offered actions. */
const GLYPHS: Readonly<Record<string, string>> = { pause_run: 'run.paused', resume_run: 'run.running' };

export function ActionButton({ action, of, doer, size = 'tiny', look = action.endsWork ? 'no' : 'plain' }: ButtonProps) {
  const glyph = GLYPHS[action.code];
  return (
    <Button
      acts size={size} look={look} off={action.refused} title={plain(action.happens.join(' '))}
      {...(glyph ? { glyph } : {})} onClick={() => doer.run(action, titleOf(action, of))}
    >
      {labelOf(action)}
    </Button>
  );
}
