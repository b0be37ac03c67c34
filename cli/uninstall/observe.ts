import { isCapacityResource } from '../../api/capacity.js';
import type { AddressLease } from '../../api/address-lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { HOLDFAST_IPAM, readIpamDelegation } from '../../api/ipam-delegation.js';
import { type KubeObject, type ObjectMeta, objectKey } from '../../api/meta.js';
import { CLAIM_OWNER_UID } from '../../api/names.js';
import type { NetworkAttachmentDefinition } from '../../api/network-attachment.js';
import { type Pod, isTerminal } from '../../api/pod.js';
import type { Client } from '../../kube/client.js';
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
import { qualifiedName } from '../forbidden.js';
import { CRDS, DAEMON_SETS, INSTALLED, findNamespaces, hasOwnName, isOwn, pluginFolderOf } from '../installation.js';
import { listAsAdministrator } from '../reader.js';
import { usersOf } from './address-users.js';
import type { InstalledObject, ObservedData, ObservedInstallation, ObservedStage } from './plan.js';
import { KEPT_POLICY, OWN_KINDS, ROLES, ROLE_BINDINGS, STAGES, type Stage } from './stages.js';

type ListClient = Pick<Client, 'listAs'>;

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
export async function observeInstallation(client: ListClient, everything: boolean): Promise<ObservedInstallation> {
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
  client: ListClient,
  stage: Stage,
  namespaces: ReadonlySet<string>,
): Promise<ObservedStage> {
  const objects = await listInstalled(client, stage.kinds, namespaces);
  return { stage, objects: objects.filter(({ metadata }) => metadata.name !== KEPT_POLICY.name) };
}

/** Lists the policy that stays with the kinds, and its binding. */
export async function listKeptPolicy(client: ListClient): Promise<InstalledObject[]> {
  const objects = await listInstalled(client, KEPT_POLICY.kinds, new Set());
  return objects.filter(({ metadata }) => metadata.name === KEPT_POLICY.name);
}

/** Lists the pods of a stage that have not ended. */
export async function runningPods(
  client: ListClient,
  { podLabels }: Stage,
  namespaces: ReadonlySet<string>,
): Promise<string[]> {
  const labelSelector = podLabels === undefined ? INSTALLED : `${INSTALLED},${podLabels}`;
  const isRunning = (pod: Pod) => isOf(namespaces, PODS, pod) && !isTerminal(pod);
  const pods = await listAsAdministrator(client, PODS, (pod) => (isRunning(pod) ? [objectKey(pod)] : []), {
    labelSelector,
  });
  return pods.flat();
}

/** Returns something in a namespace that is lost with it, and does not belong to the installation. */
export async function findForeignContent(client: ListClient, namespace: string): Promise<string | undefined> {
  const pods = await listAsAdministrator(
    client,
    PODS,
    (pod) => (isTerminal(pod) || isInstalled(pod) ? [] : [pod.metadata.name]),
    { namespace },
  );
  const [pod] = pods.flat();
  if (pod !== undefined) return `Pod ${pod}`;
  for (const resource of FOREIGN_KINDS) {
    const foreign = await listAsAdministrator(
      client,
      resource,
      (object: KubeObject) => (isInstalled(object) ? [] : [object.metadata.name]),
      { namespace, metadataOnly: true },
    );
    const [name] = foreign.flat();
    if (name !== undefined) return `${resource.kind} ${name}`;
  }
  return undefined;
}

/** Lists the CustomResourceDefinitions of Holdfast's own kinds that exist. */
export async function listOwnCrds(client: ListClient): Promise<ObjectMeta[]> {
  const own = new Set(OWN_KINDS.map(qualifiedName));
  const found = await listAsAdministrator(client, CRDS, ({ metadata }) => metadata, { metadataOnly: true });
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

/** As {@link isOwn}; of namespaces only those of the installation, and of other namespaces only what `helm test` creates. */
function isOf(namespaces: ReadonlySet<string>, resource: Resource, object: KubeObject): boolean {
  const { namespace, name } = object.metadata;
  if (resource === NAMESPACES) return hasOwnName(object) && namespaces.has(name);
  return (
    isOwn(namespaces, object) || (namespace === TEST.namespace && name === TEST.name && TEST.kinds.includes(resource))
  );
}

async function listInstalled(
  client: ListClient,
  kinds: readonly Resource[],
  namespaces: ReadonlySet<string>,
): Promise<InstalledObject[]> {
  const options = { labelSelector: INSTALLED, metadataOnly: true };
  const lists = await Promise.all(
    kinds.map(async (resource) => {
      const metadatas = await listAsAdministrator(client, resource, ({ metadata }) => metadata, options);
      return metadatas
        .filter((metadata) => isOf(namespaces, resource, { metadata }))
        .map((metadata) => ({ resource, metadata }));
    }),
  );
  // pods of a workload end with it
  return lists.flat().filter(({ metadata }) => (metadata.ownerReferences ?? []).length === 0);
}

function isInstalled(object: KubeObject): boolean {
  return hasOwnName(object) && object.metadata.labels?.['app.kubernetes.io/name'] === 'holdfast';
}

async function findPluginFolder(client: ListClient, namespaces: ReadonlySet<string>): Promise<string | undefined> {
  const sets = await listAsAdministrator(client, DAEMON_SETS, (set) => set, { labelSelector: INSTALLED });
  const agents = sets.find((set) => set.metadata.name === 'holdfast-agent' && isOwn(namespaces, set));
  return agents && pluginFolderOf(agents);
}

async function observeData(client: ListClient): Promise<ObservedData> {
  const [claims, leases, pods, pools, blocks, nads, nodes, crds, keptPolicy] = await Promise.all([
    listAsAdministrator(client, IPAM_CLAIMS, (claim) => (isOwnClaim(claim) ? objectKey(claim) : undefined)),
    listAsAdministrator(client, ADDRESS_LEASES, podUidOf),
    listAsAdministrator(client, PODS, (pod) => pod),
    listAsAdministrator(client, ADDRESS_POOLS, () => undefined),
    listAsAdministrator(client, ADDRESS_BLOCKS, () => undefined),
    listAsAdministrator(client, NETWORK_ATTACHMENT_DEFINITIONS, (nad) => (namesHoldfast(nad) ? [objectKey(nad)] : [])),
    listAsAdministrator(client, NODES, (node) => (capacityResourcesOf(node).length > 0 ? [node.metadata.name] : [])),
    listOwnCrds(client),
    listKeptPolicy(client),
  ]);
  const own = claims.flatMap((key) => key ?? []);
  return {
    claims: own,
    otherClaims: claims.length - own.length,
    pools: pools.length,
    blocks: blocks.length,
    leases: leases.length,
    users: usersOf(pods, new Set(own), new Set(leases.flatMap((uid) => uid ?? []))),
    nads: nads.flat().sort(),
    nodes: nodes.flat().sort(),
    crds: crds.map(({ name }) => name),
    keptPolicy,
  };
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
