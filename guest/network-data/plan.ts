import type { IPAMClaim } from '../../api/ipam-claim.js';
import { describeValue, nameFirst } from '../../api/json.js';
import { MAX_NETWORK_DATA_LENGTH } from '../../api/limits.js';
import { type Address, BITS } from '../../addressing/address/address.js';
import { guestSettings } from '../../addressing/pool/guest-settings.js';
import { type Pool, subnetOf } from '../../addressing/pool/pool.js';
import { type GuestInterface, chooseDefaultRoute, routeCandidates } from '../interfaces.js';
import { type NicConfig, openstackText, version2Text } from './formats.js';
import type { NetworkDataFormat } from './request.js';
import type { ReasonOf } from '../../api/conditions.js';
import type { ConditionOf } from '../../cluster/claim-conditions.js';

/** Why no Secret is written. */
type NetworkDataProblem =
  | 'MACAddressMissing'
  | 'MACAddressInvalid'
  | 'DefaultRouteInvalid'
  | 'DefaultRouteNotExpressible'
  | 'TooLarge';

export type NetworkDataPlan =
  | { readonly kind: 'refused'; readonly reason: NetworkDataProblem; readonly message: string }
  /** Not all addresses are known. A Secret without some of them would start a guest that lacks them. */
  | { readonly kind: 'waiting'; readonly reason: 'AddressesPending'; readonly message: string }
  | { readonly kind: 'ready'; readonly text: string };

export interface NetworkDataInput {
  readonly interfaces: readonly GuestInterface[];
  /** The annotation that chooses the default route. */
  readonly defaultRoute: string | undefined;
  readonly format: NetworkDataFormat;
  /** Returns the addresses of a claim; undefined if it has none, or none that are its own. */
  readonly addressesOf: (claim: IPAMClaim, pool: Pool) => readonly Address[] | undefined;
}

/** Names that a message lists. */
const MAX_LISTED = 8;

/**
 * Plans the network data of a guest: all of its interfaces, because cloud-init leaves an interface that is not listed without a network. Pure.
 */
export function networkDataOf(input: NetworkDataInput): NetworkDataPlan {
  const { interfaces, format } = input;
  const macProblem = findMacProblem(interfaces);
  if (macProblem !== undefined) return macProblem;
  const route = chooseDefaultRoute(routeCandidates(interfaces), input.defaultRoute);
  if (route.kind === 'invalid') return { kind: 'refused', reason: 'DefaultRouteInvalid', message: route.message };
  const hasRoute = ({ vmNetwork }: GuestInterface) => route.kind === 'interface' && route.vmNetwork === vmNetwork;
  const pending: string[] = [];
  const nics = interfaces.map((each): NicConfig => {
    const found = nicOf(each, hasRoute(each), input);
    if (typeof found !== 'string') return found;
    pending.push(found);
    return { kind: 'dhcp', mac: '', hasDefaultRoute: false };
  });
  if (pending.length > 0) {
    return {
      kind: 'waiting',
      reason: 'AddressesPending',
      message: `No Secret is written yet: ${nameFirst(pending, MAX_LISTED, pending.length, '; ')}`,
    };
  }
  if (format === 'openstack') {
    const other = interfaces.find((each) => each.source.kind === 'other' && !hasRoute(each));
    if (other !== undefined) return notExpressible(other);
  }
  const text = format === 'openstack' ? openstackText(nics) : version2Text(nics);
  if (text.length <= MAX_NETWORK_DATA_LENGTH) return { kind: 'ready', text };
  const message = `The network data has ${text.length} characters, and at most ${MAX_NETWORK_DATA_LENGTH} are written: remove interfaces, or routes of their pools`;
  return { kind: 'refused', reason: 'TooLarge', message };
}

function findMacProblem(interfaces: readonly GuestInterface[]): NetworkDataPlan | undefined {
  const invalid = interfaces.flatMap(({ vmNetwork, mac }) =>
    mac.kind === 'invalid' ? [`${describeValue(mac.text)} of interface ${describeValue(vmNetwork)}`] : [],
  );
  if (invalid.length > 0) {
    const message = `macAddress ${nameFirst(invalid, MAX_LISTED)} is not a MAC address: write one like 02:00:00:00:00:01`;
    return { kind: 'refused', reason: 'MACAddressInvalid', message };
  }
  const missing = interfaces.filter(({ mac }) => mac.kind === 'none').map(({ vmNetwork }) => describeValue(vmNetwork));
  if (missing.length > 0) {
    const message = `Guests find their interfaces by MAC address, and the VM's spec has none for ${nameFirst(missing, MAX_LISTED)}: set macAddress of each interface`;
    return { kind: 'refused', reason: 'MACAddressMissing', message };
  }
  const macs = interfaces.map(({ mac }) => (mac.kind === 'mac' ? mac.mac : ''));
  const twice = interfaces.filter((_, index) => macs.indexOf(macs[index] ?? '') !== index);
  if (twice.length === 0) return undefined;
  const names = nameFirst(
    twice.map(({ vmNetwork }) => describeValue(vmNetwork)),
    MAX_LISTED,
  );
  const message = `Interface ${names} has the MAC address of another interface of the VM: give each its own`;
  return { kind: 'refused', reason: 'MACAddressInvalid', message };
}

/** @returns what is missing, as a clause about the claim */
function nicOf(
  { mac: specified, source }: GuestInterface,
  hasDefaultRoute: boolean,
  { addressesOf }: NetworkDataInput,
): NicConfig | string {
  const mac = specified.kind === 'mac' ? specified.mac : '';
  if (source.kind === 'other') return { kind: 'dhcp', mac, hasDefaultRoute };
  if (source.kind === 'pending') return `IPAMClaim ${source.claim} has no addresses: ${source.why}`;
  const { claim, pool, nad } = source;
  const addresses = addressesOf(claim, pool);
  if (addresses === undefined || addresses.length === 0)
    return `IPAMClaim ${claim.metadata.name} has no addresses that are leased to it`;
  const subnets = addresses.flatMap((address) => subnetOf(pool, address) ?? []);
  const { nameservers, search, routes, mtu } = guestSettings(pool, nad?.guestOptions, subnets);
  return {
    ...{ kind: 'static', mac, hasDefaultRoute, nameservers, search, routes },
    addresses: addresses.map((address) => ({
      address,
      prefixLength: subnetOf(pool, address)?.cidr.prefixLength ?? BITS[address.family],
    })),
    gateways: hasDefaultRoute ? subnets.flatMap(({ gateway }) => gateway ?? []) : [],
    ...(mtu !== undefined && { mtu }),
  };
}

/** OpenStack's format cannot say that an interface takes addresses, but no routes, from DHCP. */
function notExpressible({ vmNetwork }: GuestInterface): NetworkDataPlan {
  const message =
    `Interface ${describeValue(vmNetwork)} uses DHCP and must not have the default route, which the network data of cloudInitConfigDrive ` +
    'cannot say: use cloudInitNoCloud';
  return { kind: 'refused', reason: 'DefaultRouteNotExpressible', message };
}

/** What became of the network data of a VM. */
export type NetworkDataOutcome =
  /** The VM does not ask for it. */
  | { readonly kind: 'none' }
  | { readonly kind: 'written'; readonly secret: string }
  | { readonly kind: 'not-written'; readonly reason: ReasonOf<'NetworkDataWritten'>; readonly message: string };

const WHEN_IT_APPLIES =
  'A guest gets changes when its VM is stopped and started, and cloud-init applies them only to a new instance-id or with ' +
  'updates: {network: {when: [boot]}}';

/** Returns the condition NetworkDataWritten of all claims of the VM. */
export function networkDataCondition(outcome: NetworkDataOutcome): ConditionOf<'NetworkDataWritten'> | undefined {
  switch (outcome.kind) {
    case 'none':
      return undefined;
    case 'written':
      return {
        status: 'True',
        reason: 'Written',
        message: `Secret ${outcome.secret} has the addresses of all claims of the VM. ${WHEN_IT_APPLIES}`,
      };
    case 'not-written':
      return { status: 'False', reason: outcome.reason, message: outcome.message };
  }
}
