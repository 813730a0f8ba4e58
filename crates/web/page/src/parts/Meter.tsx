/** A bar with what is spent (full), what is set aside (hatched), and the track up to the cap. */

interface Props {
  spent: number;
  reserved?: number;
  /** Null: there is no cap, so nothing is drawn. */
  cap: number | null;
  /** What it measures, for a screen reader. */
  label: string;
}

export function Meter({ spent, reserved = 0, cap, label }: Props) {
  if (cap === null || cap <= 0) return null;
  const part = (n: number) => Math.min(100, Math.max(0, (n / cap) * 100));
  const state = spent > cap ? 'over' : spent + reserved >= cap * 0.8 ? 'near' : '';
  const used = part(spent);
  return (
    <span className={`meter ${state}`} role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={cap} aria-valuenow={Math.min(spent, cap)}>
      <i style={{ width: `${used}%` }} />
      <i className="res" style={{ width: `${Math.min(part(reserved), 100 - used)}%` }} />
    </span>
  );
}
