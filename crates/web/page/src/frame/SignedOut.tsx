/** Nobody is signed in here: what to do, and what goes on meanwhile. */
import { Copyable } from './Copyable';

export function SignedOut({ problem }: { problem?: string | null }) {
  return (
    <div className="alone">
      <h1>You are signed out</h1>
      {problem
        ? <p role="alert">{problem}</p>
        : <p>This browser has no session, or its session has ended. Nothing has stopped: the fleet goes on without this page.</p>}
      <section>
        <h2>Get a new link</h2>
        <Copyable command="adj url" />
        <p>Run it in the repository, on the machine that runs Adjutant. The link works once, within ten minutes.</p>
      </section>
    </div>
  );
}
