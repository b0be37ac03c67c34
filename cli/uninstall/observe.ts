import { isCapacityResource } from '../../api/capacity.js';
import type { AddressLease } from '../../api/address-lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { HOLDFAST_IPAM, readIpamDelegation } from '../../api/ipam-delegation.js';
import { type KubeObject, type ObjectMeta, isBeingDeleted, joinKey, objectKey } from '../../api/meta.js';
import { CLAIM_OWNER_UID } from '../../api/names.js';
import type { NetworkAttachmentDefinition } from '../../api/network-attachment.js';
import { NetworkSelectionError, networkSelectionsOf } from '../../api/network-selection.js';
import { type Pod, controllingVmi, isLauncher, isTerminal, staticPodUidOf } from '../../api/pod.js';
import type { Client, ListOptions } from '../../kube/client.js';
import { isForbidden, isNotFound } from '../../kube/errors.js';
import {
  ADDRESS_BLOCKS,
  ADDRESS_LEASES,
  ADDRESS_POOLS,
  IPAM_CLAIMS,
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  NODES,
  PODS,
} from '../../kube/resources.js';
import type { Resource } from '../../kube/resource.js';
import { CommandError } from '../command-error.js';
import type {
  AddressUser,
  InstalledObject,
  ObservedClaim,
  ObservedData,
  ObservedInstallation,
  ObservedStage,
} from './observed.js';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  DAEMON_SETS,
  type DaemonSet,
  KEPT_POLICY,
  OWN_KINDS,
  STAGES,
  type Stage,
  crdNameOf,
} from './stages.js';

export type Reader = Pick<Client, 'list' | 'listAs'>;

/** The label of every object that the manifests create. */
export const INSTALLED = 'app.kubernetes.io/name=holdfast';
/** Objects of other software may have the label too. */
const OWN_NAME = /^holdfast(-|$)/;

interface Node extends KubeObject {
  status?: { capacity?: Record<string, string>; allocatable?: Record<string, string> };
}

/**
 * Reads what is installed, and with `everything` also the objects that Holdfast serves.
 * @throws {CommandError} if the user may not read it
 */
export async function observeInstallation(client: Reader, everything: boolean): Promise<ObservedInstallation> {
  const stages = await Promise.all(STAGES.map((stage) => observeStage(client, stage)));
  const namespaces = objectsOf(stages, NAMESPACES).map(({ metadata }) => metadata.name);
  const shared = await Promise.all(namespaces.map((namespace) => hasForeignPods(client, namespace)));
  return {
    stages,
    sharedNamespaces: namespaces.filter((_, index) => shared[index]),
    pluginFolder: await findPluginFolder(client),
    data: everything ? await observeData(client) : undefined,
  };
}

/** Reads the objects of one stage that exist now. */
export async function observeStage(client: Reader, stage: Stage): Promise<ObservedStage> {
  const objects = await listInstalled(client, stage.kinds);
  return { stage, objects: objects.filter(({ metadata }) => metadata.name !== KEPT_POLICY.name) };
}

/** Lists the policy that stays with the kinds, and its binding. */
export async function listKeptPolicy(client: Reader): Promise<InstalledObject[]> {
  const objects = await listInstalled(client, KEPT_POLICY.kinds);
  return objects.filter(({ metadata }) => metadata.name === KEPT_POLICY.name);
}

/** Lists the pods of a stage that have not ended. */
export async function runningPods(client: Reader, { podLabels }: Stage): Promise<string[]> {
  const labelSelector = podLabels === undefined ? INSTALLED : `${INSTALLED},${podLabels}`;
  const { items } = await read(PODS, () => client.list(PODS, { labelSelector }));
  return items.filter((pod) => OWN_NAME.test(pod.metadata.name) && !isTerminal(pod)).map(objectKey);
}

/** Lists the objects of a kind, transformed; none if the API server does not serve the kind. */
export async function listExisting<T extends KubeObject, P>(
  client: Reader,
  resource: Resource<T>,
  transform: (object: T) => P,
  options: ListOptions = {},
): Promise<P[]> {
  return (await read(resource, () => client.listAs(resource, transform, options))).items;
}

/** Lists the CustomResourceDefinitions of Holdfast's own kinds that exist. */
export async function listOwnCrds(client: Reader): Promise<ObjectMeta[]> {
  const own = new Set(OWN_KINDS.map(crdNameOf));
  const found = await listExisting(client, CUSTOM_RESOURCE_DEFINITIONS, ({ metadata }) => metadata, {
    metadataOnly: true,
  });
  return found.filter(({ name }) => own.has(name));
}

/** True for a claim that Holdfast created or adopted. Claims of other software stay. */
export function isOwnClaim({ metadata }: IPAMClaim): boolean {
  return metadata.annotations?.[CLAIM_OWNER_UID] !== undefined;
}

/** Returns the extended resources of Holdfast that a node shows. */
export function capacityResourcesOf({ status }: Node): string[] {
  return Object.keys({ ...status?.capacity, ...status?.allocatable }).filter(isCapacityResource);
}

async function listInstalled(client: Reader, kinds: readonly Resource[]): Promise<InstalledObject[]> {
  const options = { labelSelector: INSTALLED, metadataOnly: true };
  const lists = await Promise.all(
    kinds.map(async (resource) => {
      const { items } = await read(resource, () => client.list(resource, options));
      return items.map(({ metadata }) => ({ resource, metadata }));
    }),
  );
  // pods of a workload end with it
  return lists
    .flat()
    .filter(({ metadata }) => OWN_NAME.test(metadata.name) && (metadata.ownerReferences ?? []).length === 0);
}

async function hasForeignPods(client: Reader, namespace: string): Promise<boolean> {
  const { items } = await read(PODS, () => client.list(PODS, { namespace }));
  return items.some((pod) => !isTerminal(pod) && pod.metadata.labels?.['app.kubernetes.io/name'] !== 'holdfast');
}

async function findPluginFolder(client: Reader): Promise<string | undefined> {
  const { items } = await read(DAEMON_SETS, () => client.list(DAEMON_SETS, { labelSelector: INSTALLED }));
  return items
    .flatMap((set: DaemonSet) => set.spec?.template?.spec?.volumes ?? [])
    .find(({ name }) => name === 'cni-bin')?.hostPath?.path;
}

async function observeData(client: Reader): Promise<ObservedData> {
  const [claims, leases, pods, pools, blocks, nads, nodes, crds, keptPolicy] = await Promise.all([
    listExisting(client, IPAM_CLAIMS, (claim) => ({ own: isOwnClaim(claim), claim: summarizeClaim(claim) })),
    listExisting(client, ADDRESS_LEASES, podUidOf),
    listExisting(client, PODS, (pod) => pod),
    listExisting(client, ADDRESS_POOLS, () => undefined),
    listExisting(client, ADDRESS_BLOCKS, () => undefined),
    listExisting(client, NETWORK_ATTACHMENT_DEFINITIONS, (nad) => (namesHoldfast(nad) ? [objectKey(nad)] : [])),
    listExisting(client, NODES, (node) => (capacityResourcesOf(node).length > 0 ? [node.metadata.name] : [])),
    listOwnCrds(client),
    listKeptPolicy(client),
  ]);
  const own = claims.filter((each) => each.own).map((each) => each.claim);
  return {
    claims: own,
    otherClaims: claims.length - own.length,
    pools: pools.length,
    blocks: blocks.length,
    leases: leases.length,
    users: usersOf(pods, new Set(own.map(({ key }) => key)), new Set(leases.flatMap((uid) => uid ?? []))),
    nads: nads.flat().sort(),
    nodes: nodes.flat().sort(),
    crds: crds.map(({ name }) => name),
    keptPolicy,
  };
}

function summarizeClaim(claim: IPAMClaim): ObservedClaim {
  return { key: objectKey(claim), isBeingDeleted: isBeingDeleted(claim) };
}

/** The UID of the pod that holds the lease. */
function podUidOf({ spec }: AddressLease): string | undefined {
  return spec.owner?.kind === 'Pod' && spec.releasedAt === undefined ? spec.owner.uid : undefined;
}

/** Finds pods that have a lease, or refer to one of the claims. */
function usersOf(pods: readonly Pod[], claims: ReadonlySet<string>, podUids: ReadonlySet<string>): AddressUser[] {
  return pods
    .filter((pod) => !isTerminal(pod))
    .filter((pod) => holdsLease(pod, podUids) || claimKeysOf(pod).some((key) => claims.has(key)))
    .map((pod) => {
      const vmi = isLauncher(pod) ? controllingVmi(pod) : undefined;
      return { pod: objectKey(pod), ...(vmi && { vm: joinKey(pod.metadata.namespace, vmi.name) }) };
    });
}

function holdsLease(pod: Pod, podUids: ReadonlySet<string>): boolean {
  // the lease of a static pod has the UID of its manifest
  return [pod.metadata.uid, staticPodUidOf(pod)].some((uid) => uid !== undefined && podUids.has(uid));
}

function claimKeysOf(pod: Pod): string[] {
  try {
    return networkSelectionsOf(pod).flatMap(({ claimReference }) =>
      claimReference === undefined ? [] : [joinKey(pod.metadata.namespace, claimReference)],
    );
  } catch (error) {
    // Multus cannot read it either, so the pod has no such network
    if (error instanceof NetworkSelectionError) return [];
    throw error;
  }
}

/** True also for a config that Holdfast cannot read, if it names the plugin. */
function namesHoldfast(nad: NetworkAttachmentDefinition): boolean {
  const delegation = readIpamDelegation(nad);
  if (delegation.kind === 'invalid') return (nad.spec?.config ?? '').includes(`"${HOLDFAST_IPAM}"`);
  return delegation.kind === 'holdfast';
}

function objectsOf(stages: readonly ObservedStage[], resource: Resource): readonly InstalledObject[] {
  return stages.flatMap(({ objects }) => objects.filter((object) => object.resource === resource));
}

/** Reads a list; an empty one if the API server does not serve the kind. */
async function read<T>(resource: Resource, list: () => Promise<{ items: T[] }>): Promise<{ items: T[] }> {
  try {
    return await list();
  } catch (error) {
    if (isNotFound(error)) return { items: [] };
    if (!isForbidden(error)) throw error;
    throw new CommandError(
      `you may not list ${resource.plural}${resource.group === '' ? '' : `.${resource.group}`} in all namespaces: run the command as a cluster administrator`,
      { cause: error },
    );
  }
}
