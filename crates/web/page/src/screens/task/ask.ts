/** Requests of this screen. With `?fixture` they are answered by example data; that code is not in the product. */
import { request, type Answer } from '../../api/client';

const example = __FIXTURE__ && new URLSearchParams(location.search).has('fixture') ? import('../../dev/example-task') : null;

export async function ask<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Answer<T>> {
  if (__FIXTURE__ && example) return (await example).answer<T>(method, path, body);
  return request<T>(method, path, body, signal);
}

interface Page<T> {
  items: T[];
  next: string | null;
}

/** More pages than this are not fetched: the caller says that there is more. */
const PAGES_MAX = 30;

export interface Whole<T> {
  items: T[];
  /** There was more than this page shows. */
  cut: boolean;
}

/** All pages of a list. */
export async function askAll<T>(path: string, signal?: AbortSignal): Promise<Answer<Whole<T>>> {
  const items: T[] = [];
  let after: string | null = null;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const from: string = after === null ? '' : `&after=${encodeURIComponent(after)}`;
    const answer: Answer<Page<T>> = await ask<Page<T>>('get', `${path}${path.includes('?') ? '&' : '?'}limit=1000${from}`, undefined, signal);
    if (!answer.ok) return answer;
    items.push(...answer.value.items);
    after = answer.value.next;
    if (after === null) return { ok: true, value: { items, cut: false }, seq: answer.seq };
  }
  return { ok: true, value: { items, cut: true }, seq: null };
}

/** In the path of a request. */
export const part = encodeURIComponent;
