/** Inputs for the fields of an action, as the server describes them. */
import { useId } from 'react';
import type { Field } from '../api/view';
import type { Filled } from './action-body';
import { Plain } from './plain';
import './action-fields.css';

interface Props {
  fields: readonly Field[];
  filled: Filled;
  onFill: (filled: Filled) => void;
  /** What is wrong, by the name of the field. */
  problems?: Readonly<Record<string, string>>;
}

export function ActionFields({ fields, filled, onFill, problems = {} }: Props) {
  return (
    <div className="action-fields">
      {fields.map((field, index) => (
        <OneField
          key={field.name}
          field={field}
          value={filled[field.name]}
          first={index === 0}
          problem={problems[field.name]}
          onChange={(value) => onFill({ ...filled, [field.name]: value })}
        />
      ))}
    </div>
  );
}

interface OneProps {
  field: Field;
  value: string | readonly string[] | undefined;
  first: boolean;
  problem: string | undefined;
  onChange: (value: string | readonly string[]) => void;
}

function OneField({ field, value, first, problem, onChange }: OneProps) {
  const id = useId();
  const about = `${id}-about`;
  const text = typeof value === 'string' ? value : '';
  const shared = { id, 'aria-describedby': about, 'aria-invalid': problem ? true : undefined, 'data-first': first || undefined } as const;
  if (field.kind === 'choices' || field.kind === 'checklist') return <Several field={field} value={value} problem={problem} onChange={onChange} />;
  return (
    <div className="action-field">
      <label htmlFor={id}><Plain text={field.label} />{!field.required && <span className="faint"> optional</span>}</label>
      {field.kind === 'choice' ? (
        <select {...shared} value={text} onChange={(event) => onChange(event.target.value)}>
          <option value="">Choose</option>
          {(field.choices ?? []).map((choice) => <option key={choice}>{choice}</option>)}
        </select>
      ) : field.kind === 'text' || field.kind === 'list' ? (
        <textarea {...shared} rows={4} value={text} onChange={(event) => onChange(event.target.value)} />
      ) : (
        <input {...shared} inputMode={field.kind === 'number' ? 'decimal' : undefined} value={text} onChange={(event) => onChange(event.target.value)} />
      )}
      <p id={about} className={problem ? 'small bad' : 'small dim'}>{problem ?? <Plain text={field.text} />}</p>
    </div>
  );
}

function Several({ field, value, problem, onChange }: Omit<OneProps, 'first'>) {
  const chosen = typeof value === 'string' || value === undefined ? [] : value;
  return (
    <fieldset className="action-field">
      <legend><Plain text={field.label} /></legend>
      {(field.choices ?? []).map((choice) => (
        <label key={choice} className="row">
          <input
            type="checkbox"
            checked={chosen.includes(choice)}
            onChange={(event) => onChange(event.target.checked ? [...chosen, choice] : chosen.filter((each) => each !== choice))}
          />
          <Plain text={choice} />
        </label>
      ))}
      <p className={problem ? 'small bad' : 'small dim'}>{problem ?? <Plain text={field.text} />}</p>
    </fieldset>
  );
}
