/** The text that an answer asks for, such as the reason of a denial. It is held like every decision, so it can be undone. */
import { useId, useState, type FormEvent } from 'react';
import { FieldInput } from '../../parts/FieldInput';
import { initialValues, missing, type Messages, type Values } from '../../parts/form';
import '../../parts/action-form.css';
import { Button } from '../../parts/Button';
import { Dialog } from '../../parts/Dialog';
import { Happens } from '../../parts/Happens';
import { Plain } from '../../parts/plain';
import type { WaitingRow } from '../../api/view';
import { waysOf } from './rows';
import type { Asked } from './use-inbox';

interface Props {
  asked: Asked;
  onFill: (values: Values) => void;
  onCancel: () => void;
}

export function DecideForm({ asked, onFill, onCancel }: Props) {
  const { action, label, rows } = asked;
  const fields = action.fields ?? [];
  const [values, setValues] = useState(() => initialValues(fields));
  const [messages, setMessages] = useState<Messages>({});
  const form = useId();
  const several = rows.length > 1;
  const happens = (row: WaitingRow) => (several && action.answer ? waysOf(row.actions)[action.answer] : action)?.happens ?? [];
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const wrong = missing(fields, values);
    setMessages(wrong);
    if (Object.keys(wrong).length === 0) onFill(values);
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
        {fields.map((field, index) => (
          <FieldInput
            key={field.name}
            field={field}
            value={values[field.name]}
            message={messages[field.name]}
            first={index === 0}
            onChange={(value) => setValues({ ...values, [field.name]: value })}
          />
        ))}
      </form>
    </Dialog>
  );
}
