import { type Pool, addressesOf } from '../pool/pool.js';
import { type Address, type Family, parseAddress } from '../address/address.js';
import { compiledPool } from '../../test/objects/lease-objects.js';

/** Small pools that overlap, and the specs that an administrator may change them to. */
const SHAPES = [
  { subnets: [{ cidr: '10.0.0.0/29' }, { cidr: 'fd00::/126' }] },
  { subnets: [{ cidr: '10.0.0.0/29', gateway: '10.0.0.1', exclude: ['10.0.0.4-10.0.0.5'] }] },
  { subnets: [{ cidr: '10.0.0.0/28', ranges: ['10.0.0.2-10.0.0.3', '10.0.0.9'], reserved: ['10.0.0.3'] }] },
  {
    subnets: [
      { cidr: '10.0.0.0/29', draining: ['10.0.0.2-10.0.0.4'] },
      { cidr: 'fd00::/126', draining: ['fd00::/126'] },
    ],
  },
  { subnets: [{ cidr: '10.0.0.4/30' }, { cidr: 'fd00::/125', exclude: ['fd00::1', 'fd00::5-fd00::7'] }] },
];

export const POOL_NAMES = ['blue', 'red', 'green'] as const;
export type PoolName = (typeof POOL_NAMES)[number];
/** `blue` and `red` share an address space. */
const SPACES: Record<PoolName, string> = { blue: 'blue', red: 'blue', green: 'green' };

export const SHAPE_COUNT = SHAPES.length;
export const MODEL_ADDRESSES: readonly Address[] = [
  ...Array.from({ length: 17 }, (_, n) => parseAddress(`10.0.0.${n}`)),
  ...Array.from({ length: 9 }, (_, n) => parseAddress(`fd00::${n}`)),
];

export function poolOfShape(name: PoolName, shape: number): Pool {
  return compiledPool({ ...SHAPES[shape]!, addressSpace: SPACES[name] }, name);
}

export function openAddresses(pool: Pool, family: Family): Address[] {
  const open = addressesOf(pool, family, 'open');
  return MODEL_ADDRESSES.filter((address) => address.family === family && open.has(address.value));
}
