import { type IPAMClaim, workloadNameOf } from '../api/ipam-claim.js';
import { joinKey, objectKey } from '../api/meta.js';
import {
  type NetworkSelection,
  NetworkSelectionError,
  networkSelectionsOf,
} from '../api/networks/network-selection.js';
import { type Pod, controllingVmi, isTerminal } from '../api/pod.js';

/** The pods that use one of some claims or may use it, as ipam finds them. */
export class ClaimUsers {
  /** `namespace/name` of the claims, of their VMs and VMIs, and of the pods that their status names. */
  readonly #claims = new Set<string>();
  readonly #workloads = new Set<string>();
  readonly #ownerPods = new Set<string>();

  add(claim: IPAMClaim): this {
    const { namespace } = claim.metadata;
    const [workload, ownerPod] = [workloadNameOf(claim), claim.status?.ownerPod?.name];
    this.#claims.add(objectKey(claim));
    if (workload !== undefined) this.#workloads.add(joinKey(namespace, workload));
    if (ownerPod !== undefined) this.#ownerPods.add(joinKey(namespace, ownerPod));
    return this;
  }

  /** A launcher that is older than the claim does not name it: nobody can add the reference later (decision 52). */
  has(pod: Pod): boolean {
    if (isTerminal(pod)) return false;
    const { namespace } = pod.metadata;
    const vmi = controllingVmi(pod);
    return (
      this.#ownerPods.has(objectKey(pod)) ||
      (vmi !== undefined && this.#workloads.has(joinKey(namespace, vmi.name))) ||
      readableSelectionsIn(pod).some(({ claimReference = '' }) => this.#claims.has(joinKey(namespace, claimReference)))
    );
  }
}

/** Returns the network selections of a pod; none if its annotation is invalid, because Multus cannot read it either. */
export function readableSelectionsIn(pod: Pod): NetworkSelection[] {
  try {
    return networkSelectionsOf(pod);
  } catch (error) {
    if (error instanceof NetworkSelectionError) return [];
    throw error;
  }
}
