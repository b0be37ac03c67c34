import { expect } from 'chai';
import { capacityResource } from '../api/capacity.js';
import { compiledPool } from '../test/objects/lease-objects.js';
import { day } from '../test/objects/pool-objects.js';
import { type PublishingPool, choosePools } from './node-record.js';

function publishing(name: string, born: number, isDerived = false): PublishingPool {
  return { pool: compiledPool({ publishCapacity: true }, name), createdAt: day(born), isDerived };
}

const showing = (...pools: string[]) => ({ shown: new Map(pools.map((name) => [capacityResource(name), {}])) });

describe('the pools whose capacity nodes show', () => {
  it('are limited, with pools of administrators before derived ones, and older ones first', () => {
    const pools = [publishing('d', 1, true), publishing('c', 3), publishing('b', 2), publishing('a', 3)];
    const { chosen, leftOut } = choosePools(pools, [], 2);
    expect(chosen.map(({ name }) => name)).to.deep.equal(['b', 'a']);
    expect(leftOut).to.deep.equal(['c', 'd']);
  });

  it('include the pools that nodes already show before new ones', () => {
    const pools = [publishing('old', 1), publishing('older', 0), publishing('young', 9, true)];
    const { chosen } = choosePools(pools, [showing(), showing('young')], 2);
    expect(chosen.map(({ name }) => name)).to.deep.equal(['young', 'older']);
  });

  it('include another pool as soon as one no longer publishes', () => {
    const { chosen } = choosePools([publishing('a', 1), publishing('b', 2)], [showing('gone', 'a')], 2);
    expect(chosen.map(({ name }) => name)).to.deep.equal(['a', 'b']);
  });
});
