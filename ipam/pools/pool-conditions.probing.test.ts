import { expect } from 'chai';
import { compiledPool, leaseOf } from '../../test/objects/lease-objects.js';
import { quarantineLease } from '../../addressing/lease/lease-quarantine.js';
import { readLease } from '../../addressing/lease/lease.js';
import { LeaseBook } from '../leases/lease-book.js';
import { mergePatch } from '../../test/merge-patch.js';
import { PoolsWorld } from './testing/pools-world.js';
import { probingCondition } from './pool-conditions.js';

const HOST = '02:00:00:00:00:0a';

describe('the condition ProbingStopped of a pool', () => {
  function conditionOf(quarantined: [address: string, mac: string][], probe = true) {
    const book = new LeaseBook();
    for (const [index, [address, mac]] of quarantined.entries()) {
      const lease = leaseOf(address, 1, { uid: `l${index}` });
      mergePatch(lease, quarantineLease(readLease(lease), mac, Date.UTC(2026, 0, 1)).body);
      book.recordWrite(lease);
    }
    const guest = { attachment: 'blue', dhcp: {}, probe };
    return probingCondition(compiledPool({ subnets: [{ cidr: '10.0.0.0/27' }], guest }), book.quarantined('blue'));
  }

  it('is absent while addresses are probed', () => {
    expect(
      conditionOf([
        ['10.0.0.2', HOST],
        ['10.0.0.3', HOST],
      ]),
    ).to.equal(undefined);
  });

  it('names the host that answers for many addresses', () => {
    expect(conditionOf([2, 3, 4].map((last) => [`10.0.0.${last}`, HOST]))).to.deep.equal({
      type: 'ProbingStopped',
      status: 'True',
      reason: 'ProxyARP',
      message: `The host with MAC address ${HOST} answers for 10.0.0.2, 10.0.0.3, 10.0.0.4: it is a proxy, or an attacker. New addresses are not probed until one of these leases expires or is deleted`,
    });
  });

  it('names some of the hosts that have addresses of a pool in which no more may be quarantined', () => {
    const quarantined = [2, 3, 4].map((last): [string, string] => [`10.0.0.${last}`, `02:00:00:00:00:0${last}`]);
    expect(conditionOf(quarantined)).to.include({ status: 'True', reason: 'QuarantineFull' });
    expect(conditionOf(quarantined)?.message).to.match(
      /^No more addresses may be quarantined\. Other hosts have 10\.0\.0\.2 \(02:00:00:00:00:02\), .*: give them other/,
    );
  });

  it('is absent if the pool does not probe any more', () => {
    expect(
      conditionOf(
        [2, 3, 4].map((last) => [`10.0.0.${last}`, HOST]),
        false,
      ),
    ).to.equal(undefined);
  });

  it('appears with a warning, and disappears when a quarantined lease has expired', async () => {
    const world = new PoolsWorld();
    const guest = { attachment: 'blue', dhcp: {}, probe: true };
    const spec = { network: 'blue', subnets: [{ cidr: '10.0.0.0/27' }], guest };
    world.putPool({ metadata: { name: 'blue' }, spec });
    for (const last of [2, 3, 4]) {
      world.lease('blue', `10.0.0.${last}`, 'vms/vm1');
      world.quarantine(`10.0.0.${last}`);
    }
    await world.settle();
    expect(world.condition('blue', 'ProbingStopped')).to.match(/^True ProxyARP: The host with MAC address/);
    expect(world.events.filter((event) => event.includes('ProbingStopped'))).to.have.lengthOf(1);
    world.expire('10.0.0.2');
    await world.settle();
    expect(world.condition('blue', 'ProbingStopped')).to.equal('none');
  });
});
