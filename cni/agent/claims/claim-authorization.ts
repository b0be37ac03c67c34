import { type IPAMClaim, claimOwnerOf } from '../../../api/ipam-claim.js';
import { type KubeObject, joinKey, objectKey } from '../../../api/meta.js';
import type { VirtualMachine, VirtualMachineInstance } from '../../../api/kubevirt.js';
import type { NetworkConfig } from '../../../api/networks/network-attachment.js';
import { MIGRATION_LABEL, PERSISTENT_IPS_DISABLED, PERSISTENT_IPS_LABEL } from '../../../api/names.js';
import { type Pod, controllingVmi, isTerminal } from '../../../api/pod.js';
import type { Clock } from '../../../kube/clock.js';
import { isApiUnavailable, messageOf } from '../../../kube/errors.js';
import type { Resource } from '../../../kube/resource.js';
import { IPAM_CLAIMS, NAMESPACES, PODS, VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES } from '../../../kube/resources.js';
import { type Recheck, type RecheckableView, decideWithRechecks, recheckKey } from '../../../cluster/cluster-view.js';
import {
  type KubeVirtController,
  type KubeVirtControllerSource,
  describeUntrustedCreator,
  vmiOfTrustedLauncher,
} from '../../../cluster/kubevirt-controller.js';
import { type PersistentIPsGate, isNamespaceServed } from '../../../cluster/persistent-ips-gate.js';
import type { Attachment } from '../attachment.js';
import { asReadError, readResult } from '../cni-error.js';
import type { ReadCache } from '../live-reads.js';
import type { NodePod, NodePods } from '../node-pods.js';
import type { PoolLookup } from '../pool-lookup.js';
import type { RequestContext } from '../request-queue.js';
import { type AuthorizationDecision, type PendingDecision, decideClaim } from './claim-decision.js';

interface ClaimAuthorizationDeps {
  readonly pods: Pick<NodePods, 'named' | 'list'>;
  readonly reads: ReadCache;
  readonly lookup: PoolLookup;
  readonly gate: PersistentIPsGate;
  readonly kubevirt: KubeVirtControllerSource;
  readonly clock: Pick<Clock, 'now'>;
}

interface RequestingPod {
  readonly pod: NodePod;
  /** Name of the claim's owner, which is also that of its VMI. */
  readonly owner: string | undefined;
  readonly controller: KubeVirtController;
}

/**
 * Decides which claim a pod may use, and prevents that two pods use it, except during a live migration. It trusts recent cached reads, and
 * reads objects live before it refuses.
 */
export class ClaimAuthorization {
  readonly #deps: ClaimAuthorizationDeps;

  constructor(deps: ClaimAuthorizationDeps) {
    this.#deps = deps;
  }

  /**
   * Decides once, without waiting.
   * @param since ignores reads before this time, in the clock's ms
   * @throws {CniError} 11 if a read failed
   */
  async decide(
    attachment: Attachment,
    call: RequestContext,
    since = this.#deps.reads.staleBefore,
  ): Promise<AuthorizationDecision> {
    const { pod, selection } = attachment;
    const { namespace } = pod.metadata;
    const view = new ReadCacheView({ ...this.#deps, namespace, since, signal: call.signal });
    const { decision, rechecks } = await decideWithRechecks(view, () => decideClaim(attachment, view));
    const failure = view.failureOf(rechecks);
    if (failure !== undefined) throw asReadError(failure);
    if (decision.kind === 'claim') return this.#checkCreator(pod) ?? decision;
    const isPredicted = decision.kind === 'pending' && decision.isPredicted === true;
    // the webhook has already checked the namespace of a pod with a reference
    if (!isPredicted || selection.claimReference !== undefined) return decision;
    return (await this.#hasOptedOut(namespace, call)) ? { kind: 'none' } : decision;
  }

  /**
   * Finds another pod that uses the claim.
   * @returns undefined if the pod may use the claim
   * @throws {CniError} 11 if the state of the other pod cannot be read
   */
  async findConflict(pod: NodePod, claim: IPAMClaim, call: RequestContext): Promise<PendingDecision | undefined> {
    const named = claim.status?.ownerPod?.name;
    if (controllingVmi(pod) === undefined) return conflictOfOwnerPod(pod, claim);
    const controller = this.#deps.kubevirt.controller();
    // it was known during authorization; without it no pod would count as a launcher and every conflict would be missed
    if (controller.problem !== undefined) {
      return { kind: 'pending', reason: `IPAMClaim ${objectKey(claim)} cannot be used: ${controller.problem}` };
    }
    const request = { pod, owner: claimOwnerOf(claim)?.name, controller };
    // launchers that `status.ownerPod` may not name yet
    const isHere = (other: NodePod) =>
      other.metadata.namespace === pod.metadata.namespace && isConflicting(request, other);
    const here = this.#deps.pods.list().filter(isHere);
    const otherPods = new Set([...(named === undefined ? [] : [named]), ...here.map(({ metadata }) => metadata.name)]);
    otherPods.delete(pod.metadata.name);
    for (const name of otherPods) {
      const why = await this.#findUse(request, name, call);
      if (why !== undefined) return { kind: 'pending', reason: `IPAMClaim ${objectKey(claim)} ${why}` };
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
    const { reads } = this.#deps;
    try {
      return (await reads.read(PODS, key, signal)).object;
    } catch (error) {
      const seen = isApiUnavailable(error) ? reads.get(PODS, key) : undefined;
      if (seen !== undefined) return seen.object;
      if (cached !== undefined && isApiUnavailable(error)) return cached;
      throw asReadError(error);
    }
  }

  /** Refuses launchers that KubeVirt's controller did not create, because tenants can write owner references. */
  #checkCreator(pod: NodePod): AuthorizationDecision | undefined {
    const controller = this.#deps.kubevirt.controller();
    const problem = controllingVmi(pod) === undefined ? undefined : describeUntrustedCreator(pod, controller);
    if (problem === undefined) return undefined;
    const reason = `pod ${objectKey(pod)} may not use an IPAMClaim: ${problem}`;
    return { kind: controller.problem === undefined ? 'refused' : 'pending', reason };
  }

  async #hasOptedOut(namespace: string, { signal }: RequestContext): Promise<boolean> {
    const { object } = await readResult(this.#deps.reads.read(NAMESPACES, namespace, signal));
    return object?.metadata.labels?.[PERSISTENT_IPS_LABEL] === PERSISTENT_IPS_DISABLED;
  }
}

/** Any pod of the namespace may name a claim without a VM. `status.ownerPod`, which ipam sets, says which pod may use it. */
function conflictOfOwnerPod({ metadata }: NodePod, claim: IPAMClaim): PendingDecision | undefined {
  const named = claim.status?.ownerPod?.name;
  if (named === metadata.name) return undefined;
  const subject = `IPAMClaim ${objectKey(claim)}`;
  return named === undefined
    ? { kind: 'pending', reason: `${subject} has no owner pod yet`, isOnItsWay: true }
    : { kind: 'pending', reason: `${subject} ${usedBy(joinKey(metadata.namespace, named))}` };
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

/** The kinds that are rechecked in the namespace of the pod. */
const RESOURCES: Readonly<Record<Exclude<Recheck['kind'], 'network'>, Resource>> = {
  vmi: VIRTUAL_MACHINE_INSTANCES,
  vm: VIRTUAL_MACHINES,
  claim: IPAM_CLAIMS,
};

interface ReadCacheViewOptions extends Pick<ClaimAuthorizationDeps, 'reads' | 'lookup' | 'gate' | 'clock'> {
  readonly namespace: string;
  /** Ignores reads before this time, in the clock's ms. */
  readonly since: number;
  /** Ends live reads. */
  readonly signal: AbortSignal;
}

/** A namespace and NADs as recent live reads have shown them. Create one for each decision. */
class ReadCacheView implements RecheckableView {
  lookupFailure: string | undefined;
  readonly #options: ReadCacheViewOptions;
  /** Rechecked objects must have been read at or after this time, in the clock's ms. */
  readonly #began: number;
  readonly #failures = new Map<string, unknown>();

  constructor(options: ReadCacheViewOptions) {
    this.#options = options;
    this.#began = options.clock.now();
  }

  /** Ignores the opt-out of the namespace, which is read only if the decision depends on it. */
  get allowsNewClaims(): boolean {
    const { namespace, gate } = this.#options;
    return isNamespaceServed(namespace, gate, '');
  }

  vmi(name: string): VirtualMachineInstance | undefined {
    return this.#get(VIRTUAL_MACHINE_INSTANCES, name);
  }

  vm(name: string): VirtualMachine | undefined {
    return this.#get(VIRTUAL_MACHINES, name);
  }

  claim(name: string): IPAMClaim | undefined {
    return this.#get(IPAM_CLAIMS, name);
  }

  /** Returns the claims that were read. If a certain claim is needed, recheck its name. */
  claimsOf(ownerUid: string): readonly IPAMClaim[] {
    const { reads, since, namespace } = this.#options;
    const claims = reads.list(IPAM_CLAIMS, since);
    return claims.filter((claim) => claim.metadata.namespace === namespace && claimOwnerOf(claim)?.uid === ownerUid);
  }

  network(key: string): NetworkConfig | undefined {
    return this.#options.lookup.nad(key, this.#options.since)?.config;
  }

  /** Whether the object was read, found or not, or the read failed. */
  hasRechecked(recheck: Recheck): boolean {
    if (this.#failures.has(recheckKey(recheck))) return true;
    const { reads, lookup } = this.#options;
    if (recheck.kind === 'network') return lookup.hasReadNad(recheck.key, this.#began);
    return reads.get(RESOURCES[recheck.kind], this.#key(recheck.key), this.#began) !== undefined;
  }

  /** Never rejects. */
  async recheck(recheck: Recheck): Promise<void> {
    const { reads, lookup, signal } = this.#options;
    try {
      if (recheck.kind === 'network') await lookup.loadNad(recheck.key, { signal }, this.#began);
      else await reads.read(RESOURCES[recheck.kind], this.#key(recheck.key), signal);
    } catch (error) {
      this.#failures.set(recheckKey(recheck), error);
      this.lookupFailure ??= messageOf(error);
    }
  }

  /** Returns the error of a recheck that failed. */
  failureOf(rechecks: readonly Recheck[]): unknown {
    const failed = rechecks.find((recheck) => this.#failures.has(recheckKey(recheck)));
    return failed && this.#failures.get(recheckKey(failed));
  }

  #get<T extends KubeObject>(resource: Resource<T>, name: string): T | undefined {
    const { reads, since } = this.#options;
    return reads.get(resource, this.#key(name), since)?.object;
  }

  #key(name: string): string {
    return joinKey(this.#options.namespace, name);
  }
}
