import { runAtOnce } from '../../kube/run-in-slices.js';
import { checkLeaks, checkLockedLeases, checkNads, checkPools } from './check-addressing.js';
import { checkPolicies, checkWebhooks } from './check-admission.js';
import { checkClocks, checkCniFolder, checkKinds, checkRights } from './check-cluster.js';
import { checkProcesses, checkResponders } from './check-processes.js';
import { checkVms } from './check-vms.js';
import { type Finding, errorsFirst } from './finding.js';
import type { ObservedCluster } from './observe.js';

type Check = (observed: ObservedCluster) => Finding[];

const OF_INSTALLATION: readonly Check[] = [checkKinds, checkRights, checkWebhooks, checkPolicies, checkCniFolder];
const OF_LEASES: readonly Check[] = [checkLeaks, checkLockedLeases];
const OF_NETWORKS: readonly Check[] = [checkClocks, checkPools, checkNads, checkResponders];

/** Finds what is wrong, the errors first. */
export function diagnose(observed: ObservedCluster, clientVersion: string): Finding[] {
  return runAtOnce(diagnosis(observed, clientVersion));
}

/** As {@link diagnose}, in steps: the stories of a hundred thousand VMs take seconds. */
export function* diagnosis(observed: ObservedCluster, clientVersion: string): Generator<undefined, Finding[]> {
  return errorsFirst([
    ...checkProcesses(observed, clientVersion),
    ...[...OF_INSTALLATION, ...OF_NETWORKS].flatMap((check) => check(observed)),
    ...(yield* checkVms(observed)),
    ...OF_LEASES.flatMap((check) => check(observed)),
  ]);
}

/** True if the user may read nothing of what is checked: then no finding means nothing. */
export function isUnchecked({ refused, ...observed }: ObservedCluster): boolean {
  const { workloads, configurations, policies, pools, nads, claims, vms } = observed;
  return (
    refused.length > 0 &&
    [workloads, configurations, policies, pools, nads, claims, vms].every((part) => part === undefined)
  );
}
