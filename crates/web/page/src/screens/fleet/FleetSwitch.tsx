/** Starts and stops the fleet as a whole. */
import { useFacts } from '../../store/store';
import { ActionButton, type Doer } from './WorkerActions';

export function FleetSwitch({ doer }: { doer: Doer }) {
  const facts = useFacts();
  if (!facts) return null;
  return <>{facts.actions.map((action) => <ActionButton key={action.code} action={action} of="" doer={doer} look="plain" />)}</>;
}
