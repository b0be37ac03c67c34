import type { Pool } from '../addressing/pool/pool.js';
import { affectedClaims } from '../addressing/directory/affected.js';
import type { NetworkChanges } from '../addressing/directory/directory.js';
import type { IPAMClaim } from '../api/ipam-claim.js';
import { type VirtualMachineInstance, isReportedBy } from '../api/kubevirt.js';
import { objectKey } from '../api/meta.js';
import { parseMac } from '../api/mac-address.js';
import { DEFAULT_ROUTE_ANNOTATION } from '../api/names.js';
import { ownerOfVmi } from '../api/vm-claims.js';
import { type ParsedNad, changesNetwork } from '../cluster/transforms.js';
import { BY_NAD, workloadOfClaim } from '../cluster/watch-specs.js';
import type { Lister } from '../kube/informers/cache.js';
import type { ObjectChange } from '../kube/informers/informer.js';
import { CachedGuestView, type GuestListers } from './cached-view.js';
import { type VmDhcp, vmDhcpOf } from './dhcp-options.js';
import { type GuestInterface, chooseDefaultRoute, guestInterfacesOf, routeCandidates } from './interfaces.js';

/** The guest of a VMI on a layer-2 NAD whose pool serves guests. */
export interface Layer2Guest {
  readonly claim: IPAMClaim;
  /** Undefined if nobody knows it. */
  readonly mac: string | undefined;
  readonly pool: Pool;
  readonly nad: ParsedNad;
  /** The guest's default route uses this interface. */
  readonly hasDefaultRoute: boolean;
  readonly dhcp: VmDhcp;
}

/** The interfaces of one VMI, by the CNI network. */
export type Layer2Guests = ReadonlyMap<string, readonly Layer2Guest[]>;

/** Finds the interfaces of a VMI on layer-2 NADs. Pure. */
export function layer2GuestsOf(vmi: VirtualMachineInstance, caches: GuestListers): Layer2Guests {
  const { namespace = '', annotations } = vmi.metadata;
  const view = new CachedGuestView(namespace, caches, false);
  const interfaces = guestInterfacesOf({ namespace, owner: ownerOfVmi(vmi), spec: vmi.spec }, view);
  const route = chooseDefaultRoute(routeCandidates(interfaces), annotations?.[DEFAULT_ROUTE_ANNOTATION]);
  const found = new Map<string, Layer2Guest[]>();
  for (const each of interfaces) {
    const { source, vmNetwork } = each;
    if (source.kind !== 'claim' || source.nad === undefined) continue;
    const { claim, pool, nad } = source;
    if (nad.delivery.kind !== 'guest' || pool.guest === undefined) continue;
    const hasDefaultRoute = route.kind === 'interface' && route.vmNetwork === vmNetwork;
    const guests = found.get(claim.spec.network) ?? [];
    found.set(claim.spec.network, guests);
    guests.push({ claim, pool, nad, hasDefaultRoute, mac: runningMac(each, vmi), dhcp: vmDhcpOf(vmi, vmNetwork) });
  }
  return found;
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

interface WorkloadCaches {
  /** With the indexes {@link BY_NAD} and those that {@link affectedClaims} needs. */
  readonly claims: Pick<Lister<IPAMClaim>, 'byIndex'>;
  /** With the index {@link BY_NAD}. */
  readonly vmis: Pick<Lister<VirtualMachineInstance>, 'byIndex'>;
}

/** Sources of change events for pools and NADs. An informer and a directory are such sources. */
interface NetworkSources {
  readonly networks: { onChange(handler: (change: ObjectChange<ParsedNad>) => void): void };
  readonly directory: { onChange(handler: (changes: NetworkChanges) => void): void };
}

/**
 * Calls the handler with the keys of the workloads whose guests a change of pools or NADs may concern. Tenants may name the networks of others in their
 * NADs: guests that use no NAD of their namespace cost nothing.
 */
export function onAffectedWorkloads(
  { claims, vmis }: WorkloadCaches,
  { networks, directory }: NetworkSources,
  handler: (workloads: readonly string[]) => void,
): void {
  directory.onChange((changes) => handler(affectedClaims(changes, claims).flatMap(workloadOfClaim)));
  // also if it names another network now
  networks.onChange((change) => {
    if (!changesNetwork(change)) return;
    const nad = objectKey(change.object);
    handler([...claims.byIndex(BY_NAD, nad).flatMap(workloadOfClaim), ...vmis.byIndex(BY_NAD, nad).map(objectKey)]);
  });
}

interface RememberedCaches extends GuestListers {
  readonly vmis: Lister<VirtualMachineInstance>;
}

interface GuestChanges extends NetworkSources {
  readonly claims: { onChange(handler: (change: ObjectChange<IPAMClaim>) => void): void };
}

/**
 * Remembers the guests of each VMI until something changes that they depend on: the VMI, the claims of its owner, or their pools and NADs. A change of
 * one VM, or of one NAD, then costs the same with many others as with few.
 */
export class RememberedGuests {
  readonly #caches: RememberedCaches;
  readonly #known = new WeakMap<VirtualMachineInstance, Layer2Guests>();

  constructor(caches: RememberedCaches) {
    this.#caches = caches;
  }

  /** Subscribes to changes. Call it before other subscribers, so that they see the new state when they ask. */
  follow({ claims, ...sources }: GuestChanges): void {
    claims.onChange(({ object, before = object }) =>
      this.#forget([...workloadOfClaim(before), ...workloadOfClaim(object)]),
    );
    onAffectedWorkloads(this.#caches, sources, (workloads) => this.#forget(workloads));
  }

  #forget(workloads: readonly string[]): void {
    for (const key of workloads) {
      const vmi = this.#caches.vmis.get(key);
      if (vmi !== undefined) this.#known.delete(vmi);
    }
  }

  /** @param vmi as it is in the cache */
  of(vmi: VirtualMachineInstance): Layer2Guests {
    const known = this.#known.get(vmi);
    if (known !== undefined) return known;
    const found = layer2GuestsOf(vmi, this.#caches);
    this.#known.set(vmi, found);
    return found;
  }
}
