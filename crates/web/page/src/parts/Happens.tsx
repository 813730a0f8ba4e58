/** What happens then, one sentence a line. It stands above the button that does it. */
import { Glyph } from './Glyph';
import { Plain } from './plain';

export function Happens({ sentences, className }: { sentences: readonly string[]; className?: string }) {
  if (sentences.length === 0) return null;
  return (
    <ul className={className}>
      {sentences.map((sentence, index) => <li key={index}><Glyph name="arrow" size={12} /><span><Plain text={sentence} /></span></li>)}
    </ul>
  );
}
