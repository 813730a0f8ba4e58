import './task.css';
import './review.css';
import { EmptyState } from '../../parts/EmptyState';

export default function Task() {
  return (
    <>
      <h1 className="hide">Task</h1>
      <EmptyState glyph="task.INBOX" title="Task" />
    </>
  );
}
