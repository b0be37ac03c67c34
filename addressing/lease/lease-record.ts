import type {
  AddressLease,
  LeaseNetworkData,
  LeaseOwner,
  LeaseQuarantine,
  LeaseState,
} from '../../api/address-lease.js';
import { parseLeaseMac } from '../../api/mac-address.js';
import type { KubeObject, ObjectMeta } from '../../api/meta.js';
import { type ProbeState, readProbe } from '../../api/probe.js';
import { type Address, parseAddress } from '../address/address.js';
import { leaseName } from './lease-name.js';
import { omitUndefined } from './optional-fields.js';

/** A parsed AddressLease, as caches keep it. */
export interface LeaseRecord extends KubeObject {
  metadata: ObjectMeta & { uid: string; resourceVersion: string };
  addressSpace: string;
  address: Address;
  pool: string;
  owner?: LeaseOwner;
  node?: string;
  containerID?: string;
  interface?: string;
  /** Lower case, with colons. */
  mac?: string;
  /** An administrator reserved the address for the MAC address. After its owner it is reserved again. */
  reserved?: true;
  /** By the clock of the process that released it, in milliseconds since the epoch. */
  releasedAt?: number;
  /** Nobody gets the address until the lease expires. Times by the clock of the process that wrote it, in milliseconds since the epoch. */
  quarantine?: QuarantineRecord;
  /** The Secret that may hold the address, which no other VM gets until then. */
  networkData?: LeaseNetworkData;
  /** Absent if the address was never probed. */
  probe?: ProbeState;
  /** When the cool-down began by the clock of this process. Absent if it only read the lease. See {@link withCoolingStart}. */
  coolsSince?: number;
}

/** The fields whose presence determines the state, of a record or of the spec of an AddressLease. */
export interface LeaseStateFields {
  readonly owner?: unknown;
  readonly releasedAt?: unknown;
  readonly quarantine?: unknown;
}

/** Who has the address, as a responder found, and for how long nobody gets it. */
export interface QuarantineRecord {
  readonly since: number;
  readonly until: number;
  /** Lower case, with colons. */
  readonly mac: string;
}

/**
 * Parses a lease.
 * @throws {TypeError} if Holdfast cannot have made the object; the message names the lease and the field
 */
export function readLease({ metadata, spec }: AddressLease): LeaseRecord {
  const { name, uid, resourceVersion, creationTimestamp, deletionTimestamp } = metadata;
  if (!uid || !resourceVersion) throw new TypeError(`AddressLease ${name} has no uid or resourceVersion`);
  const address = parseAddress(spec.address);
  const expected = leaseName(spec.addressSpace, address);
  // the name is the lock: with any other name the object locks nothing
  if (name !== expected) {
    throw new TypeError(
      `AddressLease ${name}: the lease for spec.address ${spec.address} in spec.addressSpace ${spec.addressSpace} must have the name ${expected}`,
    );
  }
  return {
    metadata: { name, uid, resourceVersion, ...omitUndefined({ creationTimestamp, deletionTimestamp }) },
    addressSpace: spec.addressSpace,
    address,
    pool: spec.pool,
    ...omitUndefined({
      owner: spec.owner,
      node: spec.node,
      containerID: spec.containerID,
      interface: spec.interface,
      mac: spec.mac?.toLowerCase(),
      reserved: spec.reserved === true ? true : undefined,
      releasedAt: spec.releasedAt === undefined ? undefined : parseTime(name, 'releasedAt', spec.releasedAt),
      quarantine: spec.quarantine === undefined ? undefined : readQuarantine(name, spec.quarantine),
      networkData: spec.networkData,
      probe: readProbe(metadata),
    }),
  };
}

export function stateOf({ owner, releasedAt, quarantine }: LeaseStateFields): LeaseState {
  if (quarantine !== undefined) return 'quarantined';
  if (releasedAt !== undefined) return 'released';
  return owner === undefined ? 'reserved' : 'held';
}

function readQuarantine(name: string, { since, until, mac }: LeaseQuarantine): QuarantineRecord {
  const parsedMac = parseLeaseMac(mac);
  if (parsedMac === undefined) throw new TypeError(`AddressLease ${name}: spec.quarantine.mac is not a MAC address`);
  const read = (field: 'since' | 'until', text: string) => parseTime(name, `quarantine.${field}`, text);
  return { since: read('since', since), until: read('until', until), mac: parsedMac };
}

function parseTime(name: string, field: string, text: string): number {
  const time = Date.parse(text);
  if (Number.isNaN(time)) {
    throw new TypeError(
      `AddressLease ${name}: spec.${field} "${text}" is not a time: write it like 2006-01-02T15:04:05Z`,
    );
  }
  return time;
}
