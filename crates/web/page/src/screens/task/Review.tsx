/** Review: files at the left, the diff with its comments, and the round that is sent. */
import { useCallback, useMemo, useRef, useState } from 'react';
import { announce } from '../../frame/announce';
import { useActions } from '../../keys/actions';
import { EmptyState } from '../../parts/EmptyState';
import { Glyph } from '../../parts/Glyph';
import { Plain, plain } from '../../parts/plain';
import { showToast } from '../../parts/Toast';
import { useActionsOn, usePerson } from '../../store/store';
import { Composer } from './diff/Composer';
import { useComposing } from './diff/composing';
import { DiffList, type DiffListHandle } from './diff/DiffList';
import { FileRow, HunkRow, LineRow } from './diff/DiffRowView';
import { FileList } from './diff/FileList';
import type { DiffFile, DiffLine } from './diff/parse';
import { Remarks } from './diff/Remarks';
import { between, diffRows, isIn, lineKey, longer, numberOn, placeAt, step, type DiffRow } from './diff/rows';
import type { Viewed } from './diff/viewed';
import { RoundBar } from './RoundBar';
import { lineWords, placeOf, type Draft, type Place, type Talk } from './talk';
import type { TaskDiff } from './types';

interface Props {
  task: string;
  diff: TaskDiff;
  files: readonly DiffFile[];
  talk: Talk;
  viewed: Viewed;
  onSend: () => void;
}

export function Review({ task, diff, files, talk, viewed, onSend }: Props) {
  const list = useRef<DiffListHandle>(null);
  const filterField = useRef<HTMLInputElement>(null);
  const [filter, setFilter] = useState('');
  const [current, setCurrent] = useState<string | null>(null);
  const [cursor, setCursor] = useState<Place | null>(null);
  const [opened, setOpened] = useState<ReadonlyMap<string, boolean>>(new Map());
  const [composing, setComposing] = useComposing(task);
  const [saving, setSaving] = useState(false);
  const person = usePerson()?.name ?? 'you';
  const live = useActionsOn();

  const folded = useMemo(() => new Set(files.map((file) => file.path).filter((path) => !(opened.get(path) ?? viewed.of(path) !== 'viewed'))), [files, opened, viewed]);
  const place = useMemo(() => composing && { path: composing.path, side: composing.side, line: composing.line, endLine: composing.endLine },
    // The text of the comment does not change the rows.
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [composing?.path, composing?.side, composing?.line, composing?.endLine]);
  const editing = composing?.draft ?? null;
  const rows = useMemo(() => diffRows({ files, folded, remarks: talk.remarks, composing: place, editing }), [files, folded, talk.remarks, place, editing]);
  const counts = useMemo(() => {
    const map = new Map<string, number>();
    for (const remark of talk.remarks) map.set(placeOf(remark).path, (map.get(placeOf(remark).path) ?? 0) + 1);
    return map;
  }, [talk.remarks]);

  const pending = useRef<Promise<boolean> | null>(null);
  /** Keeps what is written. True if nothing is unsaved any more. Two strokes in a row are one request. */
  const keep = useCallback((): Promise<boolean> => {
    if (pending.current) return pending.current;
    if (!composing || composing.text.trim() === '') return Promise.resolve(true);
    const { text, draft, ...where } = composing;
    const save = async () => {
      setSaving(true);
      const problem = draft ? await talk.change(draft, text) : await talk.keep(where, text, diff.tip);
      setSaving(false);
      pending.current = null;
      if (problem) {
        showToast({ glyph: 'back', tone: 'bad', title: 'The comment is not kept.', text: problem.detail });
        return false;
      }
      setComposing(null);
      announce(`Draft kept on ${lineWords(where)}`);
      list.current?.focus();
      return true;
    };
    pending.current = save();
    return pending.current;
  }, [composing, talk, diff.tip, setComposing]);

  const compose = useCallback(async ({ path: file, side, line, endLine }: Place, draft: Draft | null = null) => {
    const where = { path: file, side, line, endLine };
    if (composing && composing.text.trim() !== '' && composing.draft === null && composing.path === where.path && composing.side === where.side && !draft) {
      setComposing({ ...composing, ...where });
      return;
    }
    if (!(await keep())) return;
    setComposing({ ...where, text: draft?.text ?? '', draft: draft?.id ?? null });
  }, [composing, keep, setComposing]);

  const setFold = useCallback((path: string, open: boolean) => setOpened((before) => new Map(before).set(path, open)), []);
  const onFold = useCallback((path: string) => setFold(path, folded.has(path)), [folded, setFold]);
  const onViewed = useCallback((path: string) => {
    setOpened((before) => new Map([...before].filter(([each]) => each !== path)));
    viewed.toggle(path);
  }, [viewed]);
  const onLine = useCallback((file: DiffFile, line: DiffLine) => setCursor(placeAt(file.path, line)), []);
  const onGutter = useCallback((file: DiffFile, line: DiffLine, range: boolean) => {
    const where = range ? between(cursor, file.path, line) : placeAt(file.path, line);
    setCursor(where);
    void compose(where);
  }, [cursor, compose]);
  const choose = useCallback((path: string) => {
    setFold(path, true);
    list.current?.scrollTo(`file ${path}`, 'start');
  }, [setFold]);

  const move = useCallback((next: Place | null) => {
    if (!next) return;
    setCursor(next);
    const row = rows.find((each) => each.type === 'line' && each.file.path === next.path && numberOn(each.line, next.side) === next.endLine);
    if (row?.type !== 'line') return;
    list.current?.scrollTo(lineKey(next.path, row.line));
    announce(`${lineWords(next)}: ${row.line.kind === 'add' ? 'added: ' : row.line.kind === 'del' ? 'removed: ' : ''}${plain(row.line.text)}`);
  }, [rows]);

  const path = cursor?.path ?? current;
  const noLine = cursor ? null : 'no line is chosen';
  useActions(useMemo(() => {
    const group = 'This diff';
    return [
      { id: 'next', label: 'Next line', group, run: () => move(step(rows, cursor, 1)) },
      { id: 'previous', label: 'Line before', group, run: () => move(step(rows, cursor, -1)) },
      { id: 'comment', label: 'Comment on the line', group, glyph: 'talk', acts: true, off: talk.missing ?? noLine, run: () => cursor && void compose(cursor) },
      { id: 'comment.range', label: 'One line more', group, off: noLine, run: () => cursor && move(longer(files, cursor)) },
      { id: 'draft.keep', label: 'Keep the draft', group, acts: true, off: composing?.text.trim() ? null : 'no comment is being written', run: () => void keep() },
      {
        id: 'send', label: `Send round ${talk.nextRound}`, group, acts: true,
        off: talk.missing ?? (talk.drafts.length > 0 || composing?.text.trim() ? null : 'there is no draft'),
        run: () => void keep().then((kept) => kept && onSend()),
      },
      { id: 'viewed', label: `Viewed: ${plain(path ?? '')}`, group, off: path ? null : 'no file is chosen', run: () => path && onViewed(path) },
      { id: 'open', label: 'Fold or unfold the file', group, off: path ? null : 'no file is chosen', run: () => path && onFold(path) },
      { id: 'filter', label: 'Filter the files', group, run: () => filterField.current?.focus() },
      ...(cursor ? [{ id: 'back', label: 'No line', group, run: () => setCursor(null) }] : []),
    ];
  }, [rows, cursor, files, talk, composing, path, noLine, move, compose, keep, onViewed, onFold, onSend]));

  const render = (row: DiffRow) => {
    switch (row.type) {
      case 'file': return <FileRow file={row.file} folded={row.folded} remarks={row.remarks} viewed={viewed.of(row.file.path)} onFold={onFold} onViewed={onViewed} />;
      case 'note': return <p className="diff-note"><Plain text={row.text} /></p>;
      case 'hunk': return <HunkRow hunk={row.hunk} />;
      case 'line': return <LineRow file={row.file} line={row.line} on={(cursor !== null && isIn(cursor, row.file.path, row.line)) || (place !== null && isIn(place, row.file.path, row.line))} onGutter={talk.missing || !live ? null : onGutter} onLine={onLine} />;
      case 'talk': return <div className="talk-row"><Remarks remarks={row.remarks} where={row.where} talk={talk} onEdit={(draft) => void compose(draft, draft)} /></div>;
      case 'compose': return composing && (
        <div className="talk-row"><Composer composing={composing} person={person} saving={saving} onText={(text) => setComposing({ ...composing, text })} onKeep={() => void keep()}
          onClose={() => { setComposing(null); list.current?.focus(); }} onLeave={() => list.current?.focus()} /></div>
      );
    }
  };

  if (files.length === 0) return <div className="pane main"><NoFiles diff={diff} /></div>;
  return (
    <>
      <FileList files={files} current={current} viewed={viewed} remarks={counts} filter={filter} onFilter={setFilter} field={filterField} onChoose={choose} />
      <div className="pane main">
        <Notices diff={diff} missing={talk.missing} />
        <DiffList rows={rows} render={render} onFile={setCurrent} handle={list} />
        <RoundBar talk={talk} onSend={onSend} cursor={cursor} onComment={() => cursor && void compose(cursor)} composing={composing !== null} />
      </div>
    </>
  );
}

function NoFiles({ diff }: { diff: TaskDiff }) {
  if (!diff.cutAt) return <EmptyState glyph="task.REVIEW" title="It changes nothing">Its branch has no difference to main.</EmptyState>;
  return (
    <div className="scroll">
      <EmptyState glyph="task.REVIEW" title={`The diff is longer than ${diff.cutAt.toLocaleString('en')} bytes`}><Plain text={diff.message ?? ''} /></EmptyState>
      <pre className="code diff-stat"><Plain text={diff.diff} /></pre>
    </div>
  );
}

/** What must be known before the diff is read. Each stands there once. */
function Notices({ diff, missing }: { diff: TaskDiff; missing: string | null }) {
  const { moved } = diff;
  if (!moved && !missing) return null;
  return (
    <div className="notices">
      {moved && <p><Glyph name="worker.stuck" size={14} tone="warn" /><span>{moved.commits} {moved.commits === 1 ? 'commit' : 'commits'} on <code><Plain text={moved.branch} /></code> are not in this diff and do not land with it.</span></p>}
      {missing && <p><Glyph name="talk" size={14} tone="faint" /><span><Plain text={missing} /></span></p>}
    </div>
  );
}
