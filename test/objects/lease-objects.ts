import type { AddressLease, LeaseNetworkData, LeaseOwner } from '../../api/address-lease.js';
import { parseAddress } from '../../addressing/address/address.js';
import { leaseLabels } from '../../addressing/lease/lease-record.js';
import { type LeaseRequest, createLease } from '../../addressing/lease/lease.js';
import { type Pool, compilePool } from '../../addressing/pool/pool.js';
import { type PoolGiven, adminPool } from './pool-objects.js';

/** Leases of pool blue for tests, in short form. */

export function compiledPool(spec: PoolGiven = {}, name = 'blue'): Pool {
  const compiled = compilePool(adminPool(name, { cidr: '10.0.0.0/29', ...spec }));
  if (!compiled.ok) throw new TypeError(JSON.stringify(compiled.problems));
  return compiled.pool;
}

export function leaseOwner(name: string): LeaseOwner {
  return { kind: 'IPAMClaim', namespace: 'a', name, uid: `${name}-uid`, workloadUID: `vm-${name}` };
}

export function requestFor(address: string, name = 'c1'): LeaseRequest {
  return { address: parseAddress(address), addressSpace: 'blue', pool: 'blue', owner: leaseOwner(name) };
}

/** What locks the address of a claim of `vm1`, because Secret `net` may hold it. */
export function networkDataLock({ namespace = 'a', name = 'vm1' } = {}): LeaseNetworkData {
  return { namespace, secret: 'net', owner: { kind: 'VirtualMachine', name, uid: 'vm-1' } };
}

/** The lease of a claim as it is created. */
export function newLease(address: string): AddressLease {
  const { metadata, spec } = leaseOf(address, 1);
  return { metadata: { name: metadata.name, labels: metadata.labels ?? {} }, spec };
}

/** The stored lease of a claim. */
export function leaseOf(
  address: string,
  version: number,
  { uid = 'u1', name = 'c1', namespace = 'a', takenBy, ...more }: LeaseOptions = {},
): AddressLease {
  const { metadata, spec } = createLease(requestFor(address, name)).object;
  const creationTimestamp = more.createdAt ?? '2026-01-01T00:00:00Z';
  if (takenBy !== undefined) {
    const { owner: _owner, ...rest } = spec;
    const quarantine = { since: '2030-01-01T00:00:00Z', until: '2030-01-01T01:00:00Z', mac: takenBy };
    const stored = { ...metadata, uid, resourceVersion: String(version), creationTimestamp };
    return { metadata: { ...stored, labels: leaseLabels(rest) }, spec: { ...rest, quarantine } };
  }
  return {
    metadata: { ...metadata, uid, resourceVersion: String(version), creationTimestamp },
    spec: {
      ...spec,
      owner: { ...leaseOwner(name), namespace },
      ...(more.releasedAt !== undefined && { releasedAt: new Date(more.releasedAt).toISOString() }),
      ...(more.mac !== undefined && { mac: more.mac }),
      ...(more.reserved !== undefined && { reserved: more.reserved }),
      ...(more.networkData !== undefined && { networkData: more.networkData }),
    },
  };
}

export interface LeaseOptions {
  uid?: string;
  name?: string;
  namespace?: string;
  createdAt?: string;
  releasedAt?: number;
  mac?: string;
  reserved?: true;
  networkData?: LeaseNetworkData;
  /** The lease is quarantined, because this MAC address has the address. */
  takenBy?: string;
}
