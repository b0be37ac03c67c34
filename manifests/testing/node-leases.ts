import type { AddressLease, LeaseOwner } from '../../api/address-lease.js';
import { AGENTS_NAMESPACE } from '../../bed/holdfast/install.js';
import { parseAddress } from '../../addressing/address/address.js';
import { type LeaseRequest, createLease } from '../../addressing/lease/lease.js';

/** Leases of 10.0.0.5 in pool blue, as agents of nodes write them. */

export const AGENT = { namespace: AGENTS_NAMESPACE, name: 'holdfast-agent' };
export const AGENT_USER = `system:serviceaccount:${AGENT.namespace}:${AGENT.name}`;

export const WEB: LeaseOwner = { kind: 'Pod', namespace: 'a', name: 'web', uid: 'web-1' };
export const DB: LeaseOwner = { kind: 'Pod', namespace: 'a', name: 'db', uid: 'db-1' };
export const CLAIM: LeaseOwner = {
  kind: 'IPAMClaim',
  namespace: 'a',
  name: 'vm1.blue',
  uid: 'c-1',
  workloadUID: 'vm-1',
};
const SANDBOX = { containerID: 'sandbox-1', interface: 'net1', mac: '02:00:00:00:00:01' };
export const ON_NODE_1 = { owner: WEB, node: 'node-1', ...SANDBOX };
export const ON_NODE_2 = { owner: DB, node: 'node-2', ...SANDBOX };

export const RESERVED: AddressLease = {
  metadata: { name: 'blue.10-0-0-5' },
  spec: { address: '10.0.0.5', addressSpace: 'blue', pool: 'blue', mac: SANDBOX.mac },
};

export function request(given: Partial<LeaseRequest>): LeaseRequest {
  return { address: parseAddress('10.0.0.5'), addressSpace: 'blue', pool: 'blue', owner: WEB, ...given };
}

export function lease(given: Partial<LeaseRequest> = ON_NODE_1): AddressLease {
  return createLease(request(given)).object;
}

/** @returns the lease with other fields */
export function changed(
  { metadata, spec }: AddressLease,
  by: { metadata?: object; spec?: object; labels?: object },
): AddressLease {
  const labels = { ...metadata.labels, ...by.labels };
  return { metadata: { ...metadata, ...by.metadata, labels }, spec: { ...spec, ...by.spec } };
}
