/**
 * The states of the addresses of a pool:
 * - `free`: any claim or pod may get it
 * - `allocated`: it has an owner
 * - `cooling`: its owner released it, and its cool-down has not ended or its lease is about to be deleted
 * - `sticky`: its owner released it, and it is kept for the owner's MAC address while other addresses are free
 * - `reserved`: allocated only on request, or reserved by an administrator
 * - `draining`: in use, in a draining range
 * - `drained`: not in use, in a draining range: nobody gets it again
 * - `excluded`: the pool never allocates it: the network, broadcast and gateway address, and all that is excluded or in no range
 * - `other-pool`: leased through another pool of the same address space
 * - `quarantined`: a host that Holdfast does not know has it, so nobody gets it for a while
 */
export const ADDRESS_STATES = [
  ...(['free', 'allocated', 'cooling', 'sticky', 'reserved'] as const),
  ...(['draining', 'drained', 'excluded', 'other-pool', 'quarantined'] as const),
] as const;
export type AddressState = (typeof ADDRESS_STATES)[number];
