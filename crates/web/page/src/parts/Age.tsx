/** How long ago, or how long until. Both tick in place and stand still while the data is stale: the clock does. */
import { useClockText } from '../store/clock';
import { countdown, longAge, shortAge } from './time';

interface Props {
  /** A time of the API. */
  since: string;
  /** `9 m` or `9 min 4 s`. */
  long?: boolean;
}

export function Age({ since, long = false }: Props) {
  const from = Date.parse(since);
  const text = useClockText((now) => (Number.isNaN(from) ? '' : (long ? longAge : shortAge)(now - from)));
  return <time dateTime={since} title={new Date(from).toLocaleString()}>{text}</time>;
}

/** `3:12` until a time of the API; `0:00` after it. */
export function Countdown({ until }: { until: string }) {
  const to = Date.parse(until);
  const text = useClockText((now) => (Number.isNaN(to) ? '' : countdown(to - now)));
  return <time dateTime={until}>{text}</time>;
}
