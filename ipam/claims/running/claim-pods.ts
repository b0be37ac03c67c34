import { type IPAMClaim, isWorkloadClaim } from '../../../api/ipam-claim.js';
import { omitUndefined } from '../../../api/json.js';
import { type KubeObject, type ObjectMeta, controllerOf, joinKey, objectKey } from '../../../api/meta.js';
import { mayReferToClaims, networkSelectionsOf } from '../../../api/networks/network-selection.js';
import { LAUNCHER_SELECTOR, type Pod, controllingVmi, isTerminal, staticPodUidOf } from '../../../api/pod.js';
import { LAUNCHER_LABEL, LAUNCHER_LABEL_VALUE } from '../../../api/names.js';
import { intern } from '../../../cluster/share.js';
import { datedMetadataOf, identityMetadataOf } from '../../../cluster/metadata.js';
import { creatorOf, hasNetworks } from '../../../cluster/kubevirt-controller.js';
import { BY_WORKLOAD, workloadOfClaim } from '../../../cluster/watch-specs.js';
import { Cache, type Lister } from '../../../kube/informers/cache.js';
import { findUnlessGone } from '../../../kube/absence.js';
import type { CallOptions, Client } from '../../../kube/client.js';
import type { Informer, ObjectChange } from '../../../kube/informers/informer.js';
import type { WatchSpec } from '../../../kube/informers/informers.js';
import { PODS } from '../../../kube/resources.js';
import { packInterfaces } from './reported-interfaces.js';

/** A pod as the IPAM caches it. Of a pod that neither references a claim nor belongs to a VMI, only the identity is cached. */
export interface ClaimPod extends KubeObject {
  metadata: ObjectMeta;
  /** Of a mirror pod: see {@link staticUidOf}. */
  staticUid?: string;
  /** All its containers have terminated and will not restart. */
  isTerminal: boolean;
  /** Names of the claims that its networks annotation references. */
  claims: readonly string[];
  isRunning?: boolean;
  /** The VMI that controls the pod. Absent for a pod without networks, which cannot have a claim's addresses. */
  vmi?: { name: string; uid: string };
  /** The user who created the pod, if recorded: see {@link creatorOf}. */
  creator?: string;
  /** It is bound to a node. */
  hasNode?: boolean;
  /** Its interfaces on NADs with addresses, as Multus reports them: see {@link packInterfaces}. */
  interfaces?: string;
}

/** Shared, so that a pod without references needs no array of its own. */
const NO_STRINGS: readonly string[] = [];
const BY_CLAIM = 'claim';
const BY_VMI = 'vmi';

/**
 * The launchers of the cluster. KubeVirt itself finds them by this label. The policy launcher-label makes sure that a pod that a VMI owns has it and keeps it;
 * that another pod has it too means nothing.
 */
export const CLAIM_PODS: WatchSpec<Pod, ClaimPod> = {
  resource: PODS,
  labelSelector: LAUNCHER_SELECTOR,
  transform: transformClaimPod,
  indexes: {
    [BY_CLAIM]: ({ metadata: { namespace = '' }, claims }) => claims.map((name) => ({ namespace, name })),
    [BY_VMI]: ({ metadata: { namespace = '' }, vmi }) => (vmi === undefined ? [] : [{ namespace, name: vmi.name }]),
  },
};

/** All other pods. Only those of some namespaces are watched: see {@link REFERRING_NAMESPACES}. */
export const OTHER_PODS: WatchSpec<Pod, ClaimPod> = {
  ...CLAIM_PODS,
  labelSelector: `${LAUNCHER_LABEL}!=${LAUNCHER_LABEL_VALUE}`,
};

export function transformClaimPod(pod: Pod): ClaimPod {
  const claims = podClaimReferences(pod);
  const vmi = hasNetworks(pod) ? controllingVmi(pod) : undefined;
  const isTerminated = isTerminal(pod);
  const small: ClaimPod =
    claims.length === 0 && vmi === undefined
      ? { metadata: identityMetadataOf(pod.metadata), isTerminal: isTerminated, claims }
      : omitUndefined({
          metadata: datedMetadataOf(pod.metadata),
          isTerminal: isTerminated,
          claims,
          isRunning: pod.status?.phase === 'Running',
          interfaces: packInterfaces(pod),
          vmi,
          hasNode: pod.spec?.nodeName ? true : undefined,
        });
  const staticUid = staticPodUidOf(pod);
  if (staticUid !== undefined) small.staticUid = staticUid;
  const creator = vmi && creatorOf(pod);
  if (creator !== undefined) small.creator = intern(creator);
  return small;
}

/** An unreadable annotation has no references: Multus attaches no network to such a pod either. */
function podClaimReferences(pod: Pod): readonly string[] {
  if (!mayReferToClaims(pod)) return NO_STRINGS;
  try {
    const names = networkSelectionsOf(pod).flatMap(({ claimReference }) => claimReference ?? []);
    const [first, second] = names;
    if (first === undefined) return NO_STRINGS;
    return second === undefined ? [first] : [...new Set(names)];
  } catch {
    return NO_STRINGS;
  }
}

/** A claim without a controller may still name its former workload. */
function claimWorkloads(claim: IPAMClaim): string[] {
  return isWorkloadClaim(claim) || controllerOf(claim) === undefined ? workloadOfClaim(claim) : [];
}

export interface ClaimPodInformer extends Pick<Informer<Pod, ClaimPod>, 'onChange'> {
  readonly cache: Lister<ClaimPod>;
}

/** Finds the pods that use a claim. */
export class ClaimPods {
  readonly #informer: ClaimPodInformer;
  readonly #claims: Pick<Lister<IPAMClaim>, 'byIndex'>;

  /** @param claims indexed by workload */
  constructor(informer: ClaimPodInformer, claims: Pick<Lister<IPAMClaim>, 'byIndex'>) {
    this.#informer = informer;
    this.#claims = claims;
  }

  /**
   * Returns the pods that use the claim or may use it: those that reference it, and the launchers of its VM, because virt-controller may have removed the
   * reference. Pods that have ended are left out.
   */
  podsOf(claim: IPAMClaim): readonly ClaimPod[] {
    const { cache } = this.#informer;
    const pods = new Set(cache.byIndex(BY_CLAIM, objectKey(claim)));
    for (const pod of claimWorkloads(claim).flatMap((workload) => cache.byIndex(BY_VMI, workload))) pods.add(pod);
    return [...pods].filter((pod) => !pod.isTerminal);
  }

  /** Calls the handler with the key of each claim whose pods have changed. */
  onChange(handler: (claimKey: string) => void): void {
    this.#informer.onChange((change) => {
      for (const key of this.#affectedClaims(change)) handler(key);
    });
  }

  #affectedClaims({ type, object, before }: ObjectChange<ClaimPod>): Set<string> {
    const keys = new Set<string>();
    if (type === 'changed' && before !== undefined && isUnchanged(before, object)) return keys;
    for (const pod of before === undefined ? [object] : [before, object]) {
      const { namespace } = pod.metadata;
      for (const claim of pod.claims) keys.add(joinKey(namespace, claim));
      if (pod.vmi === undefined) continue;
      for (const claim of this.#claims.byIndex(BY_WORKLOAD, joinKey(namespace, pod.vmi.name)))
        keys.add(objectKey(claim));
    }
    return keys;
  }
}

/** Pods are written often, so only fields that a decision reads count as a change. */
function isUnchanged(one: ClaimPod, other: ClaimPod): boolean {
  return comparisonKey(one) === comparisonKey(other);
}

function comparisonKey({ metadata, isTerminal, isRunning, vmi, hasNode, ...rest }: ClaimPod): string {
  const { claims, interfaces, creator } = rest;
  const deleting = metadata.deletionTimestamp !== undefined;
  return JSON.stringify([isTerminal, isRunning, deleting, vmi, hasNode, claims, interfaces, creator]);
}

/** True for a pod that waits for the addresses of the claim, so that it has none of them before the claim shows them. */
export function isWaitingFor({ claims, vmi, isRunning }: ClaimPod, claim: IPAMClaim): boolean {
  return claims.includes(claim.metadata.name) && !(vmi !== undefined && isRunning === true);
}

/** Lists the pods that use the claim or may use it from the API server, for decisions that must not be based on caches. */
export async function listClaimPods(
  claim: IPAMClaim,
  client: Pick<Client, 'listAs'>,
  { signal }: CallOptions,
): Promise<readonly ClaimPod[]> {
  const { namespace } = claim.metadata;
  const { items } = await client.listAs(PODS, transformClaimPod, { namespace, signal });
  return usersAmong(items, claim);
}

/** Reads the pod that the status of the claim names, because the caches do not have it. @returns undefined if it does not use the claim, or not any more */
export async function readOwnerPod(
  claim: IPAMClaim,
  client: Pick<Client, 'get'>,
  call: CallOptions,
): Promise<ClaimPod | undefined> {
  const { namespace } = claim.metadata;
  const pod = await findUnlessGone(client, PODS, { namespace, name: claim.status?.ownerPod?.name ?? '' }, call);
  return pod && usersAmong([transformClaimPod(pod)], claim)[0];
}

function usersAmong(pods: readonly ClaimPod[], claim: IPAMClaim): readonly ClaimPod[] {
  const cache = new Cache<ClaimPod>(CLAIM_PODS.indexes);
  for (const pod of pods) cache.set(pod);
  return new ClaimPods({ cache, onChange: () => undefined }, { byIndex: () => [] }).podsOf(claim);
}
