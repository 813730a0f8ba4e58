/** A path that is cut in the middle, so that the name of the file stays. */
import { Plain, plain } from '../../../parts/plain';
import { splitPath } from './paths';

export function Path({ path }: { path: string }) {
  const { folder, name } = splitPath(path);
  return (
    <span className="path cut-mid" title={plain(path)}>
      <span>{folder && <Plain text={folder} />}</span>
      <span>{folder && '/'}<Plain text={name} /></span>
    </span>
  );
}

/** `+6 −1`, without zeros. */
export function Lines({ added, removed }: { added: number; removed: number }) {
  return (
    <span className="nowrap">
      {added > 0 && <span className="plus">+{added.toLocaleString('en')}</span>}
      {added > 0 && removed > 0 && ' '}
      {removed > 0 && <span className="minus">−{removed.toLocaleString('en')}</span>}
    </span>
  );
}
