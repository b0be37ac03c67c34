import { expect } from 'chai';
import type { Client } from '../../kube/client.js';
import { ClaimLeaseObserver } from '../story/claim-lease-observer.js';
import { until } from '../processes/wait.js';

/** The cool-down on the bed: twice its --max-staleness. */
const COOLDOWN_MS = 1_000;

/** Runs a test, waits until claims and leases are consistent, and fails if an invariant was violated at any time. */
export async function whileObserved(
  { client, space, namespace }: { client: Client; space: string; namespace: string },
  run: (observer: ClaimLeaseObserver) => Promise<void>,
): Promise<void> {
  const observer = new ClaimLeaseObserver(client, { space, cooldownMs: COOLDOWN_MS, namespace });
  observer.start();
  try {
    await run(observer);
    await until('claims and leases to be consistent', () => {
      const open = observer.inconsistencies();
      if (open.length > 0) throw new Error(open.slice(0, 5).join('; '));
      return true;
    });
  } finally {
    await observer.stop();
  }
  expect(observer.violations.join('\n')).to.equal('');
}
