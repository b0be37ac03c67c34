import { expect } from 'chai';
import { capacityResource, isCapacityResource, readQuantity } from './capacity.js';

/** What the API server takes for the name of an extended resource: a DNS name, a slash, a qualified name. */
const QUALIFIED = /^ipam\.holdfast\.dev\/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

describe('the extended resource of a pool', () => {
  it('is named after the pool', () => {
    expect(capacityResource('blue')).to.equal('ipam.holdfast.dev/blue');
    expect(isCapacityResource(capacityResource('blue'))).to.equal(true);
    expect(isCapacityResource('devices.kubevirt.io/kvm')).to.equal(false);
  });

  it('has a valid name for the longest pool names, and a different one for each pool', () => {
    const pools = ['a'.repeat(63), 'a'.repeat(64), 'a'.repeat(65), `${'a'.repeat(51)}.-${'b'.repeat(200)}`];
    const names = pools.map(capacityResource);
    // one that is named as the resource of another
    const [hashed = ''] = names.slice(1).map((name) => name.slice('ipam.holdfast.dev/'.length));
    pools.push(hashed);
    names.push(capacityResource(hashed));
    for (const name of names) expect(name).to.match(QUALIFIED);
    expect(new Set(names).size).to.equal(pools.length);
  });

  const quantities: [unknown, number | undefined][] = [
    ['10', 10],
    [7, 7],
    ['2k', 2000],
    ['3M', 3_000_000],
    ['0', 0],
    ['1e3', 1000],
    ['2E2', 200],
    ['1Ki', 1024],
    ['1Mi', 1_048_576],
    ['1T', 1e12],
    ['1Qi', undefined],
    ['1ki', undefined],
    ['2e3k', undefined],
    ['1500m', undefined],
    ['-1', undefined],
    [undefined, undefined],
    [{}, undefined],
  ];
  for (const [given, expected] of quantities) {
    it(`reads ${given === undefined ? 'nothing' : JSON.stringify(given)} as ${expected ?? 'nothing'}`, () => {
      expect(readQuantity(given)).to.equal(expected);
    });
  }
});
