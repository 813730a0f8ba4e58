/** The story of a task, compact: what matters line by line, and between it how much else happened. Pure. */
import type { Told } from './types';

export type StoryLine = { type: 'told'; key: string; told: Told } | { type: 'folded'; key: string; items: Told[] };

/** So many plain lines in a row are still shown as they are. */
const PLAIN_MAX = 2;

export function isFailure(told: Told): boolean {
  return told.tone === 'error' || told.tone === 'warning';
}

/** The first and the last line always stand there. */
export function foldStory(items: readonly Told[]): StoryLine[] {
  const lines: StoryLine[] = [];
  let run: { told: Told; index: number }[] = [];
  const put = () => {
    if (run.length > PLAIN_MAX) lines.push({ type: 'folded', key: `fold ${run[0]?.index}`, items: run.map((each) => each.told) });
    else lines.push(...run.map(({ told, index }) => ({ type: 'told' as const, key: `${index}`, told })));
    run = [];
  };
  items.forEach((told, index) => {
    if (told.tone === 'plain' && index > 0 && index < items.length - 1) {
      run.push({ told, index });
      return;
    }
    put();
    lines.push({ type: 'told', key: `${index}`, told });
  });
  put();
  return lines;
}
