import { expect } from 'chai';
import { compiledPool, leaseOf } from '../test/lease-objects.js';
import { Inventory, readInventoryEntry } from './inventory.js';

describe('The inventory of addresses', () => {
  const RELEASED_AT = Date.UTC(2026, 0, 1);

  function free(more: object): number {
    const { metadata, spec } = leaseOf('10.0.0.1', 1);
    const released = { ...spec, releasedAt: new Date(RELEASED_AT).toISOString() };
    const inventory = new Inventory();
    inventory.add(readInventoryEntry({ metadata, spec: { ...released, ...more } }));
    return inventory.free(compiledPool(), 4, { blocks: [], cooledSince: RELEASED_AT }).total;
  }

  it('counts a released address as free after its cool-down, but never one that a Secret may still hold', () => {
    expect(free({})).to.equal(6);
    const owner = { kind: 'VirtualMachine', name: 'vm1', uid: 'vm-1' };
    expect(free({ networkData: { namespace: 'a', secret: 'net', owner } })).to.equal(5);
  });
});
