/** One field of a form, by its kind. Its message stands below it and is read with it. */
import { useId } from 'react';
import { Button } from './Button';
import { choiceLabel, type Check, type FormField, type Value } from './form';
import { TaskPicker } from './TaskPicker';

interface Props {
  field: FormField;
  value: Value | undefined;
  message: string | undefined;
  /** The first field of a form has the focus when the form opens. */
  first: boolean;
  onChange: (value: Value) => void;
}

interface Control {
  id: string;
  'aria-invalid'?: true;
  'aria-describedby'?: string;
  'data-first'?: true;
}

export function FieldInput({ field, value, message, first, onChange }: Props) {
  const id = useId();
  // The server often says of an empty field what its text says: it is said once.
  const repeats = message !== undefined && bare(message) === bare(field.text);
  const about = [field.text && !repeats && `${id}-about`, message && `${id}-message`].filter(Boolean).join(' ');
  const control: Control = {
    id,
    ...(message ? { 'aria-invalid': true as const } : {}),
    ...(about ? { 'aria-describedby': about } : {}),
    ...(first ? { 'data-first': true as const } : {}),
  };
  const many = ['choices', 'list', 'checklist'].includes(field.kind);
  const body = (
    <>
      {field.text && !repeats && <span id={`${id}-about`} className="about">{field.text}</span>}
      <Input field={field} value={value} control={control} onChange={onChange} />
      {message && <span id={`${id}-message`} className="message">{message}</span>}
    </>
  );
  const label = <>{field.label}{!field.required && <span className="faint"> optional</span>}</>;
  if (many) return <fieldset className="form-field" aria-describedby={about || undefined}><legend>{label}</legend>{body}</fieldset>;
  return <div className={field.short ? 'form-field short' : 'form-field'}><label htmlFor={id}>{label}</label>{body}</div>;
}

function bare(text: string): string {
  return text.trim().replace(/\.$/, '');
}

function Input({ field, value, control, onChange }: { field: FormField; value: Value | undefined; control: Control; onChange: (value: Value) => void }) {
  const text = typeof value === 'string' ? value : '';
  switch (field.kind) {
    case 'text':
      return <textarea {...control} className="input" rows={4} value={text} onChange={(event) => onChange(event.target.value)} />;
    case 'number':
      return <input {...control} className="input" inputMode="decimal" value={text} onChange={(event) => onChange(event.target.value)} />;
    case 'choice':
      return (
        <select {...control} className="input" value={text} onChange={(event) => onChange(event.target.value)}>
          {(text === '' || !field.required) && <option value="">{field.required ? 'Choose…' : 'Not set'}</option>}
          {(field.choices ?? []).map((choice) => <option key={choice} value={choice}>{choiceLabel(choice)}</option>)}
        </select>
      );
    case 'choices':
      return <Choices field={field} value={(value as string[] | undefined) ?? []} control={control} onChange={onChange} />;
    case 'list':
      return <Items field={field} value={(value as string[] | undefined) ?? []} control={control} onChange={onChange} />;
    case 'checklist':
      return <Checks field={field} value={(value as Check[] | undefined) ?? []} control={control} onChange={onChange} />;
    case 'tasks':
      return <TaskPicker {...control} chosen={(value as string[] | undefined) ?? []} onChange={onChange} />;
    default:
      return <input {...control} className="input" value={text} onChange={(event) => onChange(event.target.value)} />;
  }
}

interface ManyProps<T> { field: FormField; value: readonly T[]; control: Control; onChange: (value: T[]) => void }

function Choices({ field, value, control: { id, ...control }, onChange }: ManyProps<string>) {
  if (!field.choices?.length) return <p className="small dim">There is nothing to choose from.</p>;
  return (
    <div className="choices">
      {field.choices.map((choice, index) => (
        <label key={choice}>
          <input
            {...(index === 0 ? { ...control, id } : {})}
            type="checkbox"
            checked={value.includes(choice)}
            onChange={(event) => onChange(event.target.checked ? [...value, choice] : value.filter((each) => each !== choice))}
          />
          {choiceLabel(choice)}
        </label>
      ))}
    </div>
  );
}

function Items({ field, value, control: { id, ...control }, onChange }: ManyProps<string>) {
  const [least, most] = field.items ?? [0, Infinity];
  const change = (index: number, text: string) => onChange(value.map((each, at) => (at === index ? text : each)));
  return (
    <>
      {value.map((text, index) => (
        <span key={index} className="item">
          <input
            {...(index === 0 ? { ...control, id } : {})}
            className="input"
            aria-label={`${field.label} ${index + 1}`}
            value={text}
            onChange={(event) => change(index, event.target.value)}
          />
          {value.length > Math.max(1, least ?? 0) && (
            <Button look="quiet" glyph="x" aria-label={`Remove ${field.label} ${index + 1}`} onClick={() => onChange(value.filter((_, at) => at !== index))} />
          )}
        </span>
      ))}
      {value.length < (most ?? Infinity) && <Button size="tiny" look="quiet" glyph="plus" onClick={() => onChange([...value, ''])}>One more</Button>}
    </>
  );
}

/** The questions are given, or are written with their answers. */
function Checks({ field, value, control: { id, ...control }, onChange }: ManyProps<Check>) {
  const given = (field.choices?.length ?? 0) > 0;
  const change = (index: number, check: Partial<Check>) => onChange(value.map((each, at) => (at === index ? { ...each, ...check } : each)));
  return (
    <>
      {value.map((check, index) => (
        <span key={index} className="check">
          {given ? <label htmlFor={index === 0 ? id : `${id}-${index}`}>{check.item}</label> : (
            <input className="input" aria-label={`Question ${index + 1}`} placeholder="What was checked" value={check.item} onChange={(event) => change(index, { item: event.target.value })} />
          )}
          <input
            {...(index === 0 ? { ...control, id } : { id: `${id}-${index}` })}
            className="input"
            aria-label={given ? check.item : `Answer ${index + 1}`}
            placeholder="Answer"
            value={check.answer}
            onChange={(event) => change(index, { answer: event.target.value })}
          />
        </span>
      ))}
      {!given && <Button size="tiny" look="quiet" glyph="plus" onClick={() => onChange([...value, { item: '', answer: '' }])}>One more</Button>}
    </>
  );
}
