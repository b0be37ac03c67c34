import type { LeaseRecord } from '../../addressing/lease/lease.js';
import { leaseTimesOf } from '../../addressing/lease/lease-times.js';
import type { Pool } from '../../addressing/pool/pool.js';
import { formatAddress } from '../../addressing/address/address.js';
import { compiledPool } from '../../test/objects/lease-objects.js';
import { seededRandom } from '../../test/seeded-random.js';
import { type Latency, SimulatedApi } from './api.js';
import { SimulatedIpam } from './ipam.js';
import { type BlockUsage, blockUsageOf } from './block-usage.js';
import { Nodes } from './nodes.js';
import { Counters } from './counters.js';
import { VirtualTime } from './virtual-time.js';
import { Workload } from './workload.js';

const NODES = 1_000;
const PODS = 100_000;
const MAX_PODS_OF_NODE = 120;
const MINUTE = 60_000;
const MAX_STALENESS_MS = 30_000;
/** Size of the fields that the API server adds to an object: managedFields, times. */
const SERVER_BYTES = 750;
const SEED = 20_261_121;

const PHASES = ['start', 'steady', 'rollout'] as const;
export type Phase = (typeof PHASES)[number];

/** Number of changed pods, and duration, of each phase. */
const PHASE_LOADS: Readonly<Record<Phase, { minutes: number; pods: number }>> = {
  start: { minutes: 6, pods: PODS },
  // 1 % of the pods in a minute
  steady: { minutes: 5, pods: 5_000 },
  rollout: { minutes: 20, pods: Math.round(PODS / 3) },
};

/** Number of addresses of VMs. */
const CLAIMS = 5_000;
const CLAIMS_A_MINUTE = 60;

export interface SimulationOptions {
  readonly hasBlocks: boolean;
  /** Share of the open addresses that are in use once all pods run: 0 to 1. */
  readonly utilisation: number;
  readonly latency: Latency;
  /** Prefix length. */
  readonly blockSize: number;
}

export interface RunResult {
  /** Approximate size of a watch event of a lease. */
  readonly eventBytes: number;
  readonly tallies: Readonly<Record<Phase, Counters>>;
  /** At the end of each phase. */
  readonly layouts: Readonly<Record<Phase, BlockUsage>>;
}

export function simulate({ utilisation, latency, hasBlocks, blockSize }: SimulationOptions): RunResult {
  const random = seededRandom(SEED);
  const time = new VirtualTime(Date.UTC(2026, 0, 1));
  const api = new SimulatedApi(time, latency, random);
  const pool = poolOf(Math.round((PODS + CLAIMS) / utilisation), blockSize);
  const tallies = Object.fromEntries(PHASES.map((phase) => [phase, new Counters()])) as Record<Phase, Counters>;
  let current = tallies.start;
  const parts = { pool, api, time, random, tally: () => current };
  const nodes = Array.from({ length: NODES }, (_, node) => `node-${node}`);
  const { cooldownMs } = leaseTimesOf(pool, { maxStalenessMs: MAX_STALENESS_MS, stickyMAC: false });
  const lagMs = latency.watchMs[0]!;
  const ipam = new SimulatedIpam({ ...parts, nodes: new Set(nodes), lagMs, lends: hasBlocks, cooldownMs });
  for (let claim = 0; claim < CLAIMS; claim++) ipam.claim();
  time.runUntil(time.now() + MINUTE);
  const cluster = new Nodes(parts, nodes, { latency, hasBlocks });
  const { agents } = cluster;
  const freed = (lease: LeaseRecord) => ipam.expireLater(lease);
  const workload = new Workload({ time, random, agents, freed, mostOfNode: MAX_PODS_OF_NODE });
  const layouts = {} as Record<Phase, BlockUsage>;
  for (const phase of PHASES) {
    current = tallies[phase];
    const { minutes, pods } = PHASE_LOADS[phase];
    if (phase === 'start') workload.wave(pods, minutes * MINUTE);
    else {
      workload.churn(pods, minutes * MINUTE);
      for (let n = 0; n < minutes * CLAIMS_A_MINUTE; n++) {
        time.after((n * MINUTE) / CLAIMS_A_MINUTE, () => ipam.endClaim());
        time.after((n * MINUTE) / CLAIMS_A_MINUTE, () => ipam.claim());
      }
    }
    const end = time.now() + minutes * MINUTE;
    while (time.now() < end) cluster.count(() => time.runUntil(Math.min(end, time.now() + MINUTE)));
    current.lasted = minutes * MINUTE;
    layouts[phase] = blockUsageOf(api, pool);
  }
  return { tallies, layouts, eventBytes: eventBytesOf(api) };
}

function eventBytesOf({ leases }: SimulatedApi): number {
  const [object] = leases.objects();
  return JSON.stringify({ type: 'MODIFIED', object }).length + SERVER_BYTES;
}

/** @param size number of open addresses, in one subnet */
function poolOf(size: number, blockSize: number): Pool {
  const first = 10n << 24n;
  const last = formatAddress({ family: 4, value: first + BigInt(size) });
  const subnets = [{ cidr: '10.0.0.0/8', ranges: [`10.0.0.1-${last}`] }];
  return compiledPool({ blockSize: { ipv4: blockSize }, subnets });
}
