/** Requests to the routes of docs/api.md, typed by docs/openapi.json. A refusal is a value, not an exception. */
import { base } from './base';
import { keyHeader } from './session';
import type { components, paths } from './types';

export type Problem = components['schemas']['Problem'];
export type Answer<T> = { ok: true; value: T; seq: number | null } | { ok: false; problem: Problem };

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';
type PathsWith<M extends Method> = { [P in keyof paths]: paths[P][M] extends { responses: unknown } ? P : never }[keyof paths];
type Json<R> = R extends { content: { 'application/json': infer T } } ? T : undefined;
type Success<R> = { [S in keyof R]: S extends 200 | 201 | 202 | 204 ? Json<R[S]> : never }[keyof R];
type Result<Op> = Op extends { responses: infer R } ? Success<R> : never;
type Body<Op> = Op extends { requestBody?: { content: { 'application/json': infer B } } } ? B : never;
type Query<Op> = Op extends { parameters: { query?: infer Q } } ? Q : never;

interface Options<Op> {
  /** Values of the `{…}` of the path. */
  path?: Record<string, string>;
  query?: Query<Op>;
  body?: Body<Op>;
  signal?: AbortSignal;
}

/** `call('get', '/tasks/{task}', { path: { task: 'ta-1' } })`. */
export async function call<M extends Method, P extends PathsWith<M>>(
  method: M,
  path: P,
  options: Options<paths[P][M]> = {},
): Promise<Answer<Result<paths[P][M]>>> {
  const filled = String(path).replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(options.path?.[name] ?? ''));
  return request(method, filled + queryString(options.query as Record<string, unknown> | undefined), options.body, options.signal);
}

/** For an address that is not known before it runs, such as that of an offered action. `path` is relative to `/api/v1`. */
export async function request<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Answer<T>> {
  let answer: Response;
  try {
    answer = await fetch(`${base}/api/v1${path}`, {
      method: method.toUpperCase(),
      headers: { accept: 'application/json', ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...keyHeader() },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
      cache: 'no-store',
    });
  } catch (error) {
    return { ok: false, problem: unreachable(error) };
  }
  const text = await answer.text().catch(() => '');
  const value = parsed(text);
  if (answer.ok) return { ok: true, value: value as T, seq: number(answer.headers.get('x-adj-seq')) };
  return { ok: false, problem: isProblem(value) ? value : unexplained(answer.status, text) };
}

function queryString(query: Record<string, unknown> | undefined): string {
  const pairs = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null);
  if (pairs.length === 0) return '';
  return `?${new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString()}`;
}

function parsed(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

function number(text: string | null): number | null {
  return text !== null && /^\d+$/.test(text) ? Number(text) : null;
}

function isProblem(value: unknown): value is Problem {
  return typeof value === 'object' && value !== null && typeof (value as Problem).detail === 'string';
}

function unreachable(error: unknown): Problem {
  const detail = error instanceof Error ? error.message : String(error);
  return { type: 'urn:adjutant:problem:UNREACHABLE', title: 'The server does not answer', status: 0, detail };
}

function unexplained(status: number, text: string): Problem {
  return { type: 'about:blank', title: `The server answered ${status}`, status, detail: text.slice(0, 500) || `status ${status}` };
}
