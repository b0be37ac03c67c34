import { expect } from 'chai';
import { Client } from '../../kube/client.js';
import { isConflict } from '../../kube/errors.js';
import { ADDRESS_POOLS } from '../../kube/resources.js';
import { MemoryTransport } from '../../kube/testing/memory-transport.js';
import { ManualClock } from '../../test/manual-clock.js';
import { adminPool } from '../../test/objects/pool-objects.js';
import { PoolStatusWriter } from './status-writer.js';

describe('the status of a pool that was deleted', () => {
  it('is not given to a new one of its name', async () => {
    const client = new Client(new MemoryTransport());
    const options = { countsIntervalMs: 60_000, poolCount: () => 1, random: () => 0 };
    const writer = new PoolStatusWriter(client, new ManualClock(1_000_000), options);
    const pool = { ...adminPool('p'), metadata: { name: 'p' } };
    const deleted = await client.create(ADDRESS_POOLS, pool);
    await client.delete(ADDRESS_POOLS, { name: 'p' });
    await client.create(ADDRESS_POOLS, pool);
    const counts = { capacity: 9, heldByStopped: 0, leased: 1, free: 8, cooling: 0, reserved: 0 };
    const written = writer.write(deleted, { ...counts, conditions: [] });
    const error: unknown = await written.catch((reason: unknown) => reason);
    expect(isConflict(error)).to.equal(true);
    expect((await client.get(ADDRESS_POOLS, { name: 'p' })).status).to.equal(undefined);
  });
});
