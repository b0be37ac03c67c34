import type { AddressPool } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { VirtualMachineInstance } from '../../api/kubevirt.js';
import { CLAIM_INDEXES } from '../../cluster/watch-specs.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import { type TableCaches, buildTable, poolGuests } from '../../guest/responder-tables/table.js';
import { RememberedGuests } from '../../guest/layer2-guests.js';
import { findGuests } from '../../guest/running-guests.js';
import { NETWORK_INDEXES } from '../../addressing/directory/affected.js';
import { type LeaseRecord, readLease } from '../../addressing/lease/lease.js';
import type { Pool } from '../../addressing/pool/pool.js';
import { PoolDirectory } from '../../addressing/directory/directory.js';
import { Cache } from '../../kube/informers/cache.js';
import { systemClock } from '../../kube/clock.js';
import { runInSlices } from '../../kube/run-in-slices.js';
import { adminPool, nad } from '../../test/objects/pool-objects.js';
import type { Figure } from '../report.js';
import { runningVm } from './running-vms.js';

const VMS = 100;
const NETWORKS = 256;
/** Probes and watches of the process wait so long. */
const LONGEST_BLOCK_MS = 50;
const LAYER2 = { type: 'bridge', allowPersistentIPs: true };

/** Measures how long the process `guest` holds up its event loop while it looks at VMs with as many networks as possible. */
export async function benchGuestTables(): Promise<Figure[]> {
  const [apart, shared] = [world(false), world(true)];
  const networks = [...apart.directory.poolsBySegment.values()].flatMap((pools) => [...pools]);
  function* conditions() {
    for (const { network } of networks) yield* findGuests(network, apart.caches);
  }
  const tableOf = ({ pool, caches }: BenchWorld) => runInSlices(steps(pool, caches), systemClock);
  function* steps(pool: Pool, caches: TableCaches) {
    return yield* buildTable(pool, yield* poolGuests(pool, caches));
  }
  const what = `${VMS} VMs with ${NETWORKS} interfaces`;
  // the first table is that of a process whose code is not compiled yet, and which remembers nothing
  return [
    ...(await measure(`${what} on networks of their own: first table`, () => tableOf(apart))),
    ...(await measure(`${what} on networks of their own: next table`, () => tableOf(apart))),
    ...(await measure(`${what} on networks of their own: conditions of all`, () =>
      runInSlices(conditions(), systemClock),
    )),
    ...(await measure(`${what} on one network: first table`, () => tableOf(shared))),
    ...(await measure(`${what} on one network: next table`, () => tableOf(shared))),
  ];
}

async function measure(name: string, run: () => Promise<unknown>): Promise<Figure[]> {
  const watch = watchEventLoop();
  const startedAt = performance.now();
  await run();
  const seconds = (performance.now() - startedAt) / 1000;
  const longestMs = await watch.longestMs();
  return [
    { name, value: seconds, unit: 's' },
    { name: `${name}, longest block`, value: longestMs, unit: 'ms', target: { atMost: LONGEST_BLOCK_MS } },
  ];
}

/** Turns of the event loop follow each other without a pause, so each gap is a block. */
function watchEventLoop() {
  let [longest, last] = [0, performance.now()];
  const ended = new AbortController();
  const turn = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (!ended.signal.aborted) setImmediate(turn);
  };
  setImmediate(turn);
  const longestMs = () =>
    new Promise<number>((resolve) => {
      ended.abort();
      setImmediate(() => resolve(longest));
    });
  return { longestMs };
}

interface BenchWorld {
  /** Of the first network. */
  readonly pool: Pool;
  readonly caches: TableCaches;
  readonly directory: PoolDirectory;
}

/** @param isShared all interfaces are on one CNI network, by NADs of their own */
function world(isShared: boolean): BenchWorld {
  const caches = {
    claims: new Cache<IPAMClaim>({ ...CLAIM_INDEXES, ...NETWORK_INDEXES }),
    vmis: new Cache<VirtualMachineInstance>(),
    networks: new Cache<ParsedNad>(),
    leases: new Cache<LeaseRecord>(),
  };
  const pools = new Cache<AddressPool>();
  const networkOf = (index: number) => (isShared ? 'net0' : `net${index}`);
  const names = Array.from({ length: NETWORKS }, (_, index) => `net${index}`);
  for (const [index, name] of names.entries()) {
    caches.networks.set(nad(`vms/${name}`, { ...LAYER2, name: networkOf(index), bridge: networkOf(index) }));
    const guest = { attachment: name, dhcp: {} };
    if (index === 0 || !isShared) pools.set(adminPool(name, { network: name, cidr: '10.0.0.0/8', guest }));
  }
  for (let number = 0; number < VMS; number++) {
    const vm = runningVm(number, names, networkOf);
    caches.vmis.set(vm.vmi);
    for (const { claim, lease } of vm.claims) {
      caches.claims.set(claim);
      caches.leases.set(readLease(lease));
    }
  }
  const directory = new PoolDirectory({ pools, networks: caches.networks });
  const state = directory.stateOf('net0');
  if (state?.kind !== 'served') throw new Error('the pool does not serve');
  const remembered = new RememberedGuests({ ...caches, directory });
  return { pool: state.pool, directory, caches: { ...caches, directory, remembered } };
}
