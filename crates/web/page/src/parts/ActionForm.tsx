/** A form for the fields of an action. It sends the request of the action, and shows what was refused at the field. */
import { useId, useState, type FormEvent } from 'react';
import { request } from '../api/client';
import type { Action } from '../api/view';
import { ActionFields } from './ActionFields';
import { filledBody, missing, type Filled } from './action-body';
import { Button } from './Button';
import { Dialog } from './Dialog';
import { Happens } from './Happens';

interface Props {
  action: Action;
  onDone: () => void;
  onCancel: () => void;
}

export function ActionForm({ action, onDone, onCancel }: Props) {
  const [filled, setFilled] = useState<Filled>({});
  const [problems, setProblems] = useState<Record<string, string>>({});
  const [refused, setRefused] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const form = useId();
  const fields = action.fields ?? [];

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const empty = missing(fields, filled);
    if (empty) return setProblems({ [empty.name]: empty.text });
    if (!action.request || busy) return;
    setBusy(true);
    const answer = await request(action.request.method, action.request.path, filledBody(action.request.body, fields, filled));
    setBusy(false);
    if (answer.ok) return onDone();
    const { problem } = answer;
    setProblems(Object.fromEntries((problem.errors ?? []).map((each) => [each.field, each.message])));
    setRefused([problem.detail, problem.hint].filter(Boolean).join('. '));
  };

  return (
    <Dialog
      title={action.label}
      onClose={onCancel}
      footer={<><Button onClick={onCancel}>Cancel</Button><Button acts submit look="primary" form={form} off={busy ? 'It is being sent.' : action.refused}>{action.label}</Button></>}
    >
      <form id={form} onSubmit={(event) => void submit(event)}>
        <Happens className="happens" sentences={action.happens} />
        <ActionFields fields={fields} filled={filled} onFill={setFilled} problems={problems} />
        {refused && <p className="bad" role="alert">{refused}</p>}
      </form>
    </Dialog>
  );
}
