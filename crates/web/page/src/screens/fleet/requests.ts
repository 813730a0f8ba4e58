/** Requests of this screen. With example data they are answered by it. */
import { call } from '../../api/client';

/** Example data is shown. */
export const example = __FIXTURE__ && new URLSearchParams(location.search).has('fixture');

export const ask: typeof call = async (method, path, options) => {
  if (__FIXTURE__ && example) {
    const { answerExample } = await import('../../dev/example-fleet');
    return answerExample(method, path, options as { path?: Record<string, string>; query?: Record<string, unknown>; signal?: AbortSignal }) as never;
  }
  return call(method, path, options);
};
