/**
 * Text that an agent is writing, from the stream of its run, until the transcript has it whole. The two arrive on different
 * connections, so either may be first; nothing is shown twice. Pure.
 */
import type { Entry } from './fold';

export interface LiveText {
  /** What has come of the text that is being written. */
  text: string;
  /** The transcript has this whole already: pieces of it that still come are not shown. */
  told: string;
}

export const noLiveText: LiveText = { text: '', told: '' };

export function pieceCame(live: LiveText, piece: string): LiveText {
  const text = live.text + piece;
  if (live.told === '') return { text, told: '' };
  const begun = text.trim();
  if (begun === live.told) return noLiveText;
  return live.told.startsWith(begun) ? { text, told: live.told } : { text, told: '' };
}

export function entriesCame(live: LiveText, entries: readonly Entry[]): LiveText {
  let { text, told } = live;
  for (const entry of entries) {
    // What a step left unsaid is not said in the next one.
    if (entry.kind === 'step' || entry.kind === 'end') text = told = '';
    if (entry.kind !== 'text') continue;
    const whole = entry.text.trim();
    const begun = text.trim();
    if (begun.startsWith(whole)) {
      text = begun.slice(whole.length).trimStart();
      told = '';
    } else if (whole.startsWith(begun)) told = whole;
    // Its beginning was missed, or a piece came twice: the transcript is right.
    else text = told = '';
  }
  return text === live.text && told === live.told ? live : { text, told };
}

/** The end of the transcript as it is when it is opened: it may be older than what is being written, so only a match counts. */
export function openedWith(live: LiveText, last: Entry | undefined): LiveText {
  const [begun, whole] = [live.text.trim(), last?.kind === 'text' ? last.text.trim() : ''];
  return last && whole !== '' && (begun.startsWith(whole) || whole.startsWith(begun)) ? entriesCame(live, [last]) : live;
}

/** What is shown of it. */
export function shownText(live: LiveText): string {
  return live.told === '' ? live.text : '';
}
