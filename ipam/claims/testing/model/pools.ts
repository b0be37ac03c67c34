import type { AddressPoolSpec, PoolSubnet } from '../../../../api/address-pool.js';
import type { IpamWorld } from './world.js';

export const STICKY_MS = 180_000;

const SMALL_V4: PoolSubnet = { cidr: '10.0.0.0/29', gateway: '10.0.0.1', reserved: ['10.0.0.6'] };
const WIDE_V4: PoolSubnet = { cidr: '10.0.0.0/28', gateway: '10.0.0.1' };
const V6: PoolSubnet = { cidr: '2001:db8::/126' };
/**
 * The pool as an administrator sets it up; `gone`: deleted; `moved`: created again in another address space; `draining`, `drainingDual`: a part of it is to
 * become free. `renumbered`: all of it is, beside another subnet; `probed`: addresses are probed.
 */
const POOLS = {
  small: [SMALL_V4],
  wide: [WIDE_V4],
  dual: [SMALL_V4, V6],
  wideDual: [WIDE_V4, V6],
  moved: [SMALL_V4],
  draining: [{ ...SMALL_V4, draining: ['10.0.0.2-10.0.0.3'] }],
  drainingDual: [
    { ...SMALL_V4, draining: ['10.0.0.2-10.0.0.3'] },
    { ...V6, draining: ['2001:db8::1'] },
  ],
  renumbered: [{ ...SMALL_V4, draining: ['10.0.0.0/29'] }, { cidr: '10.0.1.0/29' }],
  gone: undefined,
  probed: [SMALL_V4],
  probedDual: [WIDE_V4, V6],
  probedLarge: [{ cidr: '10.0.0.0/27', gateway: '10.0.0.1' }, { cidr: '2001:db8::/122' }],
};
const PROBED = { attachment: 'blue', dhcp: {}, probe: true };
export type PoolName = keyof typeof POOLS;
export const POOL_NAMES = Object.keys(POOLS) as PoolName[];

export function setPool(world: IpamWorld, name: PoolName): void {
  const subnets = POOLS[name];
  if (subnets === undefined) {
    world.remove('addresspools', 'blue');
    return;
  }
  const stickyMAC = { ttl: `${STICKY_MS / 1_000}s`, retain: true };
  const addressSpace = name === 'moved' ? 'green' : 'blue';
  const guest = name.startsWith('probed') ? { guest: PROBED } : {};
  const spec: AddressPoolSpec = { network: 'blue', addressSpace, subnets, stickyMAC, ...guest };
  if (world.get('addresspools', 'blue') === undefined) {
    world.create('addresspools', { metadata: { name: 'blue' }, spec });
  } else world.update('addresspools', 'blue', (pool) => (pool.spec = spec));
}
