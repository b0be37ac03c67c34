import { isCapacityResource } from '../../api/capacity.js';
import type { AddressLease } from '../../api/address-lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { HOLDFAST_IPAM, readIpamDelegation } from '../../api/ipam-delegation.js';
import { type KubeObject, type ObjectMeta, isBeingDeleted, objectKey } from '../../api/meta.js';
import { CLAIM_OWNER_UID, RESPONDERS_NAMESPACE } from '../../api/names.js';
import type { NetworkAttachmentDefinition } from '../../api/network-attachment.js';
import { isTerminal } from '../../api/pod.js';
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
  VIRTUAL_MACHINES,
} from '../../kube/resources.js';
import { type Resource, namespacedResource } from '../../kube/resource.js';
import { CommandError } from '../command-error.js';
import { usersOf } from './address-users.js';
import type { InstalledObject, ObservedClaim, ObservedData, ObservedInstallation, ObservedStage } from './observed.js';
import {
  CLUSTER_ROLE_BINDINGS,
  CUSTOM_RESOURCE_DEFINITIONS,
  DAEMON_SETS,
  KEPT_POLICY,
  OWN_KINDS,
  ROLES,
  ROLE_BINDINGS,
  STAGES,
  type Stage,
  crdNameOf,
} from './stages.js';

export type Reader = Pick<Client, 'list' | 'listAs'>;

/** The label of every object that the manifests create. */
export const INSTALLED = 'app.kubernetes.io/name=holdfast';
/** Objects of other software may have the label too. */
const OWN_NAME = /^holdfast(-|$)/;
/** Those of the shipped manifests. */
export const DEFAULT_NAMESPACES: readonly string[] = ['holdfast-system', 'holdfast-agents', RESPONDERS_NAMESPACE];
/** What `helm test` creates in the namespace `default`. */
const TEST = { namespace: 'default', name: 'holdfast-test', kinds: [ROLES, ROLE_BINDINGS] as readonly Resource[] };
/** What keeps a namespace, except pods. */
const FOREIGN_KINDS = [
  IPAM_CLAIMS,
  VIRTUAL_MACHINES,
  namespacedResource('v1', 'persistentvolumeclaims', 'PersistentVolumeClaim'),
];

interface Node extends KubeObject {
  status?: { capacity?: Record<string, string>; allocatable?: Record<string, string> };
}

/**
 * Reads what is installed, and with `everything` also the objects that Holdfast serves.
 * @throws {CommandError} if the user may not read it
 */
export async function observeInstallation(client: Reader, everything: boolean): Promise<ObservedInstallation> {
  const namespaces = await findNamespaces(client);
  const stages = await Promise.all(STAGES.map((stage) => observeStage(client, stage, namespaces)));
  const shared = await Promise.all(
    objectsOf(stages, NAMESPACES).map(async ({ metadata: { name } }) => {
      const content = await findForeignContent(client, name);
      return content === undefined ? [] : [{ name, content }];
    }),
  );
  return {
    namespaces,
    stages,
    sharedNamespaces: shared.flat(),
    pluginFolder: await findPluginFolder(client, namespaces),
    data: everything ? await observeData(client) : undefined,
  };
}

/** Reads the objects of one stage that exist now. */
export async function observeStage(
  client: Reader,
  stage: Stage,
  namespaces: ReadonlySet<string>,
): Promise<ObservedStage> {
  const objects = await listInstalled(client, stage.kinds, namespaces);
  return { stage, objects: objects.filter(({ metadata }) => metadata.name !== KEPT_POLICY.name) };
}

/** Lists the policy that stays with the kinds, and its binding. */
export async function listKeptPolicy(client: Reader): Promise<InstalledObject[]> {
  const objects = await listInstalled(client, KEPT_POLICY.kinds, new Set());
  return objects.filter(({ metadata }) => metadata.name === KEPT_POLICY.name);
}

/** Lists the pods of a stage that have not ended. */
export async function runningPods(
  client: Reader,
  { podLabels }: Stage,
  namespaces: ReadonlySet<string>,
): Promise<string[]> {
  const labelSelector = podLabels === undefined ? INSTALLED : `${INSTALLED},${podLabels}`;
  const { items } = await read(PODS, () => client.list(PODS, { labelSelector }));
  return items.filter((pod) => isOf(namespaces, PODS, pod) && !isTerminal(pod)).map(objectKey);
}

/** Returns something in a namespace that is lost with it, and does not belong to the installation. */
export async function findForeignContent(client: Reader, namespace: string): Promise<string | undefined> {
  const pods = await listExisting(
    client,
    PODS,
    (pod) => (isTerminal(pod) || isInstalled(pod) ? [] : [pod.metadata.name]),
    { namespace },
  );
  const [pod] = pods.flat();
  if (pod !== undefined) return `Pod ${pod}`;
  for (const resource of FOREIGN_KINDS) {
    const { items } = await read(resource, () => client.list(resource, { namespace, metadataOnly: true }));
    const foreign = items.find((item) => !isInstalled(item));
    if (foreign !== undefined) return `${resource.kind} ${foreign.metadata.name}`;
  }
  return undefined;
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

/** Reads them from objects that no tenant can write, which stay until the namespaces are gone. */
export async function findNamespaces(client: Reader): Promise<ReadonlySet<string>> {
  const subjects = await listExisting(
    client,
    CLUSTER_ROLE_BINDINGS,
    (binding) => (OWN_NAME.test(binding.metadata.name) ? (binding.subjects ?? []) : []),
    { labelSelector: INSTALLED },
  );
  const accounts = subjects.flat().filter(({ kind, name }) => kind === 'ServiceAccount' && OWN_NAME.test(name));
  return new Set([...DEFAULT_NAMESPACES, ...accounts.flatMap(({ namespace }) => namespace ?? [])]);
}

/** Like {@link findNamespaces}; those of the shipped manifests if the user may not read them. */
export function findNamespacesOrDefault(client: Reader): Promise<ReadonlySet<string>> {
  return findNamespaces(client).catch(() => new Set(DEFAULT_NAMESPACES));
}

/** True if an object with the label belongs to the installation. In other namespaces, any tenant may create such objects. */
function isOf(
  namespaces: ReadonlySet<string>,
  resource: Resource,
  { metadata: { namespace, name } }: KubeObject,
): boolean {
  if (!OWN_NAME.test(name)) return false;
  if (resource === NAMESPACES) return namespaces.has(name);
  if (namespace === undefined || namespaces.has(namespace)) return true;
  return namespace === TEST.namespace && name === TEST.name && TEST.kinds.includes(resource);
}

async function listInstalled(
  client: Reader,
  kinds: readonly Resource[],
  namespaces: ReadonlySet<string>,
): Promise<InstalledObject[]> {
  const options = { labelSelector: INSTALLED, metadataOnly: true };
  const lists = await Promise.all(
    kinds.map(async (resource) => {
      const { items } = await read(resource, () => client.list(resource, options));
      return items
        .filter((object) => isOf(namespaces, resource, object))
        .map(({ metadata }) => ({ resource, metadata }));
    }),
  );
  // pods of a workload end with it
  return lists.flat().filter(({ metadata }) => (metadata.ownerReferences ?? []).length === 0);
}

function isInstalled({ metadata: { name, labels } }: KubeObject): boolean {
  return OWN_NAME.test(name) && labels?.['app.kubernetes.io/name'] === 'holdfast';
}

async function findPluginFolder(client: Reader, namespaces: ReadonlySet<string>): Promise<string | undefined> {
  const { items } = await read(DAEMON_SETS, () => client.list(DAEMON_SETS, { labelSelector: INSTALLED }));
  return items
    .filter((set) => set.metadata.name === 'holdfast-agent' && isOf(namespaces, DAEMON_SETS, set))
    .flatMap(({ spec }) => spec?.template?.spec?.volumes ?? [])
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
