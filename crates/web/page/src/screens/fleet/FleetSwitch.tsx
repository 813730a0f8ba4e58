/** Starts and stops the fleet as a whole. */
import type { Action } from '../../api/view';
import { useFacts } from '../../store/store';
import { ActionButton, type Doer } from './WorkerActions';

// The server offers the start among its facts, not yet the stop.
const STOP: Action = {
  code: 'stop_fleet', label: 'Stop fleet', endsWork: true, request: { method: 'POST', path: '/fleet/stop', body: {} },
  happens: [
    'No worker begins a step any more.',
    'Calls under way may finish, for 30 seconds unless the settings say otherwise; then they end, and their agents are told when they go on.',
    'Branches, trees and the log stay as they are: the fleet goes on from there when it is started.',
    'This page stays open: the server goes on.',
  ],
};

export function fleetActions(running: boolean | undefined, offered: readonly Action[]): readonly Action[] {
  return running ? [...offered, ...(offered.some((action) => action.code === STOP.code) ? [] : [STOP])] : offered;
}

export function FleetSwitch({ doer }: { doer: Doer }) {
  const facts = useFacts();
  if (!facts) return null;
  return <>{fleetActions(facts.running, facts.actions).map((action) => <ActionButton key={action.code} action={action} of="" doer={doer} look="plain" />)}</>;
}
