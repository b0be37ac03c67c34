import { expect } from 'chai';
import sinon from 'sinon';
import type { AddressLease } from '../../api/address-lease.js';
import { LeakWorld } from './testing/leak-world.js';
import { ManualClock } from '../../test/manual-clock.js';
import { type LeaseTimes, stateOf } from '../../addressing/lease/lease.js';
import { Expiry } from './expiry.js';

const START = Date.UTC(2026, 0, 1);
const COOLING: LeaseTimes = { cooldownMs: 60_000, stickyMs: 0 };

/** @param seconds after the start */
function release(world: LeakWorld, address: string, seconds: number, more: Partial<AddressLease['spec']> = {}) {
  const lease = world.addLease(address, world.addClaim(`c${address}`));
  const releasedAt = new Date(START + seconds * 1_000).toISOString();
  return world.put('addressleases', { ...lease, spec: { ...lease.spec, releasedAt, ...more } });
}

describe('Expiry', () => {
  class Bed {
    readonly world = new LeakWorld();
    readonly clock = new ManualClock(START);
    open = true;
    times: LeaseTimes | undefined = COOLING;
    readonly expiry = new Expiry({
      ...this.world.deps,
      clock: this.clock,
      timesOf: () => this.times,
      isDerived: () => false,
      minCooldownMs: COOLING.cooldownMs,
      isGateOpen: () => this.open,
    });

    /** Goes on from alarm to alarm, up to that many seconds after the start. */
    async until(seconds: number): Promise<void> {
      await this.clock.stepThrough(START + seconds * 1_000);
    }
  }

  let bed: Bed;
  beforeEach(() => {
    bed = new Bed();
  });
  afterEach(() => bed.expiry.stop());

  function begin(...seconds: number[]): void {
    seconds.forEach((second, index) => release(bed.world, `10.0.0.${index + 1}`, second));
    bed.world.deliverAll();
    bed.expiry.start();
  }

  it('deletes a lease when its time is over, and not before', async () => {
    begin(0, 300);
    await bed.until(59.9);
    expect(bed.world.expired).to.deep.equal([]);
    await bed.until(60.5);
    expect(bed.world.expired).to.deep.equal(['blue.10-0-0-1']);
    expect(bed.world.lease('blue.10-0-0-1')).to.equal(undefined);
    expect(bed.world.book.get('blue.10-0-0-1')).to.equal(undefined);
    expect(bed.world.lease('blue.10-0-0-2')).not.to.equal(undefined);
  });

  for (const step of [-300, 300]) {
    it(`deletes leases in time after the system clock was set by ${step} s`, async () => {
      bed.world.cacheNow = () => bed.clock.now();
      begin(0);
      await bed.until(30);
      bed.clock.setBack(-step * 1_000);
      // releases that the clock of another process dates
      const released = release(bed.world, '10.0.0.2', step);
      const { releasedAt: _none, ...spec } = released.spec;
      bed.world.book.recordWrite({ ...released, metadata: { ...released.metadata, resourceVersion: '0' }, spec });
      bed.world.book.recordWrite(released);
      await bed.until(59);
      expect(bed.world.expired).to.deep.equal([]);
      await bed.until(62);
      expect(bed.world.expired).to.deep.equal(['blue.10-0-0-1']);
      await bed.until(89);
      expect(bed.world.expired).to.deep.equal(['blue.10-0-0-1']);
      await bed.until(92);
      expect(bed.world.expired).to.deep.equal(['blue.10-0-0-1', 'blue.10-0-0-2']);
    });
  }

  it('deletes a quarantined lease when the time that it says has passed since it was seen', async () => {
    bed.world.cacheNow = () => bed.clock.now();
    begin();
    await bed.until(10);
    const lease = bed.world.addLease('10.0.0.1', bed.world.addClaim('c1'));
    bed.world.book.recordWrite(lease);
    const { owner: _owner, ...spec } = lease.spec;
    const quarantine = { since: '2020-01-01T00:00:00Z', until: '2020-01-01T00:01:40Z', mac: '02:00:00:00:00:99' };
    bed.world.book.recordWrite(bed.world.put('addressleases', { ...lease, spec: { ...spec, quarantine } }));
    await bed.until(109);
    expect(bed.world.expired).to.deep.equal([]);
    await bed.until(113);
    expect(bed.world.expired).to.deep.equal(['blue.10-0-0-1']);
    expect(bed.world.book.get('blue.10-0-0-1')).to.equal(undefined);
  });

  it('makes a reservation unowned again, and shows it at once', async () => {
    const mac = '02:00:00:00:00:01';
    release(bed.world, '10.0.0.1', 0, { mac, reserved: true, node: 'n1' });
    begin();
    await bed.until(61);
    const { address, addressSpace, pool } = bed.world.lease('blue.10-0-0-1')!.spec;
    expect(bed.world.lease('blue.10-0-0-1')!.spec).to.deep.equal({ address, addressSpace, pool, mac, reserved: true });
    expect(stateOf(bed.world.book.get('blue.10-0-0-1')!)).to.equal('reserved');
    await bed.until(600);
    expect(bed.world.expired, 'once').to.deep.equal(['blue.10-0-0-1']);
  });

  it('also deletes leases in time that are released later', async () => {
    begin();
    await bed.until(5);
    bed.world.book.recordWrite(release(bed.world, '10.0.0.1', -54));
    await bed.until(6.5);
    expect(bed.world.expired).to.deep.equal(['blue.10-0-0-1']);
  });

  it('does not delete a lease that was reallocated in between', async () => {
    begin(0);
    const lease = bed.world.lease('blue.10-0-0-1')!;
    const { releasedAt: _ended, ...spec } = lease.spec;
    bed.world.put('addressleases', { ...lease, spec });
    await bed.until(120);
    expect(bed.world.lease('blue.10-0-0-1')).not.to.equal(undefined);
    expect(bed.world.kept, 'that is no failure').to.deep.equal([]);
  });

  it('goes on with other leases at once if one was changed in between', async () => {
    begin(5, 6, 7);
    bed.world.put('addressleases', bed.world.lease('blue.10-0-0-1')!);
    await bed.until(67.5);
    expect(bed.world.expired).to.deep.equal(['blue.10-0-0-2', 'blue.10-0-0-3']);
    const tries = bed.world.requests.filter((request) => request === 'write blue.10-0-0-1');
    expect(tries, 'it is left alone for a while').to.have.lengthOf(1);
    bed.world.deliverAll();
    await bed.until(75);
    expect(bed.world.expired).to.include('blue.10-0-0-1');
  });

  it('stops in the middle of a batch when the gate closes', async () => {
    begin(...Array.from({ length: 100 }, () => 0));
    bed.world.onWrite = () => (bed.open = false);
    await bed.until(120);
    expect(bed.world.requests.length).to.be.within(1, 64);
  });

  it('retries after a pause if the API server does not answer', async () => {
    begin(0);
    bed.world.readFault = 'silent';
    await bed.until(64);
    expect(bed.world.kept).to.deep.equal(['kept blue.10-0-0-1']);
    bed.world.readFault = 'well';
    await bed.until(66);
    expect(bed.world.expired).to.deep.equal(['blue.10-0-0-1']);
  });

  it('deletes nothing while the gate is closed', async () => {
    bed.open = false;
    begin(0);
    await bed.until(600);
    expect(bed.world.requests).to.deep.equal([]);
    bed.open = true;
    await bed.until(640);
    expect(bed.world.expired).to.deep.equal(['blue.10-0-0-1']);
  });

  it('follows a pool whose times become shorter', async () => {
    bed.times = { cooldownMs: 86_400_000, stickyMs: 0 };
    begin(0);
    await bed.until(100);
    bed.times = COOLING;
    await bed.until(140);
    expect(bed.world.expired).to.deep.equal(['blue.10-0-0-1']);
  });

  it('deletes thousands of leases in batches', async () => {
    begin(...Array.from({ length: 250 }, () => 0));
    for (let third = 0; third < 5; third++) {
      for (let last = 0; last < 250; last++) release(bed.world, `10.0.${third + 1}.${last}`, 0);
    }
    bed.world.deliverAll();
    await bed.until(65);
    expect(bed.world.expired).to.have.length(1_500);
  });

  it('does not read all released leases for each of those that become due one after another', async () => {
    begin(...Array.from({ length: 100 }, (_, index) => index / 10));
    await bed.until(59);
    const looks = sinon.spy(bed.world.book, 'expiring');
    await bed.until(72);
    expect(bed.world.expired).to.have.length(100);
    expect(looks.callCount).to.be.at.most(1);
  });

  it('works again after a stop', async () => {
    begin(0);
    await bed.expiry.stop();
    expect(bed.clock.next, 'nothing is left to come').to.equal(undefined);
    bed.clock.advanceTo(START + 120_000);
    expect(bed.world.expired).to.deep.equal([]);
    bed.expiry.start();
    await bed.until(121);
    expect(bed.world.expired).to.deep.equal(['blue.10-0-0-1']);
  });
});
