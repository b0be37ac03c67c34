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
import { isApiUnavailable, asReadError } from '../api-failure.js';
import type { RequestContext } from '../request-context.js';
import type { NodePod } from '../pods/node-pod.js';
import type { NodePods } from '../pods/node-pods.js';
import type { ReadCache } from './read-cache.js';

export interface OtherUsersDeps {
  readonly pods: Pick<NodePods, 'named' | 'list'>;
  readonly sightings: ReadCache;
  readonly kubevirt: KubeVirtControllerSource;
  readonly clock: Clock;
  readonly maxStalenessMs: number;
}

/** Why a pod cannot have the addresses now. */
export interface ClaimUseConflict {
  readonly reason: string;
  /** It goes by itself in a moment. */
  readonly isOnItsWay: boolean;
}

interface RequestingPod {
  readonly pod: NodePod;
  /** Name of the claim's owner, which its VMI shares. */
  readonly owner: string | undefined;
  readonly controller: KubeVirtController;
}

/** Two pods with the same addresses: only while a VM moves from one to the other. */
export class OtherUsers {
  readonly #deps: OtherUsersDeps;

  constructor(deps: OtherUsersDeps) {
    this.#deps = deps;
  }

  /**
   * @returns undefined where the addresses may be its
   * @throws {CniError} 11 where nobody says whether the other pod lives
   */
  async standingInTheWay(pod: NodePod, claim: IPAMClaim, call: RequestContext): Promise<ClaimUseConflict | undefined> {
    const named = claim.status?.ownerPod?.name;
    if (controllingVmi(pod) === undefined) return conflictOfOwnerPod(pod, claim);
    const controller = this.#deps.kubevirt.controller();
    // it was known when the pod was judged; now no pod would count as a launcher, and none would stand in the way
    if (controller.problem !== undefined) {
      return { reason: `IPAMClaim ${objectKey(claim)} gives no addresses: ${controller.problem}`, isOnItsWay: false };
    }
    const others = this.#launchersHere(pod, claim, controller).map(({ metadata }) => metadata.name);
    const suspects = new Set([...(named === undefined ? [] : [named]), ...others]);
    suspects.delete(pod.metadata.name);
    for (const name of suspects) {
      const why = await this.#judge({ pod, owner: claimOwnerOf(claim)?.name, controller }, name, call);
      if (why !== undefined) return { reason: `IPAMClaim ${objectKey(claim)} ${why}`, isOnItsWay: false };
    }
    return undefined;
  }

  async #judge(seeker: RequestingPod, name: string, call: RequestContext): Promise<string | undefined> {
    const { namespace } = seeker.pod.metadata;
    const cached = this.#deps.pods.named(namespace, name);
    if (cached !== undefined && !isConflicting(seeker, cached)) return undefined;
    const other = await this.#readOrRecall(joinKey(namespace, name), cached, call);
    if (other === undefined || !isConflicting(seeker, other)) return undefined;
    return usedBy(objectKey(other));
  }

  /** @param cached a watch lags, so that who lives in it may have ended */
  async #readOrRecall(key: string, cached: Pod | undefined, { signal }: RequestContext): Promise<Pod | undefined> {
    const { sightings, clock, maxStalenessMs } = this.#deps;
    try {
      return (await sightings.read(PODS, key, signal)).object;
    } catch (error) {
      const seen = isApiUnavailable(error) ? sightings.get(PODS, key, clock.now() - maxStalenessMs) : undefined;
      if (seen !== undefined) return seen.object;
      if (cached !== undefined && isApiUnavailable(error)) return cached;
      throw asReadError(error);
    }
  }

  /** What `status.ownerPod` does not say yet. */
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

/** A claim that is no VM's may be named by any pod of its namespace: the IPAM says which of them has it. */
function conflictOfOwnerPod({ metadata }: NodePod, claim: IPAMClaim): ClaimUseConflict | undefined {
  const named = claim.status?.ownerPod?.name;
  if (named === metadata.name) return undefined;
  const subject = `IPAMClaim ${objectKey(claim)}`;
  return named === undefined
    ? { reason: `${subject} has not been given to a pod yet`, isOnItsWay: true }
    : { reason: `${subject} ${usedBy(joinKey(metadata.namespace, named))}`, isOnItsWay: false };
}

function usedBy(key: string): string {
  return `is used by pod ${key}: the addresses are free for another pod once that one has ended`;
}

/** A pod that no VMI of the claim's owner controls has none of its addresses, whatever the status says. */
function isConflicting({ pod, owner, controller }: RequestingPod, other: Pod): boolean {
  return (
    vmiOfTrustedLauncher(other, controller)?.name === owner && !isTerminal(other) && !isMigrationTarget(pod, other)
  );
}

/** The label alone proves nothing, and a launcher that was a target once keeps it: a target is younger than its source. */
function isMigrationTarget(pod: NodePod, source: Pod): boolean {
  const vmi = controllingVmi(pod);
  if (vmi === undefined || vmi.uid !== controllingVmi(source)?.uid) return false;
  return pod.metadata.labels?.[MIGRATION_LABEL] !== undefined && podCreationTime(pod) >= podCreationTime(source);
}

function podCreationTime({ metadata }: KubeObject): number {
  return Date.parse(metadata.creationTimestamp ?? '') || 0;
}
