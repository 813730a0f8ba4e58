/** The text that an answer asks for, such as the reason of a denial. It is held like every decision, so it can be undone. */
import { useId, useState, type FormEvent } from 'react';
import { ActionFields } from '../../parts/ActionFields';
import { missing, type Filled } from '../../parts/action-body';
import { Button } from '../../parts/Button';
import { Dialog } from '../../parts/Dialog';
import { Happens } from '../../parts/Happens';
import { Plain } from '../../parts/plain';
import type { WaitingRow } from '../../api/view';
import { waysOf } from './rows';
import type { Asked } from './use-inbox';

interface Props {
  asked: Asked;
  onFill: (filled: Filled) => void;
  onCancel: () => void;
}

export function DecideForm({ asked, onFill, onCancel }: Props) {
  const { action, label, rows } = asked;
  const [filled, setFilled] = useState<Filled>({});
  const [problems, setProblems] = useState<Record<string, string>>({});
  const form = useId();
  const fields = action.fields ?? [];
  const several = rows.length > 1;
  const happens = (row: WaitingRow) => (several && action.answer ? waysOf(row.actions)[action.answer] : action)?.happens ?? [];
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const empty = missing(fields, filled);
    if (empty) setProblems({ [empty.name]: `Needed: ${empty.text}` });
    else onFill(filled);
  };
  return (
    <Dialog
      title={label}
      onClose={onCancel}
      footer={<><Button onClick={onCancel}>Cancel</Button><Button acts submit look={action.answer === 'no' || action.endsWork ? 'no' : 'primary'} form={form}>{label}</Button></>}
    >
      <form id={form} onSubmit={submit}>
        {rows.map((row) => (
          <div key={row.id} className="form-row">
            <p className="strong"><Plain text={row.text} /></p>
            <Happens className="happens" sentences={happens(row)} />
          </div>
        ))}
        <ActionFields fields={fields} filled={filled} onFill={setFilled} problems={problems} />
      </form>
    </Dialog>
  );
}
