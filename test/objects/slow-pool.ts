import type { SpacePool } from '../../addressing/pool/address-space-rights.js';
import type { Pool } from '../../addressing/pool/pool.js';
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

/** Looks up pools as given, but each look takes 15 ms. */
export function slowLookup(
  lookUp: (name: string) => Pool | undefined,
  clock: ManualClock,
  onLook: () => void,
): (name: string) => Pool | undefined {
  return (name) => {
    clock.advanceTo(clock.now() + 15);
    onLook();
    return lookUp(name);
  };
}
