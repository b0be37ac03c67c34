import { expect } from 'chai';
import { type LeaseOptions, compiledPool, leaseOf, networkDataLock } from '../test/objects/lease-objects.js';
import { Inventory, readInventoryEntry } from './inventory.js';

describe('The inventory of addresses', () => {
  const RELEASED_AT = Date.UTC(2026, 0, 1);

  function free(more: LeaseOptions): number {
    const inventory = new Inventory();
    inventory.add(readInventoryEntry(leaseOf('10.0.0.1', 1, { releasedAt: RELEASED_AT, ...more })));
    return inventory.free(compiledPool(), 4, { blocks: [], cooledSince: RELEASED_AT }).total;
  }

  it('counts a released address as free after its cool-down, but never one that a Secret may still hold', () => {
    expect(free({})).to.equal(6);
    expect(free({ networkData: networkDataLock() })).to.equal(5);
  });
});
