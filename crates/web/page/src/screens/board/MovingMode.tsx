/** Says in the foot which card is in the hand, where it is held, and which keys lead it. */
import { useMemo } from 'react';
import { useSetMode } from '../../frame/mode';
import { KeyCaps, Keys } from '../../parts/KeyCap';
import { useTerms } from '../../store/store';
import { place } from './moving';
import { useBoard } from './state';

export function MovingMode() {
  const moving = useBoard((state) => state.moving);
  useSetMode(useMemo(() => moving && (
    <>
      <span><b>Moving {moving.task}.</b> {place(moving)}</span>
      {moving.by === 'keys' && (
        <span className="moving-keys">
          <span><Arrow action="left" /><Arrow action="right" /> targets</span> <span><KeyCaps action="open" /> drop</span> <span><KeyCaps action="back" /> put back</span>
        </span>
      )}
    </>
  ), [moving]));
  return null;
}

/** The last way to press it, which is the arrow. */
function Arrow({ action }: { action: string }) {
  const keys = useTerms()?.keys.find((row) => row.action === action)?.keys.at(-1);
  return keys ? <Keys keys={keys} /> : null;
}
