/** A command to run elsewhere, with a button that copies it. */
import { useState } from 'react';
import { Button } from '../parts/Button';

export function Copyable({ command }: { command: string }) {
  const [copied, setCopied] = useState(false);
  const copy = () => void navigator.clipboard?.writeText(command).then(() => setCopied(true), () => setCopied(false));
  return (
    <div className="cmd">
      <span className="p" aria-hidden="true">$</span><code className="cut">{command}</code>
      <Button look="quiet" size="tiny" glyph="copy" className="push" onClick={copy}>{copied ? 'Copied' : 'Copy'}</Button>
    </div>
  );
}
