import './queue.css';
import { EmptyState } from '../../parts/EmptyState';

export default function Queue() {
  return (
    <>
      <h1 className="hide">Queue</h1>
      <EmptyState glyph="queue" title="Queue" />
    </>
  );
}
