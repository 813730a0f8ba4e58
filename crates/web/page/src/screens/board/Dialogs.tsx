/** The dialogs of the board: what a move asks for, its targets on a narrow screen, a new task, a changed one. */
import { useEffect, useMemo } from 'react';
import { announce } from '../../frame/announce';
import { ActionDialog, type FormAction } from '../../parts/ActionForm';
import { Dialog } from '../../parts/Dialog';
import { Glyph } from '../../parts/Glyph';
import { Plain } from '../../parts/plain';
import { showToast } from '../../parts/Toast';
import { useActionsOn, useRow, useTerms } from '../../store/store';
import { label, refusedBy, said, startMove } from './moves';
import { moveOf, targetsOf } from './moving';
import { setBoard, useBoard, type BoardDialog } from './state';
import { EditTask, NewTask } from './TaskForms';

const close = () => setBoard({ dialog: null });

export function Dialogs() {
  const dialog = useBoard((state) => state.dialog);
  switch (dialog?.kind) {
    case 'new':
      return <NewTask onClose={close} />;
    case 'edit':
      return <EditTask key={dialog.task} task={dialog.task} onClose={close} />;
    case 'move':
      return <MoveDialog key={`${dialog.task} ${dialog.to}`} {...dialog} />;
    case 'targets':
      return <TargetsDialog task={dialog.task} />;
    case undefined:
      return null;
  }
}

function MoveDialog({ task, from, to, fields: names }: Extract<BoardDialog, { kind: 'move' }>) {
  const terms = useTerms();
  const row = useRow('tasks', task);
  const status = row?.status;
  // Somebody else may move it while the form is open: then the row holds, and what was typed stays until it is read.
  useEffect(() => {
    if (status === undefined || status === from) return;
    if (status !== to) return announce(`${task} is in ${label(status)} now.`);
    close();
    showToast({ glyph: 'back', tone: 'warn', title: `${task} is in ${label(to)} already.`, text: 'It was moved while you filled in the form: by somebody else, or by the fleet. Nothing of yours was sent.' });
  }, [status, from, to, task]);
  const action = useMemo((): FormAction | null => {
    const first = terms && moveOf(terms, from, to);
    if (!terms || !first || !row) return null;
    const now = moveOf(terms, row.status, to);
    const target = terms.statuses.find((each) => each.id === to);
    const fields = first.fields.filter((field) => !names || names.includes(field.name));
    const body: Record<string, unknown> = { to };
    // The server checks that a checklist is of the task's type.
    for (const field of fields) if (field.kind === 'checklist') body[field.name] = { type: row.type };
    return {
      code: 'move_task', label: `Move to ${label(to)}`, fields,
      happens: target?.final ? [target.words, `Nothing leads out of ${target.label}.`] : [],
      request: { method: 'POST', path: `/tasks/${encodeURIComponent(task)}/transitions`, body },
      refused: row.status !== from && !now?.allowed ? `${task} is in ${label(row.status)} now: it was moved while you filled in the form. ${now?.words ?? ''}` : null,
    };
  }, [terms, row, task, from, to, names]);
  if (!action || !row) return null;
  const wanted = { task, from, to };
  return (
    <ActionDialog
      title={`Move ${task} to ${label(to)}`}
      about={<Plain text={row.title} />}
      action={action}
      lenient
      onCancel={() => { close(); announce(`${task} is back in ${label(row.status)}.`); }}
      onDone={() => { close(); said(wanted); }}
      onRefused={(problem) => { close(); refusedBy(wanted, problem); }}
    >
      {!names && (action.fields?.length ?? 0) > 0 && <p className="small faint">What the task has already need not be given again.</p>}
    </ActionDialog>
  );
}

/** Where a card can go, on a narrow screen: forbidden targets are there too, off, with the words of the rule. */
function TargetsDialog({ task }: { task: string }) {
  const terms = useTerms();
  const row = useRow('tasks', task);
  const live = useActionsOn();
  if (!terms || !row) return null;
  return (
    <Dialog title={`Move ${task}`} onClose={close}>
      <p className="targets-of"><Plain text={row.title} /> <span className="faint">is in {label(row.status)}</span></p>
      <ul className="targets">
        {targetsOf(terms, row.status).sort((a, b) => Number(b.allowed) - Number(a.allowed)).map((target) => {
          const status = terms.statuses.find((each) => each.id === target.status);
          const words = target.allowed && !live ? 'The page is not live: actions are off until it is.' : target.words || status?.words;
          return (
            <li key={target.status}>
              <button
                type="button"
                aria-disabled={!target.allowed || !live ? true : undefined}
                onClick={() => {
                  if (!target.allowed || !live) return;
                  close();
                  void startMove({ task, from: row.status, to: target.status });
                }}
              >
                <Glyph name={status?.glyph ?? ''} />
                <span><span className="strong">{target.label}</span><span className="words"><Plain text={words ?? ''} /></span></span>
              </button>
            </li>
          );
        })}
      </ul>
    </Dialog>
  );
}
