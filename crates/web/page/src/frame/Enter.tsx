/** `/enter#SECRET`: trades the secret of a link for a session, then opens the page. */
import { useEffect, useState } from 'react';
import { enter } from '../api/session';
import { SignedOut } from './SignedOut';

// Read once, before the address is changed: a second rendering must not find it gone.
let code: string | null = null;

/** Takes the secret out of the address, so that it is in no history and no bookmark. */
export function takeCode(): void {
  if (code !== null) return;
  code = location.hash.slice(1);
  history.replaceState(null, '', location.pathname);
}

export function Enter() {
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    let gone = false;
    void enter(code ?? '').then((result) => {
      if (gone) return;
      if (result === null) location.replace('/');
      else setProblem(result);
    });
    return () => { gone = true; };
  }, []);
  return problem === null ? <div className="alone"><h1>Signing in…</h1></div> : <SignedOut problem={problem} />;
}
