/**
 * What became of what people said to the agent of a task, by the records of the task: said; kept for the next step, or given to
 * the agent's program in the step that is under way; and the turn or step that had it. Pure.
 */
import type { components } from '../../api/types';
import type { MessageRow } from './fold';

export type Record = components['schemas']['Record'];

interface Told {
  effect?: string;
  text?: string;
}

interface Said {
  seq: number;
  at: number;
  by: string;
  text: string;
  /** The effect that tells the agent. */
  effect: string | null;
  delivered: number | null;
  kept: boolean;
  used: { at: number; words: string } | null;
}

export function messagesOf(records: readonly Record[]): MessageRow[] {
  const said: Said[] = [];
  for (const record of records) take(said, record, (record.data ?? {}) as { [member: string]: unknown });
  return said.map((each) => ({ kind: 'message', key: `m${each.seq}`, at: each.at, by: each.by, text: each.text, receipt: receiptOf(each) }));
}

function take(said: Said[], record: Record, data: { [member: string]: unknown }): void {
  const at = Date.parse(record.at);
  const last = said[said.length - 1];
  switch (record.kind) {
    case 'commented':
      // What agents and the system write as comments is not said to the agent.
      if (data['comment'] === 'comment' && String(data['by']).startsWith('human:')) {
        said.push({ seq: record.seq, at, by: String(data['by']).slice(6), text: String(data['text']), effect: null, delivered: null, kept: false, used: null });
      }
      break;
    case 'effect_asked': {
      const what = (data['what'] ?? {}) as Told;
      if (what.effect === 'tell_agent' && last && last.effect === null && what.text === last.text) last.effect = String(data['id']);
      break;
    }
    case 'effect_ended':
      for (const each of said) if (each.effect !== null && each.effect === data['id'] && data['how'] === 'done') each.delivered = at;
      break;
    case 'note_left':
      // Its program could not hear it, or no step was under way: it goes into the next prompt.
      for (const each of said) if (each.used === null && each.text === data['note']) Object.assign(each, { kept: true, delivered: null });
      break;
    case 'notes_told':
      for (const each of said) if (each.kept && each.used === null) each.used = { at, words: 'with the prompt of a step' };
      break;
    case 'run_moved': {
      const input = (data['input'] ?? {}) as { type?: string; turn?: number };
      if (input.type !== 'STEP') break;
      for (const each of said) if (each.delivered !== null && each.used === null) each.used = { at, words: `before turn ${input.turn}` };
      break;
    }
  }
}

function receiptOf(said: Said): MessageRow['receipt'] {
  if (said.used) return { state: 'consumed', words: said.used.words, at: said.kept ? said.used.at : said.delivered };
  if (said.delivered !== null) return { state: 'delivered', words: '', at: said.delivered };
  return said.kept ? { state: 'queued', words: 'goes with its next step', at: null } : { state: 'queued', words: 'sent', at: null };
}

/** Something may still become of one of them. */
export function unsettled(messages: readonly MessageRow[]): boolean {
  return messages.some((message) => message.receipt.state !== 'consumed');
}
