/** The views of a narrow screen: four and More, at the bottom, where a thumb is. */
import { Link } from 'wouter';
import { Glyph } from '../parts/Glyph';
import { Count } from './TopBar';
import { VIEWS } from './views';

export function BottomTabs({ lit }: { lit: string }) {
  return (
    <nav className="tabs-phone" aria-label="Views">
      {VIEWS.slice(0, 4).map((view) => (
        <Link key={view.id} href={view.path} aria-current={view.id === lit ? 'page' : undefined}>
          <Glyph name={view.glyph} />{view.label}
          {view.yours && <Count view={view} />}
        </Link>
      ))}
      <Link href="/more" aria-current={lit === 'more' ? 'page' : undefined}><Glyph name="menu" />More</Link>
    </nav>
  );
}
