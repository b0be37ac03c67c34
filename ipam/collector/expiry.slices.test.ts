import { expect } from 'chai';
import { ManualClock } from '../../test/manual-clock.js';
import { TurnCounter } from '../../test/turn-counter.js';
import { Expiry } from './expiry.js';
import { LeakWorld } from './testing/leak-world.js';

const START = Date.UTC(2026, 0, 1);
const COOLING = { cooldownMs: 60_000, stickyMs: 0 };

describe('Expiry with very many leases', () => {
  it('searches in slices, between which the event loop does other work', async () => {
    const world = new LeakWorld();
    const clock = new ManualClock(START);
    // each look at the times of a lease takes 15 ms
    const timesOf = () => (clock.advanceTo(clock.now() + 15), COOLING);
    const slow = new Expiry({
      ...{ ...world.deps, clock, timesOf, isDerived: () => false, minCooldownMs: COOLING.cooldownMs },
      isGateOpen: () => true,
    });
    for (let n = 1; n <= 9; n++) {
      const lease = world.addLease(`10.0.0.${n}`, world.addClaim(`c${n}`));
      world.put('addressleases', { ...lease, spec: { ...lease.spec, releasedAt: new Date(START).toISOString() } });
    }
    world.deliverAll();
    slow.start();
    const counter = new TurnCounter();
    await clock.stepThrough(START + 61_000);
    counter.stop();
    await slow.stop();
    expect(world.expired).to.have.length(9);
    expect(counter.turns).to.be.at.least(4);
  });
});
