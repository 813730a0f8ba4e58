/** Says in the foot which card is in the hand, where it is held, and which keys lead it. */
import { useMemo } from 'react';
import { useSetMode } from '../../frame/mode';
import { KeyCaps } from '../../parts/KeyCap';
import { place } from './moving';
import { useBoard } from './state';

export function MovingMode() {
  const moving = useBoard((state) => state.moving);
  useSetMode(useMemo(() => moving && (
    <>
      <span><b>Moving {moving.task}.</b> {place(moving)}</span>
      {moving.by === 'keys' && (
        <span className="moving-keys">
          <span><KeyCaps action="left" /><KeyCaps action="right" /> targets</span> <span><KeyCaps action="open" /> drop</span> <span><KeyCaps action="back" /> put back</span>
        </span>
      )}
    </>
  ), [moving]));
  return null;
}
