import fc from 'fast-check';
import type { LeaseWrite } from '../../api/address-lease.js';
import { type Address, type Family, formatAddress } from '../address/address.js';
import { leaseName } from '../lease/lease-name.js';
import type { Pool } from '../pool/pool.js';
import { MODEL_ADDRESSES, POOL_NAMES, type PoolName, SHAPE_COUNT } from './pool-shapes.js';

const MACS = ['02:00:00:00:00:01', '02:00:00:00:00:02'];

/** What can happen to a process that allocates addresses. */
export type Operation =
  | { do: 'lease'; pool: PoolName; owner: number; families: Family[]; mac?: string; wish?: Address }
  | { do: 'lease elsewhere'; pool: PoolName; address: Address }
  | { do: 'reserve'; pool: PoolName; address: Address; mac?: string }
  | { do: 'edit'; pool: PoolName; shape: number }
  | { do: 'release' | 'quarantine' | 'delete by hand'; index: number }
  | { do: 'wait'; seconds: number }
  | { do: 'expire' | 'watch' | 'restart' };

const pool = fc.constantFrom(...POOL_NAMES);
const address = fc.constantFrom(...MODEL_ADDRESSES);
const doing = <D extends Operation['do']>(...names: D[]) => fc.constantFrom(...names);
export const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record(
      {
        do: doing('lease'),
        pool,
        owner: fc.nat({ max: 9 }),
        families: fc.constantFrom<Family[]>([4], [6], [4, 6]),
        mac: fc.constantFrom(...MACS),
        wish: address,
      },
      { requiredKeys: ['do', 'pool', 'owner', 'families'] },
    ),
  },
  { weight: 1, arbitrary: fc.record({ do: doing('lease elsewhere'), pool, address }) },
  {
    weight: 1,
    arbitrary: fc.record(
      { do: doing('reserve'), pool, address, mac: fc.constantFrom(...MACS) },
      { requiredKeys: ['do', 'pool', 'address'] },
    ),
  },
  { weight: 1, arbitrary: fc.record({ do: doing('edit'), pool, shape: fc.nat({ max: SHAPE_COUNT - 1 }) }) },
  {
    weight: 6,
    arbitrary: fc.record({ do: doing('release', 'release', 'quarantine', 'delete by hand'), index: fc.nat() }),
  },
  { weight: 3, arbitrary: fc.record({ do: doing('wait'), seconds: fc.constantFrom(1, 30, 61, 121) }) },
  { weight: 4, arbitrary: fc.record({ do: doing('expire', 'expire', 'watch', 'watch', 'restart') }) },
);

/** Returns the write of an administrator who reserves an address, with or without a MAC address. */
export function reservation({ name, addressSpace }: Pool, address: Address, mac: string | undefined): LeaseWrite {
  const spec = { address: formatAddress(address), addressSpace, pool: name, ...(mac !== undefined && { mac }) };
  return { verb: 'create', object: { metadata: { name: leaseName(addressSpace, address) }, spec } };
}
