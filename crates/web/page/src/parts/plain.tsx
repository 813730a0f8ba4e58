/**
 * Text of agents, titles, file names and output, as text. Characters that steer a terminal or turn the direction of writing are
 * shown as their code, so that they do nothing; the rest is isolated, so that its direction does not reach its neighbours.
 */
import type { ReactNode } from 'react';

/* eslint-disable no-control-regex */
// C0 and C1 controls except tab and line feed; direction marks, embeddings, overrides and isolates; invisible separators and
// joiners that can hide text; tags; the byte order mark; the line and paragraph separators.
const STEERING =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** For places that take a string: titles of windows, `title`, `aria-label`. */
export function plain(text: string): string {
  return text.replace(STEERING, (character) => `⟨${code(character)}⟩`);
}

/** The same for children: each such character stands in a small box. */
export function Plain({ text }: { text: string }): ReactNode {
  return <bdi>{pieces(text)}</bdi>;
}

function pieces(text: string): ReactNode[] {
  const out: ReactNode[] = [];
  let from = 0;
  for (const match of text.matchAll(STEERING)) {
    if (match.index > from) out.push(text.slice(from, match.index));
    out.push(<span key={match.index} className="control">{code(match[0])}</span>);
    from = match.index + match[0].length;
  }
  if (from < text.length) out.push(text.slice(from));
  return out;
}

function code(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}
