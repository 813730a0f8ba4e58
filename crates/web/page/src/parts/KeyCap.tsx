/** Key caps, by the one table of keys. Hidden on narrow screens. */
import { Fragment } from 'react';
import { useTerms } from '../store/store';

/** One way to press it: `Ctrl+K`, `M R`. */
export function Keys({ keys }: { keys: string }) {
  return (
    <>
      {keys.split(' ').flatMap((stroke) => stroke === '+' ? ['+'] : stroke.split('+')).map((key, index) => (
        <Fragment key={index}><kbd>{key}</kbd></Fragment>
      ))}
    </>
  );
}

/** The first way to press an action; nothing if the table has no key for it. */
export function KeyCaps({ action }: { action: string }) {
  const keys = useTerms()?.keys.find((row) => row.action === action)?.keys[0];
  return keys ? <Keys keys={keys} /> : null;
}
