import { Link } from 'wouter';
import { Glyph } from '../parts/Glyph';
import { Keys } from '../parts/KeyCap';
import { Menu } from '../parts/Menu';
import { Plain, plain } from '../parts/plain';
import { useCount, useFacts, useStore, useTerms } from '../store/store';
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
  const projects = useStore((state) => state.rows.all('projects'));
  // The table is one map that changes in place.
  useStore((state) => state.version);
  if (!name) return <span className="project">Adjutant</span>;
  const items = [...projects.values()].map((project) => ({
    id: project.id,
    label: plain(project.waiting > 0 ? `${project.name}, ${project.waiting} waiting` : project.name),
    checked: project.name === name,
    // Another project is another address of the server: the page starts there with its own stream.
    run: () => location.assign(`/p/${encodeURIComponent(project.name)}/board`),
  }));
  if (items.length < 2) return <span className="project"><Plain text={name} /></span>;
  return (
    <Menu className="project" label="Projects" items={items}>
      <span className="hide">Project </span><Plain text={name} /> <Glyph name="down" size={14} />
    </Menu>
  );
}
