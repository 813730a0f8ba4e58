/** A message to the agent: a comment on its task, which it is told in its step, or with the next one. Enter sends it. */
import { useEffect, useMemo, useRef, useState, type KeyboardEvent } from 'react';
import type { WorkerRow } from '../../api/view';
import { announce } from '../../frame/announce';
import { useActions } from '../../keys/actions';
import { Button } from '../../parts/Button';
import { Glyph } from '../../parts/Glyph';
import { Plain } from '../../parts/plain';
import { useActionsOn } from '../../store/store';
import type { MessageRow } from './fold';
import { ask } from './requests';

/** What was typed and not sent, by worker: looking at another one loses nothing. */
const drafts = new Map<string, string>();

interface Props {
  row: WorkerRow;
  /** Those that go with the next step. */
  kept: readonly MessageRow[];
  onSent: () => void;
}

export function Compose({ row, kept, onSent }: Props) {
  const [text, setText] = useState(drafts.get(row.id) ?? '');
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const live = useActionsOn();
  const none = row.task === null ? `${row.name} has no task, so nobody would get it.` : null;
  const off = none ?? (text.trim() === '' ? 'Nothing is written.' : busy ? 'It is being sent.' : null);

  const write = (next: string) => {
    drafts.set(row.id, next);
    setText(next);
    setProblem(null);
  };
  const send = async () => {
    if (off !== null || !live || row.task === null) return;
    setBusy(true);
    const answer = await ask('post', '/tasks/{task}/comments', { path: { task: row.task }, body: { text: text.trim() } });
    setBusy(false);
    if (!answer.ok) return setProblem([answer.problem.detail, answer.problem.hint].filter(Boolean).join('. '));
    write('');
    announce(`Sent to ${row.name}.`);
    onSent();
  };
  const latest = useRef(send);
  latest.current = send;

  useActions(useMemo(() => [
    { id: 'message', label: `Message ${row.name}`, group: `On ${row.name}`, glyph: 'talk', acts: true, off: none, run: () => field.current?.focus() },
    { id: 'send', label: `Send the message to ${row.name}`, group: `On ${row.name}`, glyph: 'talk', acts: true, off: none, run: () => void latest.current() },
  ], [row.name, none]));
  useEffect(() => grow(field.current), [text]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') field.current?.blur();
    if (event.key !== 'Enter' || event.shiftKey || event.altKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    void send();
  };
  return (
    <form className="compose" onSubmit={(event) => { event.preventDefault(); void send(); }}>
      {kept.map((message) => (
        <div key={message.key} className="queued"><Glyph name="receipt.queued" size={14} /><span className="nowrap">with its next step:</span><span className="cut"><Plain text={message.text} /></span></div>
      ))}
      {problem && <p className="small bad" role="alert"><Plain text={problem} /></p>}
      <div className="line">
        <textarea
          ref={field} className="text" rows={1} value={text} aria-label={`Message ${row.name}`} aria-describedby="compose-about"
          placeholder={none ?? `Message ${row.name}…`} readOnly={none !== null} onChange={(event) => write(event.target.value)} onKeyDown={onKeyDown}
        />
        <Button acts submit off={off}>Send <kbd>Enter</kbd></Button>
      </div>
      <p id="compose-about" className="small faint about">It reads it in this step if its program can, else with its next step. It stays on the task as a comment.</p>
    </form>
  );
}

/** As high as its text, up to six lines. */
function grow(element: HTMLTextAreaElement | null): void {
  if (!element) return;
  element.style.height = 'auto';
  element.style.height = `${Math.min(element.scrollHeight + 2, 140)}px`;
}
