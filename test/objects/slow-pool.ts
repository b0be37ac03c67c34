import type { SpacePool } from '../../addressing/pool/address-space-rights.js';
import type { ManualClock } from '../manual-clock.js';

/** The same pool, but each reading of its subnets takes 15 ms. */
export function slowPool(given: SpacePool, clock: ManualClock, onRead: () => void): SpacePool {
  const pool = {
    ...given.pool,
    get subnets() {
      clock.advanceTo(clock.now() + 15);
      onRead();
      return given.pool.subnets;
    },
  };
  return { ...given, pool };
}
