import type { Pool } from '../../addressing/pool/pool.js';
import type { Random } from '../../kube/clock.js';
import type { SimulatedApi } from './api.js';
import type { Counters } from './counters.js';
import type { VirtualTime } from './virtual-time.js';

/** The parts that all simulated components share. */
export interface Simulation {
  readonly pool: Pool;
  readonly api: SimulatedApi;
  readonly time: VirtualTime;
  readonly random: Random;
  readonly tally: () => Counters;
}
