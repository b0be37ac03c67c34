import { expect } from 'chai';
import { claim } from '../../test/objects/workload-objects.js';
import { IgnoredOptions } from './ignored-options.js';
import type { RunningGuest } from './table.js';

function guestWith(...ignored: string[]): RunningGuest {
  const made = claim();
  return {
    claim: made,
    mac: '02:00:00:00:00:0a',
    addresses: [],
    nadOptions: undefined,
    hasDefaultRoute: false,
    dhcp: { options: [], ignored },
  };
}

describe('DHCP options that guests do not get', () => {
  it('are one event on a VM, until they change', () => {
    const recorded: string[] = [];
    const options = new IgnoredOptions({
      event: ({ kind, metadata }, _, reason, message) => recorded.push(`${kind} ${metadata.name} ${reason} ${message}`),
    });
    const long = guestWith('bootFileName is longer than 255 bytes');
    for (const each of [guestWith(), long, long, guestWith(), long, guestWith('privateOptions 224 is there twice')])
      options.found('blue', [each]);
    expect(recorded.map((each) => each.split(' ').slice(0, 3).join(' '))).to.deep.equal(
      Array.from({ length: 3 }, () => 'VirtualMachine vm1 DHCPOptionsIgnored'),
    );
    expect(recorded[0]).to.include('bootFileName is longer').and.include('Correct them');
    expect(recorded[2]).to.include('privateOptions 224');
  });

  it('are remembered for each pool', () => {
    let count = 0;
    const options = new IgnoredOptions({ event: () => count++ });
    for (const pool of ['blue', 'red', 'blue', 'red']) options.found(pool, [guestWith('too long')]);
    expect(count).to.equal(2);
  });
});
