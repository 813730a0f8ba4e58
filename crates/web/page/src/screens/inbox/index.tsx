import './inbox.css';
import { EmptyState } from '../../parts/EmptyState';

export default function Inbox() {
  return (
    <>
      <h1 className="hide">Inbox</h1>
      <EmptyState glyph="inbox" title="Inbox" />
    </>
  );
}
