import './board.css';
import { EmptyState } from '../../parts/EmptyState';

export default function Board() {
  return (
    <>
      <h1 className="hide">Board</h1>
      <EmptyState glyph="board" title="Board" />
    </>
  );
}
