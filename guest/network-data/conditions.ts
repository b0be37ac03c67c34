import type { ReasonOf } from '../../api/conditions.js';
import type { ConditionOf } from '../../cluster/claim-conditions.js';

/** What became of the network data of a VM. */
export type NetworkDataOutcome =
  /** The VM does not ask for it. */
  | { readonly kind: 'none' }
  | { readonly kind: 'written'; readonly secret: string }
  | { readonly kind: 'not-written'; readonly reason: ReasonOf<'NetworkDataWritten'>; readonly message: string };

const WHEN_IT_APPLIES =
  'A guest gets changes when its VM is stopped and started, and cloud-init applies them only to a new instance-id or with ' +
  'updates: {network: {when: [boot]}}';

/** Returns the condition NetworkDataWritten of all claims of the VM. */
export function networkDataCondition(outcome: NetworkDataOutcome): ConditionOf<'NetworkDataWritten'> | undefined {
  switch (outcome.kind) {
    case 'none':
      return undefined;
    case 'written':
      return {
        status: 'True',
        reason: 'Written',
        message: `Secret ${outcome.secret} has the addresses of all claims of the VM. ${WHEN_IT_APPLIES}`,
      };
    case 'not-written':
      return { status: 'False', reason: outcome.reason, message: outcome.message };
  }
}
