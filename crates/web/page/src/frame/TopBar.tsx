import { Link } from 'wouter';
import { Glyph } from '../parts/Glyph';
import { Keys } from '../parts/KeyCap';
import { Plain } from '../parts/plain';
import { useCount, useFacts, useTerms } from '../store/store';
import { ConnectionSign } from './ConnectionSign';
import { PersonMenu } from './PersonMenu';
import { openPalette } from './palette-state';
import { VIEWS, type ViewEntry } from './views';

export function TopBar({ lit }: { lit: string }) {
  const keys = useTerms()?.keys.find((row) => row.action === 'palette.open')?.keys[0];
  return (
    <header className="top">
      <Link className="mark" href="/board" aria-label="Adjutant: board"><Glyph name="mark" /></Link>
      <ProjectSwitcher />
      <nav className="views" aria-label="Views">
        {VIEWS.map((view) => <ViewLink key={view.id} view={view} lit={view.id === lit} />)}
      </nav>
      <button className="field dense search push wide-only" type="button" onClick={openPalette}>
        <Glyph name="search" size={14} />
        <span className="cut">Search or do…</span>
        {keys && <span className="push caps"><Keys keys={keys} /></span>}
      </button>
      <ConnectionSign />
      <PersonMenu />
    </header>
  );
}

function ViewLink({ view, lit }: { view: ViewEntry; lit: boolean }) {
  return (
    <Link href={view.path} aria-current={lit ? 'page' : undefined}>
      {view.label}
      {view.counts && <Count view={view} />}
    </Link>
  );
}

/** Nothing waits: no number, and no colour. */
export function Count({ view }: { view: ViewEntry }) {
  const count = useCount(view.counts ?? 'waiting');
  return count > 0 ? <span className={view.yours ? 'num you' : 'num'}>{count.toLocaleString('en')}</span> : null;
}

function ProjectSwitcher() {
  const name = useFacts()?.project;
  return <span className="project">{name ? <Plain text={name} /> : 'Adjutant'}</span>;
}
