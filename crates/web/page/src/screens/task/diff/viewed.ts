/** Which files of a task a person has seen, by the content of their patch. Kept by the browser: it is a note to oneself. */
import { useCallback, useEffect, useMemo, useState } from 'react';
import { base } from '../../../api/base';
import type { DiffFile } from './parse';

export type ViewedState = 'new' | 'viewed' | 'changed';

/** SHA-256 where the browser has it: only in a secure context. Else a short hash: it guards against change, not against an attacker. */
export async function hashOf(text: string): Promise<string> {
  if (globalThis.crypto?.subtle) {
    const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
    return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  }
  return shortHash(text);
}

export function shortHash(text: string): string {
  // Two rounds of FNV-1a with different starts.
  let one = 0x811c9dc5;
  let two = 0x1234567;
  for (let at = 0; at < text.length; at += 1) {
    one = Math.imul(one ^ text.charCodeAt(at), 0x01000193);
    two = Math.imul(two ^ text.charCodeAt(text.length - 1 - at), 0x01000193);
  }
  return `${(one >>> 0).toString(16)}-${(two >>> 0).toString(16)}-${text.length}`;
}

type Marks = Record<string, string>;

const nameOf = (task: string) => `adj-viewed${base}/${task}`;

function read(task: string): Marks {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(nameOf(task)) ?? '{}');
    return typeof value === 'object' && value !== null ? (value as Marks) : {};
  } catch {
    return {};
  }
}

function write(task: string, marks: Marks): void {
  try {
    localStorage.setItem(nameOf(task), JSON.stringify(marks));
  } catch {
    // The browser stores nothing: the marks hold until the page is left.
  }
}

export interface Viewed {
  of: (path: string) => ViewedState;
  toggle: (path: string) => void;
  /** How many files are seen. */
  count: number;
  /** Every file has its hash: before that nothing is said. */
  ready: boolean;
}

export function useViewed(task: string, files: readonly DiffFile[]): Viewed {
  const [marks, setMarks] = useState<Marks>(() => read(task));
  const [hashes, setHashes] = useState<{ of: readonly DiffFile[]; map: Map<string, string> } | null>(null);
  useEffect(() => {
    let over = false;
    void Promise.all(files.map(async (file) => [file.path, await hashOf(file.patch)] as const)).then((pairs) => {
      if (!over) setHashes({ of: files, map: new Map(pairs) });
    });
    return () => { over = true; };
  }, [files]);
  const map = hashes?.of === files ? hashes.map : null;
  const toggle = useCallback((path: string) => {
    const hash = map?.get(path);
    if (!hash) return;
    setMarks((before) => {
      const { [path]: mark, ...rest } = before;
      const next = mark === hash ? rest : { ...before, [path]: hash };
      write(task, next);
      return next;
    });
  }, [map, task]);
  return useMemo(() => {
    const of = (path: string): ViewedState => {
      const mark = Object.hasOwn(marks, path) ? marks[path] : undefined;
      if (!map || mark === undefined) return 'new';
      return mark === map.get(path) ? 'viewed' : 'changed';
    };
    return { of, toggle, ready: map !== null, count: files.filter((file) => of(file.path) === 'viewed').length };
  }, [marks, map, files, toggle]);
}
