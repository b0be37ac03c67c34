import { type IPAMClaim, claimOwnerOf } from '../../../api/ipam-claim.js';
import { type KubeObject, joinKey, objectKey } from '../../../api/meta.js';
import { MIGRATION_LABEL } from '../../../api/names.js';
import { type Pod, controllingVmi, isTerminal } from '../../../api/pod.js';
import type { Clock } from '../../../kube/clock.js';
import {
  type KubeVirtController,
  type KubeVirtControllerSource,
  vmiOfTrustedLauncher,
} from '../../../cluster/kubevirt-controller.js';
import { PODS } from '../../../kube/resources.js';
import { asReadError, isApiUnavailable } from '../cni-error.js';
import type { RequestContext } from '../request-context.js';
import type { NodePod, NodePods } from '../node-pods.js';
import type { ReadCache } from './read-cache.js';

export interface OtherUsersDeps {
  readonly pods: Pick<NodePods, 'named' | 'list'>;
  readonly reads: ReadCache;
  readonly kubevirt: KubeVirtControllerSource;
  readonly clock: Clock;
  readonly maxStalenessMs: number;
}

/** Another use of the claim, which keeps the pod from using it now. */
export interface ClaimUseConflict {
  readonly reason: string;
  /** Whether the conflict is expected to end by itself soon. */
  readonly isOnItsWay: boolean;
}

interface RequestingPod {
  readonly pod: NodePod;
  /** Name of the claim's owner, which is also that of its VMI. */
  readonly owner: string | undefined;
  readonly controller: KubeVirtController;
}

/** Prevents that two pods use a claim, except during a live migration. */
export class OtherUsers {
  readonly #deps: OtherUsersDeps;

  constructor(deps: OtherUsersDeps) {
    this.#deps = deps;
  }

  /**
   * Finds another pod that uses the claim.
   * @returns undefined if the pod may use the claim
   * @throws {CniError} 11 if the state of the other pod cannot be read
   */
  async findConflict(pod: NodePod, claim: IPAMClaim, call: RequestContext): Promise<ClaimUseConflict | undefined> {
    const named = claim.status?.ownerPod?.name;
    if (controllingVmi(pod) === undefined) return conflictOfOwnerPod(pod, claim);
    const controller = this.#deps.kubevirt.controller();
    // it was known during authorization; without it no pod would count as a launcher and every conflict would be missed
    if (controller.problem !== undefined) {
      return { reason: `IPAMClaim ${objectKey(claim)} cannot be used: ${controller.problem}`, isOnItsWay: false };
    }
    const others = this.#launchersHere(pod, claim, controller).map(({ metadata }) => metadata.name);
    const otherPods = new Set([...(named === undefined ? [] : [named]), ...others]);
    otherPods.delete(pod.metadata.name);
    for (const name of otherPods) {
      const why = await this.#findUse({ pod, owner: claimOwnerOf(claim)?.name, controller }, name, call);
      if (why !== undefined) return { reason: `IPAMClaim ${objectKey(claim)} ${why}`, isOnItsWay: false };
    }
    return undefined;
  }

  async #findUse(request: RequestingPod, name: string, call: RequestContext): Promise<string | undefined> {
    const { namespace } = request.pod.metadata;
    const cached = this.#deps.pods.named(namespace, name);
    if (cached !== undefined && !isConflicting(request, cached)) return undefined;
    const other = await this.#readOrGet(joinKey(namespace, name), cached, call);
    if (other === undefined || !isConflicting(request, other)) return undefined;
    return usedBy(objectKey(other));
  }

  /** @param cached may be stale: the pod may have ended since */
  async #readOrGet(key: string, cached: Pod | undefined, { signal }: RequestContext): Promise<Pod | undefined> {
    const { reads, clock, maxStalenessMs } = this.#deps;
    try {
      return (await reads.read(PODS, key, signal)).object;
    } catch (error) {
      const seen = isApiUnavailable(error) ? reads.get(PODS, key, clock.now() - maxStalenessMs) : undefined;
      if (seen !== undefined) return seen.object;
      if (cached !== undefined && isApiUnavailable(error)) return cached;
      throw asReadError(error);
    }
  }

  /** Returns launchers on this node that `status.ownerPod` may not name yet. */
  #launchersHere(pod: NodePod, claim: IPAMClaim, controller: KubeVirtController): readonly NodePod[] {
    const { namespace, uid } = pod.metadata;
    const owner = claimOwnerOf(claim)?.name;
    return this.#deps.pods
      .list()
      .filter(
        (other) =>
          other.metadata.namespace === namespace &&
          other.metadata.uid !== uid &&
          !isTerminal(other) &&
          vmiOfTrustedLauncher(other, controller)?.name === owner,
      );
  }
}

/** Any pod of the namespace may name a claim without a VM. `status.ownerPod`, which ipam sets, says which pod may use it. */
function conflictOfOwnerPod({ metadata }: NodePod, claim: IPAMClaim): ClaimUseConflict | undefined {
  const named = claim.status?.ownerPod?.name;
  if (named === metadata.name) return undefined;
  const subject = `IPAMClaim ${objectKey(claim)}`;
  return named === undefined
    ? { reason: `${subject} has no owner pod yet`, isOnItsWay: true }
    : { reason: `${subject} ${usedBy(joinKey(metadata.namespace, named))}`, isOnItsWay: false };
}

function usedBy(key: string): string {
  return `is used by pod ${key}: another pod can use it once that pod has ended`;
}

/** Whether the other pod uses the claim. Only launchers of the claim's owner can, even if the status names another pod. */
function isConflicting({ pod, owner, controller }: RequestingPod, other: Pod): boolean {
  return (
    vmiOfTrustedLauncher(other, controller)?.name === owner && !isTerminal(other) && !isMigrationTarget(pod, other)
  );
}

/** Whether the pod is the migration target. Former targets keep the label, so the target must also be younger than the source. */
function isMigrationTarget(pod: NodePod, source: Pod): boolean {
  const vmi = controllingVmi(pod);
  if (vmi === undefined || vmi.uid !== controllingVmi(source)?.uid) return false;
  return pod.metadata.labels?.[MIGRATION_LABEL] !== undefined && podCreationTime(pod) >= podCreationTime(source);
}

function podCreationTime({ metadata }: KubeObject): number {
  return Date.parse(metadata.creationTimestamp ?? '') || 0;
}
