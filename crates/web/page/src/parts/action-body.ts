/** From what was filled in to the body of a request. Pure. */
import type { Field } from '../api/view';

/** What stands in the inputs, by the name of the field: text, or the chosen values. */
export type Filled = Readonly<Record<string, string | readonly string[]>>;

/** The first field that must be filled in and is empty. */
export function missing(fields: readonly Field[], filled: Filled): Field | null {
  return fields.find((field) => field.required && valueOf(field, filled) === undefined) ?? null;
}

/** The body with the values in it. A name with dots is a member of a member. An empty field is left out. */
export function filledBody(body: Readonly<Record<string, unknown>>, fields: readonly Field[], filled: Filled): Record<string, unknown> {
  let result: Record<string, unknown> = { ...body };
  for (const field of fields) {
    const value = valueOf(field, filled);
    if (value !== undefined) result = put(result, field.name.split('.'), value);
  }
  return result;
}

function put(into: Record<string, unknown>, [name = '', ...rest]: string[], value: unknown): Record<string, unknown> {
  if (rest.length === 0) return { ...into, [name]: value };
  const inner = into[name];
  const known = typeof inner === 'object' && inner !== null && !Array.isArray(inner) ? (inner as Record<string, unknown>) : {};
  return { ...into, [name]: put(known, rest, value) };
}

function valueOf(field: Field, filled: Filled): unknown {
  const raw = filled[field.name];
  if (raw === undefined) return undefined;
  if (typeof raw !== 'string') return raw.length > 0 ? raw : undefined;
  const text = raw.trim();
  if (text === '') return undefined;
  if (field.kind === 'number') return Number.isFinite(Number(text)) ? Number(text) : undefined;
  if (field.kind === 'list') return text.split('\n').map((line) => line.trim()).filter(Boolean);
  return text;
}
