import type { AddressLease, LeaseOwner } from '../../api/address-lease.js';
import { type AddressPool, addressSpaceOf } from '../../api/address-pool.js';
import { labelValue } from '../../api/ipam-claim.js';
import { describeValue } from '../../api/json.js';
import { type KubeObject, isObjectKey, joinKey, objectKey, splitKey } from '../../api/meta.js';
import { LEASE_OWNER_NAME, LEASE_OWNER_NAMESPACE } from '../../api/names.js';
import { type NetworkAttachmentDefinition, parseNetworkConfig } from '../../api/networks/network-attachment.js';
import { hasUid } from '../../api/pod.js';
import {
  type Address,
  AddressError,
  formatAddress,
  parseAddressOrPrefix,
  requireUnmapped,
} from '../../addressing/address/address.js';
import { leaseName } from '../../addressing/lease/lease-name.js';
import { type LeaseRecord, readLease, releaseLease } from '../../addressing/lease/lease.js';
import { findUnlessGone } from '../../kube/absence.js';
import type { Client } from '../../kube/client.js';
import { isConflict, isNotFound } from '../../kube/errors.js';
import type { Resource } from '../../kube/resource.js';
import {
  ADDRESS_LEASES,
  ADDRESS_POOLS,
  IPAM_CLAIMS,
  NETWORK_ATTACHMENT_DEFINITIONS,
  NODES,
  PODS,
  VIRTUAL_MACHINE_INSTANCES,
} from '../../kube/resources.js';
import { UsageError } from '../../process/read-arguments.js';
import { serverTime } from '../doctor/probe.js';
import { CommandError } from '../exit-code.js';
import { INSTALL_HOLDFAST, mapRead, readList, readListAs, required, valueOr } from '../reader.js';
import { namespacesOf } from '../usage/pools.js';
import {
  type FindMention,
  type Mention,
  type SpaceUsers,
  mentionOfClaim,
  mentionOfPod,
  mentionOfVmi,
  refusalsOf,
} from './plan.js';

export interface ReleaseOptions {
  /** An address, or a claim: `namespace/name`, or its name. */
  readonly subject: string;
  /** The namespace of a claim that is given by its name. */
  readonly namespace: string;
  /** The pool of the address, if several address spaces have it. */
  readonly pool?: string;
  /** Checks everything, and writes nothing. */
  readonly dryRun: boolean;
  /** Pods and VMIs, `pod/namespace/name` or `vmi/namespace/name`, whose reports do not count, and nodes, `node/name`, without containers of the owner. */
  readonly ignored: ReadonlySet<string>;
}

interface ReleaseDeps {
  readonly client: Pick<Client, 'get' | 'list' | 'listAs' | 'patch' | 'create'>;
  /** Prints a line for each lease, at once: a later one may fail. */
  readonly print: (line: string) => void;
}

const OWNERS: Readonly<Record<LeaseOwner['kind'], Resource>> = { IPAMClaim: IPAM_CLAIMS, Pod: PODS };

/**
 * Releases the leases of an address or a claim, so that they cool down. Nobody may use them: the owner is gone, and so is its node if it is a pod. No pod or VMI
 * reports the address or hides what it has, and no claim has it in its status. Each write fails if the lease has changed since it was read.
 * @throws {CommandError} if a lease may not be released; none is released then
 */
export async function releaseByHand(options: ReleaseOptions, { client, print }: ReleaseDeps): Promise<void> {
  const pools = required(await readList(client, ADDRESS_POOLS), INSTALL_HOLDFAST);
  const leases = await findLeases(options, pools, client);
  const refusals = await checkLeases(leases, { pools, client, ignored: options.ignored });
  if (refusals.length > 0) throw new CommandError([`nothing was released:`, ...refusals].join('\n'));
  // nobody synchronizes the clock of the user's machine with those of the nodes
  const at = await serverTime({ client });
  if (at === undefined) throw new CommandError('nothing was released: the API server does not tell its time');
  for (const lease of leases) {
    await writeRelease(lease, options, { client, at });
    const done = options.dryRun ? 'can be released (dry run: nothing was written)' : 'released: the address cools down';
    print(`addresslease.ipam.holdfast.dev/${lease.metadata.name} ${done}`);
  }
}

async function writeRelease(
  lease: LeaseRecord,
  { dryRun }: ReleaseOptions,
  { client, at }: { client: ReleaseDeps['client']; at: number },
): Promise<void> {
  const write = releaseLease(lease, at);
  try {
    await client.patch(ADDRESS_LEASES, { name: write.name }, { type: 'merge', body: write.body }, { dryRun });
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) throw error;
    const message = `AddressLease ${write.name} has changed since it was checked: somebody may use it now. Run the command again`;
    throw new CommandError(message, { cause: error });
  }
}

/** Checks each lease against live reads that begin after it was read. */
async function checkLeases(
  leases: readonly LeaseRecord[],
  given: { pools: readonly AddressPool[]; client: ReleaseDeps['client']; ignored: ReadonlySet<string> },
): Promise<string[]> {
  const { pools, client, ignored } = given;
  const nads = await readNads(client);
  const wanted = leases.map((lease) => ({ lease, users: usersOf(pools, lease.addressSpace, nads) }));
  const [owners, nodes, pods, vmis, claims] = await Promise.all([
    Promise.all(leases.map(({ owner }) => findOwner(owner, client))),
    Promise.all(leases.map((lease) => hasNode(lease, client))),
    findMentions(PODS, mentionOfPod, wanted, client),
    findMentions(VIRTUAL_MACHINE_INSTANCES, mentionOfVmi, wanted, client),
    findMentions(IPAM_CLAIMS, mentionOfClaim, wanted, client),
  ]);
  return leases.flatMap((lease, index) => {
    const mentions = { pods: pods[index] ?? [], vmis: vmis[index] ?? [], claims: claims[index] ?? [] };
    const owner = owners[index] ?? 'alive';
    return refusalsOf({ lease, owner, hasNode: nodes[index] ?? true, ...mentions, ignored });
  });
}

/** Finds the objects of a kind that mention the addresses, for each lease. All pods of a cluster can be gigabytes, so none is kept. */
async function findMentions<T extends KubeObject>(
  resource: Resource<T>,
  mentionOf: FindMention<T>,
  wanted: readonly { readonly lease: LeaseRecord; readonly users: SpaceUsers }[],
  client: Pick<Client, 'listAs'>,
): Promise<Mention[][]> {
  const read = await readListAs(client, resource, (object) => [
    wanted.map(({ lease, users }) => mentionOf(object, lease, users)),
  ]);
  // KubeVirt may not be installed; without the other kinds, it is unknown who uses the addresses
  const isOptional = resource.plural === VIRTUAL_MACHINE_INSTANCES.plural;
  const found = valueOr(read, isOptional ? { unserved: [] } : {});
  return wanted.map((_, index) => found.flatMap((mentions) => mentions[index] ?? []));
}

/** Without pools, nothing says which networks and namespaces are in the space: all may be. */
function usersOf(
  pools: readonly AddressPool[],
  addressSpace: string,
  nads: ReadonlyMap<string, string> | undefined,
): SpaceUsers {
  const ofSpace = pools.filter((pool) => addressSpaceOf(pool) === addressSpace);
  const some = (isIt: (pool: AddressPool) => boolean) => ofSpace.length === 0 || ofSpace.some(isIt);
  const isNetworkOfSpace = (network: string) => some(({ spec }) => spec.network === network);
  return {
    isNetworkOfSpace,
    isOfSpace: (key) => {
      const network = nads?.get(key);
      return network === undefined || isNetworkOfSpace(network);
    },
    isServed: (namespace) => some((pool) => namespacesOf(pool)?.includes(namespace) ?? true),
  };
}

async function findOwner(owner: LeaseOwner | undefined, client: Pick<Client, 'get'>): Promise<'alive' | 'gone'> {
  if (owner === undefined) return 'gone';
  const { kind, namespace, name, uid } = owner;
  const found: KubeObject | undefined = await findUnlessGone(client, OWNERS[kind], { namespace, name });
  if (found === undefined) return 'gone';
  const isIt = kind === 'Pod' ? hasUid(found, uid) : found.metadata.uid === uid;
  return isIt ? 'alive' : 'gone';
}

async function hasNode({ owner, node }: LeaseRecord, client: Pick<Client, 'get'>): Promise<boolean> {
  if (owner?.kind !== 'Pod' || node === undefined) return false;
  return (await findUnlessGone(client, NODES, { name: node })) !== undefined;
}

/** Returns the CNI networks of all readable NADs; undefined if the user may not list NADs. Then any NAD may be of the address space. */
async function readNads(client: Pick<Client, 'list'>): Promise<ReadonlyMap<string, string> | undefined> {
  const read = await readList(client, NETWORK_ATTACHMENT_DEFINITIONS);
  const networks = mapRead(read, (nads) => new Map(nads.flatMap(entryOf)));
  return valueOr(networks, { forbidden: undefined, unserved: undefined });
}

function entryOf(nad: NetworkAttachmentDefinition): [string, string][] {
  const config = parseNetworkConfig(nad);
  return config.ok ? [[objectKey(nad), config.network.name]] : [];
}

async function findLeases(
  options: ReleaseOptions,
  pools: readonly AddressPool[],
  client: ReleaseDeps['client'],
): Promise<LeaseRecord[]> {
  const found = LIKE_ADDRESS.test(options.subject)
    ? await findOfAddress(options, pools, client)
    : await findOfClaim(options, client);
  return found.map(readLease);
}

/** Four numbers, or a colon: the user means an address, mistyped or not. */
const LIKE_ADDRESS = /:|^\d+(\.\d+){3}(\/|$)/;

/** Checks the address or claim before the command connects to a cluster. @throws {UsageError} */
export function checkSubject(subject: string): void {
  if (LIKE_ADDRESS.test(subject) || isObjectKey(subject)) return;
  throw new UsageError(
    `${describeValue(subject)} is neither an address nor a claim: write an address like 10.0.0.5, or a claim as NAMESPACE/NAME`,
  );
}

/** Reads an address, also with its prefix length, as `kubectl holdfast ips` prints it. */
function addressIn(subject: string): Address {
  try {
    return requireUnmapped(parseAddressOrPrefix(subject).address);
  } catch (error) {
    throw error instanceof AddressError ? new CommandError(error.message, { cause: error }) : error;
  }
}

async function findOfAddress(
  { subject, pool: poolName }: ReleaseOptions,
  pools: readonly AddressPool[],
  client: Pick<Client, 'get'>,
): Promise<AddressLease[]> {
  const address = addressIn(subject);
  const text = formatAddress(address);
  const spaces = [...new Set(pools.map(addressSpaceOf))];
  const read = spaces.map((space) => findUnlessGone(client, ADDRESS_LEASES, { name: leaseName(space, address) }));
  const found = (await Promise.all(read)).flatMap((lease) => lease ?? []);
  const chosen = poolName === undefined ? found : found.filter(({ spec }) => spec.pool === poolName);
  if (chosen.length === 1) return chosen;
  const names = found.map(({ spec }) => spec.pool).join(', ');
  if (found.length === 0) throw new CommandError(`${text} is not leased: there is nothing to release`);
  throw new CommandError(
    chosen.length === 0
      ? `${text} is leased in ${names}, not in pool ${poolName ?? ''}: correct --pool, or leave it out`
      : `${text} is leased in several pools (${names}): choose one with --pool`,
  );
}

async function findOfClaim(options: ReleaseOptions, client: Pick<Client, 'list'>): Promise<AddressLease[]> {
  const { namespace, name } = splitKey(claimKey(options));
  const labelSelector = `${LEASE_OWNER_NAMESPACE}=${labelValue(namespace)},${LEASE_OWNER_NAME}=${labelValue(name)}`;
  const { items } = await client.list(ADDRESS_LEASES, { labelSelector });
  const owned = items.filter(
    ({ spec: { owner } }) => owner?.kind === 'IPAMClaim' && owner.namespace === namespace && owner.name === name,
  );
  if (owned.length === 0)
    throw new CommandError(
      `IPAMClaim ${claimKey(options)} has no leases: give an address, or a claim as NAMESPACE/NAME`,
    );
  // those that are released already need nothing
  const held = owned.filter(({ spec }) => spec.releasedAt === undefined);
  return held.length > 0 ? held : owned;
}

function claimKey({ subject, namespace }: ReleaseOptions): string {
  return subject.includes('/') ? subject : joinKey(namespace, subject);
}
