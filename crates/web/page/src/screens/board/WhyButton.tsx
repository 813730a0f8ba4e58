/** The one action of a refusal: why it is so. */
import { Button } from '../../parts/Button';
import { showToast } from '../../parts/Toast';
import { setBoard } from './state';

export function whyButton(task: string) {
  return <Button size="tiny" onClick={() => { showToast(null); setBoard({ drawer: task }); }}>Why</Button>;
}
