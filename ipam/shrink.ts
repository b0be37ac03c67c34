import type { IPAMClaim } from '../api/ipam-claim.js';
import { controllerOf } from '../api/meta.js';
import {
  CLAIM_FINALIZER,
  CLAIM_NAD,
  CLAIM_OWNER_NAME,
  CLAIM_OWNER_UID,
  CLAIM_REQUESTED_ADDRESSES,
  CLAIM_VM_LABEL,
} from '../api/names.js';
import { identityOf, pick } from '../process/shrink.js';

/** Objects are made small before they are cached: what is not named here is dropped. */

/** The status is kept whole: its conditions are written back in one list. */
export function shrinkClaim({ metadata, spec, status }: IPAMClaim): IPAMClaim {
  const { creationTimestamp, generation, finalizers } = metadata;
  const annotations = pick(metadata.annotations, [
    CLAIM_NAD,
    CLAIM_OWNER_NAME,
    CLAIM_OWNER_UID,
    CLAIM_REQUESTED_ADDRESSES,
  ]);
  const labels = pick(metadata.labels, [CLAIM_VM_LABEL]);
  const controller = controllerOf({ metadata });
  return {
    metadata: {
      ...identityOf(metadata),
      ...(creationTimestamp !== undefined && { creationTimestamp }),
      ...(generation !== undefined && { generation }),
      ...(annotations && { annotations }),
      ...(labels && { labels }),
      ...(finalizers?.includes(CLAIM_FINALIZER) && { finalizers: [CLAIM_FINALIZER] }),
      ...(controller && { ownerReferences: [controller] }),
    },
    spec: { network: spec.network, interface: spec.interface },
    ...(status && { status }),
  };
}
