/** Numbers and times in the words of the page. */
import { clockTime, longAge } from '../../parts/time';
import type { Run, Spend } from './types';

export function dollars(amount: number): string {
  return `$${amount.toFixed(2)}`;
}

export function spendWords(spend: Spend): string {
  const parts = [dollars(spend.usd)];
  if (spend.reservedUsd > 0) parts.push(`${dollars(spend.reservedUsd)} set aside`);
  if (spend.estimatedUsd > 0) parts.push(`about ${dollars(spend.estimatedUsd)} more, estimated`);
  if (spend.unpricedSteps > 0) parts.push(`${count(spend.unpricedSteps, 'step')} without a price`);
  return parts.join(', ');
}

export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString('en')} ${number === 1 ? one : many}`;
}

export function duration(milliseconds: number): string {
  return longAge(milliseconds);
}

export function holderName(holder: Run['holder']): string {
  return 'worker' in holder ? holder.worker : holder.agent;
}

/** `20:05:14`, with the day before it if it is not today. */
export function moment(at: string, now = Date.now()): string {
  const time = Date.parse(at);
  if (Number.isNaN(time)) return at;
  const sameDay = new Date(time).toDateString() === new Date(now).toDateString();
  return sameDay ? clockTime(time) : `${new Date(time).toLocaleDateString('en-CA')} ${clockTime(time)}`;
}

/** How a run of tests ended, by the words of the server: `exit code 0` is the only end that proves something. */
export function endTone(ended: string | null): 'ok' | 'bad' | 'faint' {
  if (ended === null) return 'faint';
  return ended === 'exit code 0' ? 'ok' : 'bad';
}

/** What an answer of a checklist proves: only `yes` is a tick. */
export function answerTone(answer: string | null | undefined): 'ok' | 'bad' | 'warn' | 'faint' {
  if (!answer) return 'faint';
  return answer === 'yes' ? 'ok' : answer === 'no' ? 'bad' : 'warn';
}

export const TONE_GLYPHS = { ok: 'check', bad: 'x', warn: 'worker.stuck', faint: 'clock' } as const;
