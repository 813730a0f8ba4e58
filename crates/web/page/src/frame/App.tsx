/** The frame around every view. */
import { lazy, Suspense, useEffect } from 'react';
import { Redirect, Route, Router, Switch, useLocation } from 'wouter';
import { base } from '../api/base';
import { useKeyDispatch } from '../keys/dispatch';
import { Toasts } from '../parts/Toast';
import { useConnection, useFacts, useStore } from '../store/store';
import { Announcer } from './announce';
import { BottomTabs } from './BottomTabs';
import { Boundary } from './Boundary';
import { ConnectionSign } from './ConnectionSign';
import { Enter } from './Enter';
import { FirstRun } from './FirstRun';
import { Foot } from './Foot';
import { useFrameActions } from './frame-actions';
import { Help } from './Help';
import { More } from './More';
import { Palette } from './Palette';
import { useOverlay } from './palette-state';
import { SignedOut } from './SignedOut';
import { TopBar } from './TopBar';
import { TASK, VIEWS, viewOf } from './views';
import { Glyph } from '../parts/Glyph';

const Parts = __FIXTURE__ ? lazy(() => import('../dev/Parts')) : null;

export function App() {
  return (
    <Router base={base}>
      <Page />
      <Announcer />
    </Router>
  );
}

function Page() {
  const [path] = useLocation();
  const phase = useConnection().phase;
  if (path === '/enter') return <Bare><Enter /></Bare>;
  if (phase === 'signed-out') return <Bare><SignedOut /></Bare>;
  return <Framed path={path} />;
}

function Bare({ children }: { children: React.ReactNode }) {
  return (
    <div className="frame bare">
      <header className="top"><span className="mark"><Glyph name="mark" /><span className="project">Adjutant</span></span><span className="push row"><ConnectionSign /></span></header>
      <main>{children}</main>
      <footer className="foot">{location.host}</footer>
    </div>
  );
}

function Framed({ path }: { path: string }) {
  const { view, lit } = viewOf(path);
  const overlay = useOverlay((state) => state.open);
  useKeyDispatch(view);
  useFrameActions();
  useTitle(view);
  return (
    <div className="frame">
      <TopBar lit={lit} />
      <main id="main">
        <Boundary place={path}>
          <Screens view={view} />
        </Boundary>
        <Toasts />
      </main>
      <Foot view={view} />
      <BottomTabs lit={lit} />
      {overlay === 'palette' && <Palette />}
      {overlay === 'help' && <Help view={view} />}
    </div>
  );
}

function Screens({ view }: { view: string }) {
  const loaded = useStore((state) => state.loaded);
  const firstRun = useFacts()?.firstRun;
  const reason = useConnection().reason;
  // Nothing is shown before there is data: an empty list would say that there is nothing.
  if (!loaded) return <div className="alone"><p>{reason ? `No data yet: ${reason}` : 'Loading…'}</p></div>;
  if (firstRun && view === 'board') return <FirstRun />;
  return (
    <Suspense fallback={null}>
      <Switch>
        <Route path="/"><Redirect to="/board" replace /></Route>
        {VIEWS.map((each) => <Route key={each.id} path={each.route}><each.screen /></Route>)}
        <Route path={TASK.route}><TASK.screen /></Route>
        {Parts && <Route path="/parts"><Parts /></Route>}
        <Route path="/more"><More /></Route>
        <Route><div className="alone"><h1>Nothing has this address</h1><p>The link may be of another project, or of an older page.</p></div></Route>
      </Switch>
    </Suspense>
  );
}

/** A view that shows one object sets a better title itself. */
function useTitle(view: string): void {
  const project = useFacts()?.project;
  useEffect(() => {
    const label = VIEWS.find((each) => each.id === view)?.label;
    document.title = [label, project, 'Adjutant'].filter(Boolean).join(' · ');
  }, [view, project]);
}
