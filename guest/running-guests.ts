import { type IPAMClaim, claimGuestMacOf, claimOwnerOf, claimVmNetworkOf } from '../api/ipam-claim.js';
import { type VirtualMachineInstance, hasEnded, isReportedBy } from '../api/kubevirt.js';
import { parseMac } from '../api/mac-address.js';
import { joinKey, objectKey } from '../api/meta.js';
import { DEFAULT_ROUTE_ANNOTATION } from '../api/names.js';
import { ownerOfVmi } from '../api/vm-claims.js';
import type { ParsedNad } from '../cluster/transforms.js';
import type { Pool } from '../ipam/core/pool.js';
import type { Lister } from '../kube/cache.js';
import { type GuestListers, CachedGuestView } from './cached-view.js';
import { chooseDefaultRoute } from './default-route.js';
import { type GuestInterface, guestInterfacesOf, routeCandidates } from './interfaces.js';
import { macOwners } from './mac-owners.js';
import { BY_NETWORK } from './watch-specs.js';

export interface GuestCaches extends GuestListers {
  /** With the index {@link BY_NETWORK}. */
  readonly claims: Lister<IPAMClaim>;
  readonly vmis: Pick<Lister<VirtualMachineInstance>, 'get'>;
}

/** A running guest on a layer-2 NAD, whose responders answer it. */
export interface ServedGuest {
  readonly claim: IPAMClaim;
  readonly mac: string;
  readonly pool: Pool;
  readonly nad: ParsedNad;
  /** The guest's default route uses this interface. */
  readonly hasDefaultRoute: boolean;
}

/** A running guest on such a NAD that responders do not answer. `message` says what to do. */
export interface RefusedGuest {
  readonly claim: IPAMClaim;
  readonly pool: Pool;
  readonly reason: 'MACAddressConflict' | 'MACAddressUnknown';
  readonly message: string;
}

const PHASES_WITHOUT_DOMAIN = ['Pending', 'Scheduling'];

/** The guests that the responders of a network answer, and those that they refuse. */
export interface FoundGuests {
  readonly served: readonly ServedGuest[];
  readonly refused: readonly RefusedGuest[];
  /** Guests of pools without `spec.guest.dhcp`. */
  readonly withoutDhcp: readonly Pick<ServedGuest, 'claim' | 'pool'>[];
}

/**
 * Finds the guests that the responders of a CNI network answer. Two pools of one network share the wire, so a MAC address has one guest in
 * both of them. Pure: all responders, and the process `guest`, find the same. Yields between short steps.
 */
export function* findGuests(network: string, caches: GuestCaches): Generator<undefined, FoundGuests> {
  const found: FoundGuest[] = [];
  for (const key of workloadsOf(network, caches)) {
    const vmi = caches.vmis.get(key);
    if (vmi === undefined || hasEnded(vmi) || !hasStarted(vmi)) continue;
    found.push(...guestsOf(vmi, network, caches));
    yield;
  }
  const isAnswered = ({ pool }: FoundGuest) => pool.guest?.dhcp !== undefined;
  return { ...shareMacs(found.filter(isAnswered)), withoutDhcp: found.filter((guest) => !isAnswered(guest)) };
}

/** A MAC address has one guest on a network. */
function shareMacs(found: readonly FoundGuest[]): Omit<FoundGuests, 'withoutDhcp'> {
  const refused = found.flatMap(({ claim, pool, mac }): RefusedGuest[] =>
    mac === undefined ? [{ claim, pool, reason: 'MACAddressUnknown', message: unknownMac(claim) }] : [],
  );
  const known = found.flatMap(({ mac, ...guest }) => (mac === undefined ? [] : [{ ...guest, mac }]));
  const owners = [...macOwners(known).values()];
  // a claim that the controller has not written yet, or that was restored with the MAC address of an earlier guest
  const isRecorded = ({ claim, mac }: ServedGuest) => claimGuestMacOf(claim) === mac;
  return {
    served: owners.map(({ served }) => served).filter(isRecorded),
    refused: [
      ...refused,
      ...owners.flatMap((owner) =>
        owner.refused.map(({ claim, pool, mac }): RefusedGuest => {
          const message = sharedMac(mac, owner.served.claim, claim);
          return { claim, pool, reason: 'MACAddressConflict', message };
        }),
      ),
    ],
  };
}

/** The keys of the workloads that have claims on the network. */
function workloadsOf(network: string, { claims }: GuestCaches): Set<string> {
  const keys = claims.byIndex(BY_NETWORK, network).map((claim) => {
    const owner = claimOwnerOf(claim);
    return owner === undefined ? [] : [joinKey(claim.metadata.namespace, owner.name)];
  });
  return new Set(keys.flat());
}

/** Without a domain, no guest sends anything, and a VMI that cannot be scheduled must not take the answers of one that runs. */
function hasStarted({ status }: VirtualMachineInstance): boolean {
  return status?.phase === undefined || !PHASES_WITHOUT_DOMAIN.includes(status.phase);
}

type FoundGuest = Omit<ServedGuest, 'mac'> & { readonly mac: string | undefined };

function guestsOf(vmi: VirtualMachineInstance, network: string, caches: GuestCaches): FoundGuest[] {
  const { namespace = '', annotations } = vmi.metadata;
  const view = new CachedGuestView(namespace, caches, false);
  const interfaces = guestInterfacesOf({ namespace, owner: ownerOfVmi(vmi), spec: vmi.spec }, view);
  const route = chooseDefaultRoute(routeCandidates(interfaces), annotations?.[DEFAULT_ROUTE_ANNOTATION]);
  return interfaces.flatMap((each) => {
    const { source, vmNetwork } = each;
    if (source.kind !== 'claim' || source.claim.spec.network !== network || source.nad === undefined) return [];
    const { claim, pool, nad } = source;
    if (nad.delivery.kind !== 'guest' || pool.guest === undefined) return [];
    const hasDefaultRoute = route.kind === 'interface' && route.vmNetwork === vmNetwork;
    return [{ claim, pool, nad, hasDefaultRoute, mac: runningMac(each, vmi) }];
  });
}

/** As the controller finds it: that of the VMI's spec, else of libvirt's domain. Group addresses belong to no interface. */
function runningMac({ mac, vmNetwork }: GuestInterface, { status }: VirtualMachineInstance): string | undefined {
  const reported = status?.interfaces?.find((each) => each.name === vmNetwork && isReportedBy('domain', each));
  const found = mac.kind === 'mac' ? mac.mac : parseMac(reported?.mac ?? '');
  return found === undefined || isGroupAddress(found) ? undefined : found;
}

function isGroupAddress(mac: string): boolean {
  return (Number.parseInt(mac.slice(0, 2), 16) & 1) === 1 || mac === '00:00:00:00:00:00';
}

function unknownMac(claim: IPAMClaim): string {
  const vmNetwork = claimVmNetworkOf(claim) ?? '';
  return (
    `The MAC address of interface "${vmNetwork}" is not known, so responders do not answer the guest: set macAddress in the VM's spec, which ` +
    'SR-IOV interfaces need'
  );
}

/** Names the other claim only to its own namespace. */
function sharedMac(mac: string, older: IPAMClaim, claim: IPAMClaim): string {
  const isOwn = older.metadata.namespace === claim.metadata.namespace;
  const other = isOwn ? `IPAMClaim ${objectKey(older)}` : 'an older claim of another namespace';
  return `${mac} is also the MAC address of ${other}, so responders do not answer this guest: give it another macAddress`;
}
