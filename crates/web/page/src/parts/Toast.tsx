/** Refusals and undo: what is true now, why, and one action. A toast stays until it is read: Esc or its button closes it. */
import { useEffect, useSyncExternalStore, type ReactNode } from 'react';
import { announce } from '../frame/announce';
import { Button } from './Button';
import { Glyph } from './Glyph';
import { modalIsOpen } from './modal';

export interface ToastContent {
  glyph: string;
  tone?: string;
  /** What is true now: the first sentence. */
  title: string;
  /** Why. */
  text?: string;
  /** The one action, already a button. */
  action?: ReactNode;
}

let shown: ToastContent | null = null;
const listeners = new Set<() => void>();

export function showToast(toast: ToastContent | null): void {
  shown = toast;
  if (toast) announce([toast.title, toast.text].filter(Boolean).join(' '));
  for (const listener of listeners) listener();
}

export function Toasts() {
  const toast = useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, () => shown);
  useEffect(() => {
    if (!toast) return;
    const onKey = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && !event.defaultPrevented && !modalIsOpen()) showToast(null);
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, [toast]);
  if (!toast) return null;
  return (
    <div className="toast">
      <Glyph name={toast.glyph} size={14} tone={toast.tone} />
      <span><b>{toast.title}</b> {toast.text}</span>
      {toast.action}
      <Button look="quiet" size="tiny" glyph="x" aria-label="Close" onClick={() => showToast(null)} />
    </div>
  );
}
