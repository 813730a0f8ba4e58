/** No task was ever added: the steps to the first one. */
import { Glyph } from '../parts/Glyph';
import { Plain } from '../parts/plain';
import { useFacts } from '../store/store';
import { Copyable } from './Copyable';

export function FirstRun() {
  const facts = useFacts();
  if (!facts) return null;
  return (
    <div className="alone">
      <h1>Nothing to supervise yet</h1>
      <p><Plain text={facts.project} /> is set up and has no task. Add one, start the fleet, and this page fills itself.</p>
      <ol className="steps">
        <li>
          <Glyph name={facts.main.glyph} />
          <div><h2>{facts.main.text} <span className="mono">{facts.main.commit}</span></h2><p>No agent starts while main fails its own tests.</p></div>
        </li>
        <li className="next">
          <Glyph name="arrow" tone="you" />
          <div>
            <h2>Add the first task</h2>
            <p>What is wrong, where, and how to know that it is done.</p>
            <Copyable command="adj task add 'Name the file in the error message'" />
          </div>
        </li>
        <li>
          <Glyph name={facts.fleet.glyph} tone="faint" />
          <div><h2>Start the fleet</h2><p><Plain text={facts.fleet.text} /></p></div>
        </li>
      </ol>
      <p>To look around first, run <code>adj demo --stay</code>: it plays nine tickets with four workers. No key and no model is needed.</p>
    </div>
  );
}
