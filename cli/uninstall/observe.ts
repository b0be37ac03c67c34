import type { AddressLease } from '../../api/address-lease.js';
import { isCapacityResource } from '../../api/capacity.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { HOLDFAST_IPAM, readIpamDelegation } from '../../api/networks/ipam-delegation.js';
import { type KubeObject, type ObjectMeta, joinKey, objectKey } from '../../api/meta.js';
import { CLAIM_OWNER_UID } from '../../api/names.js';
import type { NetworkAttachmentDefinition } from '../../api/networks/network-attachment.js';
import { type Pod, controllingVmi, isTerminal, leaseUidsOf } from '../../api/pod.js';
import { isResponderClaim } from '../../api/responders.js';
import type { Client } from '../../kube/client.js';
import { type Resource, namespacedResource } from '../../kube/resource.js';
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
import { ClaimUsers } from '../claim-users.js';
import { qualifiedName } from '../forbidden.js';
import {
  CLUSTER_ROLE_BINDINGS,
  CRDS,
  DAEMON_SETS,
  INSTALLED,
  type InstalledWorkload,
  hasOwnName,
  isOwn,
  pluginFolderOf,
  readNamespaces,
} from '../installation.js';
import { LEASE_PAGES, administratorsOnly, listAsAdministrator } from '../reader.js';
import {
  INSTALLED_KINDS,
  type InstalledObject,
  KEPT_POLICY,
  OWN_KINDS,
  type ObservedData,
  type ObservedInstallation,
  type RemainingUser,
} from './plan.js';

type ListClient = Pick<Client, 'listAs'>;

/** What is lost with a namespace. */
const FOREIGN_KINDS: readonly Resource[] = [
  PODS,
  IPAM_CLAIMS,
  VIRTUAL_MACHINES,
  namespacedResource('v1', 'persistentvolumeclaims', 'PersistentVolumeClaim'),
];

interface Node extends KubeObject {
  status?: { capacity?: Record<string, string>; allocatable?: Record<string, string> };
}

/**
 * Reads what is installed, and the objects that Holdfast serves.
 * @throws {CommandError} if the user may not read it
 */
export async function observeInstallation(client: ListClient): Promise<ObservedInstallation> {
  const namespaces = administratorsOnly(CLUSTER_ROLE_BINDINGS, await readNamespaces(client));
  const installed = await listInstalled(client, INSTALLED_KINDS, namespaces);
  return {
    installed: installed.filter(({ metadata }) => metadata.name !== KEPT_POLICY.name),
    sharedNamespaces: await findSharedNamespaces(client, namespaces),
    pluginFolder: await findPluginFolder(client, namespaces),
    data: await observeData(client),
  };
}

/** Lists the policy that stays with the kinds, and its binding. */
export async function listKeptPolicy(client: ListClient): Promise<InstalledObject[]> {
  const objects = await listInstalled(client, KEPT_POLICY.kinds, new Set());
  return objects.filter(({ metadata }) => metadata.name === KEPT_POLICY.name);
}

/** Lists the namespaces that end with the installation although others use them. */
async function findSharedNamespaces(
  client: ListClient,
  namespaces: ReadonlySet<string>,
): Promise<ObservedInstallation['sharedNamespaces']> {
  const own = await listAsAdministrator(
    client,
    NAMESPACES,
    (namespace) => (hasOwnName(namespace) && namespaces.has(namespace.metadata.name) ? [namespace.metadata.name] : []),
    { labelSelector: INSTALLED, metadataOnly: true },
  );
  const shared = own.map(async (name) => {
    const content = await findForeignContent(client, name);
    return content === undefined ? [] : [{ name, content }];
  });
  return (await Promise.all(shared)).flat();
}

/** Returns something in a namespace that is lost with it, and does not belong to the installation. */
async function findForeignContent(client: ListClient, namespace: string): Promise<string | undefined> {
  for (const resource of FOREIGN_KINDS) {
    // only a pod has a phase that counts
    const options = { namespace, metadataOnly: resource !== PODS };
    const foreign = await listAsAdministrator(
      client,
      resource,
      (object: KubeObject) => (isTerminal(object) || isInstalled(object) ? [] : [object.metadata.name]),
      options,
    );
    const [name] = foreign;
    if (name !== undefined) return `${resource.kind} ${name}`;
  }
  return undefined;
}

/** Lists the CustomResourceDefinitions of Holdfast's own kinds that exist. */
export function listOwnCrds(client: ListClient): Promise<ObjectMeta[]> {
  const own = new Set(OWN_KINDS.map(qualifiedName));
  const ownIn = (crd: KubeObject) => (own.has(crd.metadata.name) ? [crd.metadata] : []);
  return listAsAdministrator(client, CRDS, ownIn, { metadataOnly: true });
}

/** True for a claim that Holdfast created or adopted. Claims of other software stay. */
export function isOwnClaim({ metadata }: IPAMClaim): boolean {
  return metadata.annotations?.[CLAIM_OWNER_UID] !== undefined || isResponderClaim(metadata);
}

/** Returns the extended resources of Holdfast that a node shows. */
export function capacityResourcesOf({ status }: Node): string[] {
  return Object.keys({ ...status?.capacity, ...status?.allocatable }).filter(isCapacityResource);
}

/** Lists the objects of an installation, except pods that have ended. */
async function listInstalled(
  client: ListClient,
  kinds: readonly Resource[],
  namespaces: ReadonlySet<string>,
): Promise<InstalledObject[]> {
  const lists = await Promise.all(
    kinds.map(async (resource) => {
      const hasEnded = (object: KubeObject) => resource === PODS && isTerminal(object);
      const own = await listAsAdministrator(
        client,
        resource,
        (object) => (isOwn(namespaces, object) && !hasEnded(object) ? [object.metadata] : []),
        { labelSelector: INSTALLED },
      );
      return own.map((metadata) => ({ resource, metadata }));
    }),
  );
  return lists.flat();
}

function isInstalled(object: KubeObject): boolean {
  return hasOwnName(object) && object.metadata.labels?.['app.kubernetes.io/name'] === 'holdfast';
}

async function findPluginFolder(client: ListClient, namespaces: ReadonlySet<string>): Promise<string | undefined> {
  const isAgent = (set: KubeObject) => set.metadata.name === 'holdfast-agent' && isOwn(namespaces, set);
  const folderOf = (set: InstalledWorkload) => (isAgent(set) ? [pluginFolderOf(set)] : []);
  return (await listAsAdministrator(client, DAEMON_SETS, folderOf, { labelSelector: INSTALLED }))[0];
}

async function observeData(client: ListClient): Promise<ObservedData> {
  const leases = await listAsAdministrator(client, ADDRESS_LEASES, (lease) => [holderUidOf(lease)], LEASE_PAGES);
  const holders = new Set(leases.flatMap((uid) => uid ?? []));
  const ofClaims = new ClaimUsers();
  const [claims, pools, blocks, nads, nodes, crds, keptPolicy] = await Promise.all([
    listAsAdministrator(client, IPAM_CLAIMS, (claim) => {
      if (isOwnClaim(claim) || holders.has(claim.metadata.uid ?? '')) ofClaims.add(claim);
      return [isOwnClaim(claim)];
    }),
    listAsAdministrator(client, ADDRESS_POOLS, () => [undefined]),
    listAsAdministrator(client, ADDRESS_BLOCKS, () => [undefined]),
    listAsAdministrator(client, NETWORK_ATTACHMENT_DEFINITIONS, (nad) => (namesHoldfast(nad) ? [objectKey(nad)] : [])),
    listAsAdministrator(client, NODES, (node) => (capacityResourcesOf(node).length > 0 ? [node.metadata.name] : [])),
    listOwnCrds(client),
    listKeptPolicy(client),
  ]);
  const own = claims.filter((isOwn) => isOwn).length;
  return {
    claims: own,
    otherClaims: claims.length - own,
    pools: pools.length,
    blocks: blocks.length,
    leases: leases.length,
    users: await findUsers(client, ofClaims, holders),
    nads: nads.sort(),
    nodes: nodes.sort(),
    crds: crds.map(({ name }) => name),
    keptPolicy,
  };
}

/** The UID of the claim or pod that holds the lease. */
function holderUidOf({ spec }: AddressLease): string | undefined {
  return spec.releasedAt === undefined ? spec.owner?.uid : undefined;
}

/** True also for a config that Holdfast cannot read, if it names the plugin. */
function namesHoldfast(nad: NetworkAttachmentDefinition): boolean {
  const delegation = readIpamDelegation(nad);
  if (delegation.kind === 'invalid') return (nad.spec?.config ?? '').includes(`"${HOLDFAST_IPAM}"`);
  return delegation.kind === 'holdfast';
}

/** Finds pods that have a lease, or use a claim that has one or that is removed. */
function findUsers(client: ListClient, ofClaims: ClaimUsers, holders: ReadonlySet<string>): Promise<RemainingUser[]> {
  const isUser = (pod: Pod) =>
    ofClaims.has(pod) || (!isTerminal(pod) && leaseUidsOf(pod).some((uid) => holders.has(uid)));
  return listAsAdministrator(client, PODS, (pod) => (isUser(pod) ? [describeUser(pod)] : []));
}

function describeUser(pod: Pod): RemainingUser {
  const vmi = controllingVmi(pod);
  return { pod: objectKey(pod), ...(vmi && { vm: joinKey(pod.metadata.namespace, vmi.name) }) };
}
