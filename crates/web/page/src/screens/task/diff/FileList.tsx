/** The files of a diff at the left, by folder. */
import { useMemo, type Ref } from 'react';
import { Glyph } from '../../../parts/Glyph';
import { Plain, plain } from '../../../parts/plain';
import type { DiffFile } from './parse';
import { Lines } from './Path';
import { splitPath } from './paths';
import type { Viewed } from './viewed';

interface Props {
  files: readonly DiffFile[];
  current: string | null;
  viewed: Viewed;
  /** Comments by path. */
  remarks: ReadonlyMap<string, number>;
  filter: string;
  onFilter: (text: string) => void;
  field: Ref<HTMLInputElement>;
  onChoose: (path: string) => void;
}

const FILTER_FROM = 9;

export function FileList({ files, current, viewed, remarks, filter, onFilter, field, onChoose }: Props) {
  const groups = useMemo(() => {
    const wanted = filter.toLowerCase();
    const map = new Map<string, DiffFile[]>();
    for (const file of files) {
      if (!file.path.toLowerCase().includes(wanted)) continue;
      const { folder } = splitPath(file.path);
      map.set(folder, [...(map.get(folder) ?? []), file]);
    }
    return [...map];
  }, [files, filter]);
  return (
    <aside className="pane rail" aria-label="Files">
      {(files.length >= FILTER_FROM || filter !== '') && (
        <div className="files-filter">
          <label className="field dense">
            <Glyph name="search" size={14} />
            <input ref={field} value={filter} placeholder="Filter files" aria-label="Filter files" onChange={(event) => onFilter(event.target.value)}
              onKeyDown={(event) => {
                if (event.key !== 'Escape') return;
                event.preventDefault();
                onFilter('');
                event.currentTarget.blur();
              }} />
          </label>
        </div>
      )}
      <div className="scroll files-scroll">
        {groups.map(([folder, list]) => (
          <section key={folder}>
            {folder !== '' && <h3 className="files-dir" title={plain(folder)}><Plain text={folder} /></h3>}
            <ul className="files">
              {list.map((file) => (
                <li key={file.path}>
                  <button type="button" className={viewed.of(file.path) === 'viewed' ? 'seen' : ''} aria-current={file.path === current || undefined}
                    title={plain(file.path)} onClick={() => onChoose(file.path)}>
                    <Sign state={viewed.of(file.path)} remarks={remarks.get(file.path) ?? 0} />
                    <span className="cut mono"><Plain text={splitPath(file.path).name} /></span>
                    <span className="micro">{file.binary ? 'binary' : <Lines added={file.added} removed={file.removed} />}</span>
                  </button>
                </li>
              ))}
            </ul>
          </section>
        ))}
        {groups.length === 0 && <p className="files-dir">No file has “{plain(filter)}” in its name.</p>}
      </div>
    </aside>
  );
}

function Sign({ state, remarks }: { state: string; remarks: number }) {
  if (remarks > 0) return <><Glyph name="talk" size={12} tone="you" /><span className="hide">{remarks} comments,</span></>;
  if (state === 'viewed') return <><Glyph name="check" size={12} /><span className="hide">viewed,</span></>;
  if (state === 'changed') return <><Glyph name="connection.reconnecting" size={12} tone="warn" /><span className="hide">changed since viewed,</span></>;
  return <span />;
}
