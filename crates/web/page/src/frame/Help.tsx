/** All keys, from the one table, filtered as one types. */
import { useMemo, useState } from 'react';
import type { KeyTerm } from '../api/view';
import { Dialog } from '../parts/Dialog';
import { Keys } from '../parts/KeyCap';
import { useTerms } from '../store/store';
import { closeOverlay } from './palette-state';
import { score } from './search';
import { VIEWS } from './views';

export function Help({ view }: { view: string }) {
  const [query, setQuery] = useState('');
  const keys = useTerms()?.keys;
  const groups = useMemo(() => byView(keys ?? [], query, view), [keys, query, view]);
  return (
    <Dialog title="Keys" wide onClose={closeOverlay}>
      <label className="field">
        <input data-first value={query} placeholder="What do you want to do?" aria-label="Filter keys" onChange={(event) => setQuery(event.target.value)} />
      </label>
      <div className="help">
        {groups.map(([name, rows]) => (
          <section key={name}>
            <h3 className="head">{name}</h3>
            <dl>
              {rows.map((row) => (
                <div key={row.action}>
                  <dt>{row.keys.map((way, index) => <span key={way}>{index > 0 && ' or '}<Keys keys={way} /></span>)}</dt>
                  <dd>{row.words}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
        {groups.length === 0 && <p className="dim">No key has these words.</p>}
      </div>
    </Dialog>
  );
}

/** This view first, then what holds everywhere, then the others. */
function byView(keys: readonly KeyTerm[], query: string, current: string): [string, KeyTerm[]][] {
  const groups = new Map<string, KeyTerm[]>();
  for (const row of keys) {
    if (query && score(`${row.words} ${row.keys.join(' ')} ${row.views.join(' ')}`, query) === 0) continue;
    for (const view of row.views.length === 0 ? ['everywhere'] : row.views) {
      groups.set(view, [...(groups.get(view) ?? []), row]);
    }
  }
  const place = (view: string) => (view === current ? 0 : view === 'everywhere' ? 1 : 2);
  const label = (view: string) => VIEWS.find((each) => each.id === view)?.label ?? view.charAt(0).toUpperCase() + view.slice(1);
  return [...groups].sort(([a], [b]) => place(a) - place(b)).map(([view, rows]) => [label(view), rows]);
}
