import './fleet.css';
import { EmptyState } from '../../parts/EmptyState';

export default function Fleet() {
  return (
    <>
      <h1 className="hide">Fleet</h1>
      <EmptyState glyph="fleet" title="Fleet" />
    </>
  );
}
