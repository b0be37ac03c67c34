import { CLAIM_GUEST_MAC } from '../../api/names.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { AddressLease } from '../../api/address-lease.js';
import { parseAddress } from '../../addressing/address/address.js';
import { createLease } from '../../addressing/lease/lease.js';
import { claim, vmReference, vmi } from '../../test/objects/workload-objects.js';

/** Returns the objects of a running VM with an interface on each of the NADs, by name in namespace vms. */
export function runningVm(number: number, nads: readonly string[], networkOf: (index: number) => string) {
  const vm = `vm${number}`;
  const bytesOf = (index: number) => [number >> 8, number & 255, index];
  const macOf = (index: number) =>
    `02:00:00:${bytesOf(index)
      .map((each) => each.toString(16).padStart(2, '0'))
      .join(':')}`;
  const made = vmi(Object.fromEntries(nads.map((name) => [name, `vms/${name}`])), { name: vm, vm: `${vm}-uid` });
  for (const [index, each] of (made.spec?.domain?.devices?.interfaces ?? []).entries()) each.macAddress = macOf(index);
  const claims = nads.map((name, index) => {
    const [address, network] = [`10.${bytesOf(index).join('.')}`, networkOf(index)];
    const options = { name: `${vm}.${name}`, vmNetwork: name, network, nad: `vms/${name}`, ips: [`${address}/8`] };
    const own = claim({ ...options, owner: vmReference(`${vm}-uid`, vm), created: '2026-01-01T00:00:00Z' });
    own.metadata.annotations = { ...own.metadata.annotations, [CLAIM_GUEST_MAC]: macOf(index) };
    return { claim: own, lease: leaseOf(own, address, network) };
  });
  return { vmi: { ...made, status: { phase: 'Running', interfaces: [] } }, claims };
}

function leaseOf(
  { metadata: { name, namespace = '', uid = '' } }: IPAMClaim,
  address: string,
  pool: string,
): AddressLease {
  const owner = { kind: 'IPAMClaim', namespace, name, uid } as const;
  const { object } = createLease({ address: parseAddress(address), addressSpace: pool, pool, owner });
  return { ...object, metadata: { ...object.metadata, uid: `${address}-uid`, resourceVersion: '1' } };
}
