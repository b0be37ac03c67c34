import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { RESPONDERS_NAMESPACE, RESPONDER_INDEX } from '../../api/names.js';
import { responderSetName } from '../../api/responders.js';
import { NETWORK_INDEXES } from '../../addressing/directory/affected.js';
import { PoolDirectory } from '../../addressing/directory/directory.js';
import { CLAIM_INDEXES } from '../../cluster/watch-specs.js';
import { Client } from '../../kube/client.js';
import { Cache } from '../../kube/informers/cache.js';
import type { ObjectChange } from '../../kube/informers/informer.js';
import { CONFIG_MAPS } from '../../kube/resources.js';
import { MemoryTransport } from '../../kube/testing/memory-transport.js';
import { ManualClock } from '../../test/manual-clock.js';
import { adminPool, cacheOf } from '../../test/objects/pool-objects.js';
import { claim } from '../../test/objects/workload-objects.js';
import { runSync } from '../testing/reconciler-world.js';
import { BY_RESPONDER_SET } from '../views.js';
import { BY_PROBED_POOL } from '../watch-specs.js';
import { TablePublisher } from './publisher.js';

const POOL = adminPool('blue', { cidr: '10.1.0.0/24', guest: { attachment: 'blue', dhcp: {} } });
const SET = responderSetName({ uid: POOL.metadata.uid ?? '' });

type Handler = (change: ObjectChange<IPAMClaim>) => void;

/** The publisher of one table, with caches that show everything as long as `progress` says. */
class Bench {
  readonly clock = new ManualClock(100_000);
  readonly api = new MemoryTransport();
  progress = 100_000;
  readonly #claims = new Cache<IPAMClaim>({ ...CLAIM_INDEXES, ...NETWORK_INDEXES });
  #tell: Handler = () => undefined;
  readonly publisher: TablePublisher;
  readonly #sync;

  constructor() {
    const pools = new Cache<typeof POOL>({ [BY_RESPONDER_SET]: () => [SET] });
    pools.set(POOL);
    const networks = cacheOf([]);
    const informer = (cache: object) =>
      Object.defineProperty({ cache, onChange: () => undefined }, 'lastProgress', { get: () => this.progress });
    const claims = Object.assign(informer(this.#claims), { onChange: (tell: Handler) => (this.#tell = tell) });
    const watched = {
      claims,
      vmis: informer(new Cache()),
      networks: informer(networks),
      pools: informer(pools),
      claimLeases: informer(new Cache({ [BY_PROBED_POOL]: () => [] })),
    };
    const directory = new PoolDirectory({ pools, networks });
    expect(directory.poolsOf('blue'), 'the first state is no change').to.have.length(1);
    const deps = {
      views: { watched, directory },
      informers: { get: () => informer(new Cache()) },
      sets: informer(cacheOf([{ metadata: { name: SET, namespace: RESPONDERS_NAMESPACE } }])),
      client: new Client(this.api),
      clock: this.clock,
      events: { event: () => undefined },
      maxStalenessMs: 30_000,
      indexes: [RESPONDER_INDEX],
      beatOf: () => ({ index: 'index-uid', beat: 1 }),
    };
    // only the caches and their changes are used here
    this.publisher = new TablePublisher(deps as unknown as ConstructorParameters<typeof TablePublisher>[0]);
    this.publisher.listen(() => undefined);
    this.#sync = this.publisher.createSync();
  }

  async build(at: number): Promise<void> {
    this.clock.advanceTo(at);
    this.progress = at;
    await runSync(this.#sync, SET);
  }

  /** A change that alters nothing in the table. */
  change(): void {
    const object = claim({ network: 'blue' });
    const before = this.#claims.set(object);
    this.#tell({ type: 'changed', object, ...(before && { before }) });
  }
}

describe('a table of which something changes all the time', () => {
  it('is as old as its last build by the index, also if that altered nothing', async () => {
    const bench = new Bench();
    await bench.build(100_000);
    const [version = ''] = Object.values(bench.publisher.current(RESPONDER_INDEX).versions);
    expect(bench.api.tracker.list(CONFIG_MAPS)[0]?.data).to.include({ version });
    bench.change();
    for (const at of [110_000, 120_000, 130_000]) {
      await bench.build(at);
      bench.change();
      bench.clock.advanceTo(at + 3_000);
      bench.progress = at + 1_000;
      expect(bench.publisher.current(RESPONDER_INDEX)).to.deep.equal({
        ageMs: 2_000,
        versions: {},
        behind: { [SET]: { version, ageMs: 3_000 } },
      });
    }
    const writes = bench.api.requests.filter(({ method }) => method !== 'GET');
    expect(writes).to.have.length(1);
  });
});
