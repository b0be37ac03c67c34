import type { VirtualMachineInstance } from '../../api/kubevirt.js';
import type { AddressLease } from '../../api/address-lease.js';
import { type AddressPool, addressSpaceOf } from '../../api/address-pool.js';
import { type IPAMClaim, labelValue } from '../../api/ipam-claim.js';
import { readIpamDelegation } from '../../api/networks/ipam-delegation.js';
import { joinKey, splitKey } from '../../api/meta.js';
import { CLAIM_VM_LABEL, LEASE_OWNER_NAME, LEASE_OWNER_NAMESPACE } from '../../api/names.js';
import type { NetworkAttachmentDefinition } from '../../api/networks/network-attachment.js';
import { LAUNCHER_SELECTOR, type Pod, controllingVmi, isTerminal } from '../../api/pod.js';
import { possibleClaimNames } from '../../api/vm-claims.js';
import { parseAddress } from '../../addressing/address/address.js';
import { leaseName } from '../../addressing/lease/lease-name.js';
import type { Client } from '../../kube/client.js';
import { EVENTS } from '../../kube/events.js';
import {
  ADDRESS_LEASES,
  ADDRESS_POOLS,
  IPAM_CLAIMS,
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  PODS,
  VIRTUAL_MACHINES,
  VIRTUAL_MACHINE_INSTANCES,
} from '../../kube/resources.js';
import { ofComponent } from '../installation.js';
import {
  type Read,
  joinReads,
  mapRead,
  readEvent,
  readList,
  readListAs,
  readObject,
  readObjects,
  valueOf,
} from '../reader.js';
import { claimAddressesOf, requestedBy } from './claims.js';
import { type TracedNetwork, tracedNetworks } from './networks.js';
import type { ObservedVmTrace } from './observed.js';

/** Launchers, claims and CNI networks for which more is read. A VM has more of them only if somebody makes them up. */
const MAX_READ = 16;

/** The UID of its VMI, as KubeVirt writes it on each launcher. */
const CREATED_BY_LABEL = 'kubevirt.io/created-by';

type ReadClient = Pick<Client, 'get' | 'list' | 'listAs'>;

/**
 * Reads the parts of the story of a VM. A part that cannot be read says why.
 * @param now milliseconds since the epoch
 * @throws {TransportError} if the API server does not answer
 */
export async function observeVmTrace(
  { namespace, name }: { namespace: string; name: string },
  client: ReadClient,
  now: number,
): Promise<ObservedVmTrace> {
  const ref = { namespace, name };
  const readLaunchers = (read: Read<VirtualMachineInstance>) => {
    // a namespace may have thousands; a VMI that cannot be read may have some
    const ofVmi = read.kind === 'found' ? `,${CREATED_BY_LABEL}=${read.value.metadata.uid ?? ''}` : '';
    const options = { namespace, labelSelector: `${LAUNCHER_SELECTOR}${ofVmi}` };
    return readListAs(client, PODS, (pod) => (controllingVmi(pod)?.name === name ? [pod] : []), options);
  };
  const vmiRead = readObject(client, VIRTUAL_MACHINE_INSTANCES, ref);
  const [vm, vmi, namespaceObject, pods, labelled, ownEvents] = await Promise.all([
    readObject(client, VIRTUAL_MACHINES, ref),
    vmiRead,
    readObject(client, NAMESPACES, { name: namespace }),
    vmiRead.then(readLaunchers),
    readList(client, IPAM_CLAIMS, { namespace, labelSelector: `${CLAIM_VM_LABEL}=${labelValue(name)}` }),
    readEvents(client, ref),
  ]);
  const specs = [valueOf(vm, undefined)?.spec?.template?.spec, valueOf(vmi, undefined)?.spec];
  const networks = tracedNetworks(specs, namespace).shown;
  const [nads, claims] = await Promise.all([
    readNads(client, networks),
    withClaimsByName(client, labelled, { namespace, name, networks }),
  ]);
  const known = valueOf(claims, []);
  const active = valueOf(pods, [])
    .filter((pod) => !isTerminal(pod))
    .slice(0, MAX_READ);
  const unanswered = known.filter(({ status }) => (status?.ips ?? []).length === 0);
  const [pools, agents, ...moreEvents] = await Promise.all([
    readPools(client, known),
    mayUseHoldfast(nads) ? readAgents(client, active) : new Map<string, Read<readonly Pod[]>>(),
    ...[...active, ...unanswered]
      .slice(0, MAX_READ)
      .map(({ metadata }) => readEvents(client, { namespace, name: metadata.name })),
  ]);
  const events = joinReads([ownEvents, ...moreEvents]);
  const leases = await readLeases(client, { namespace, claims: known.slice(0, MAX_READ), pools: valueOf(pools, []) });
  return { namespace, name, vm, vmi, namespaceObject, pods, claims, events, nads, pools, leases, agents, now };
}

/** A claim of another VM has the label of that VM, and perhaps the name that this VM needs. */
async function withClaimsByName(
  client: ReadClient,
  labelled: Read<readonly IPAMClaim[]>,
  { namespace, name, networks }: { namespace: string; name: string; networks: readonly TracedNetwork[] },
): Promise<Read<readonly IPAMClaim[]>> {
  if (labelled.kind !== 'found') return labelled;
  const known = new Set(labelled.value.map(({ metadata }) => metadata.name));
  const wanted = networks.flatMap((network) => possibleClaimNames(name, network.name, '').slice(0, -1));
  const others = wanted.filter((each) => !known.has(each)).map((each) => ({ namespace, name: each }));
  return joinReads([labelled, await readObjects(client, IPAM_CLAIMS, others)]);
}

async function readNads(
  client: ReadClient,
  networks: readonly TracedNetwork[],
): Promise<ReadonlyMap<string, Read<NetworkAttachmentDefinition>>> {
  const keys = [
    ...new Set(networks.flatMap(({ nad }) => (nad === undefined ? [] : [joinKey(nad.namespace, nad.name)]))),
  ];
  const read = keys.map(
    async (key) => [key, await readObject(client, NETWORK_ATTACHMENT_DEFINITIONS, splitKey(key))] as const,
  );
  return new Map(await Promise.all(read));
}

/** A NAD that cannot be read, is invalid or does not exist may delegate to Holdfast, or may have when the pods started. */
function mayUseHoldfast(nads: ReadonlyMap<string, Read<NetworkAttachmentDefinition>>): boolean {
  return [...nads.values()].some(
    (read) => read.kind !== 'found' || ['holdfast', 'invalid'].includes(readIpamDelegation(read.value).kind),
  );
}

async function readPools(client: ReadClient, claims: readonly IPAMClaim[]): Promise<Read<readonly AddressPool[]>> {
  const networks = [...new Set(claims.map(({ spec }) => spec.network))].slice(0, MAX_READ);
  return joinReads(
    await Promise.all(
      networks.map((network) =>
        readList(client, ADDRESS_POOLS, { fieldSelector: `spec.network=${selectable(network)}` }),
      ),
    ),
  );
}

async function readAgents(
  client: ReadClient,
  pods: readonly Pod[],
): Promise<ReadonlyMap<string, Read<readonly Pod[]>>> {
  const nodes = [...new Set(pods.flatMap(({ spec }) => spec?.nodeName ?? []))];
  const read = nodes.map(async (node) => {
    const options = { labelSelector: ofComponent('agent'), fieldSelector: `spec.nodeName=${selectable(node)}` };
    return [node, await readList(client, PODS, options)] as const;
  });
  return new Map(await Promise.all(read));
}

/** Reads the leases of the claims, for each address of a claim without a lease the one of somebody else, and those that Secrets of the namespace lock. */
async function readLeases(
  client: ReadClient,
  { namespace, claims, pools }: { namespace: string; claims: readonly IPAMClaim[]; pools: readonly AddressPool[] },
): Promise<Read<readonly AddressLease[]>> {
  const ofNamespace = `${LEASE_OWNER_NAMESPACE}=${labelValue(namespace)}`;
  const locks = { labelSelector: ofNamespace, fieldSelector: 'spec.networkData.secret!=' };
  const [locked, ...ofClaims] = await Promise.all([
    readList(client, ADDRESS_LEASES, locks),
    ...claims.map(({ metadata }) => {
      const labelSelector = `${ofNamespace},${LEASE_OWNER_NAME}=${labelValue(metadata.name)}`;
      return readList(client, ADDRESS_LEASES, { labelSelector });
    }),
  ]);
  const own = joinReads(ofClaims);
  if (own.kind !== 'found') return own;
  const names = claims.flatMap((claim) => {
    const spaces = new Set(pools.filter(({ spec }) => spec.network === claim.spec.network).map(addressSpaceOf));
    const isLeased = (address: string) =>
      own.value.some(({ spec }) => spec.owner?.uid === claim.metadata.uid && spec.address === address);
    const missing = [...claimAddressesOf(claim), ...requestedBy(claim)].filter((address) => !isLeased(address));
    return missing.flatMap((address) => [...spaces].map((space) => leaseName(space, parseAddress(address))));
  });
  const refs = [...new Set(names)].map((name) => ({ name }));
  return mapRead(joinReads([own, await readObjects(client, ADDRESS_LEASES, refs)]), (read) => {
    const all = [...read, ...valueOf(locked, [])];
    return [...new Map(all.map((lease) => [lease.metadata.name, lease])).values()];
  });
}

async function readEvents(client: ReadClient, { namespace, name }: { namespace: string; name: string }) {
  const options = { namespace, fieldSelector: `involvedObject.name=${selectable(name)}` };
  return mapRead(await readList(client, EVENTS, options), (events) => events.map(readEvent));
}

/** Escapes the characters that separate field selectors. */
function selectable(value: string): string {
  return value.replaceAll(/[\\,=]/g, '\\$&');
}
