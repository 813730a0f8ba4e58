/** What a narrow screen has no room for: search, other views, appearance. */
import { Glyph } from '../parts/Glyph';
import { Link } from 'wouter';
import { usePersonItems } from './PersonMenu';
import { openPalette } from './palette-state';
import { VIEWS } from './views';

export function More() {
  const items = usePersonItems();
  return (
    <div className="scroll">
      <h1 className="hide">More</h1>
      <ul className="more-list">
        <li><button type="button" onClick={openPalette}><Glyph name="search" />Search or do…</button></li>
        {VIEWS.slice(4).map((view) => <li key={view.id}><Link href={view.path}><Glyph name={view.glyph} />{view.label}</Link></li>)}
        {items.map((item) => (
          <li key={item.id}>
            <button type="button" aria-pressed={item.checked} onClick={item.run}>
              <Glyph name={item.checked ? 'check' : 'arrow'} tone={item.checked ? 'you' : 'faint'} />{item.label}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
