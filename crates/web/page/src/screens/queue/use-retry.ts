/** Sends what a row of the queue offers, once at a time. */
import { useCallback, useState } from 'react';
import { request } from '../../api/client';
import type { Action, QueueRow } from '../../api/view';
import { announce } from '../../frame/announce';
import { plain } from '../../parts/plain';
import { showToast } from '../../parts/Toast';

export interface Retry {
  /** The row whose request is under way. */
  busy: string | null;
  /** An action that asks for something first. */
  form: Action | null;
  closeForm: () => void;
  act: (row: QueueRow, action: Action) => void;
}

export function useRetry(): Retry {
  const [busy, setBusy] = useState<string | null>(null);
  const [form, setForm] = useState<Action | null>(null);
  const act = useCallback((row: QueueRow, action: Action) => {
    if (busy !== null || !action.request) return;
    if ((action.fields ?? []).length > 0) return setForm(action);
    setBusy(row.id);
    void request(action.request.method, action.request.path, action.request.body).then((answer) => {
      setBusy(null);
      if (answer.ok) return announce(`${action.label}: ${row.task}. ${action.happens[0] ?? ''}`);
      const { problem } = answer;
      showToast({ glyph: 'back', tone: 'bad', title: `${action.label} was refused for ${row.task}.`, text: plain([problem.detail, problem.hint].filter(Boolean).join('. ')) });
    });
  }, [busy]);
  return { busy, form, closeForm: () => setForm(null), act };
}
