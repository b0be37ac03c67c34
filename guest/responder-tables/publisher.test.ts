import { expect } from 'chai';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AddressLease } from '../../api/address-lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { CLAIM_GUEST_MAC, PROBE_ANNOTATION, RESPONDERS_NAMESPACE, RESPONDER_INDEX } from '../../api/names.js';
import { createLease } from '../../addressing/lease/lease.js';
import { parseAddress } from '../../addressing/address/address.js';
import { Client } from '../../kube/client.js';
import { systemClock } from '../../kube/clock.js';
import { InformerRegistry } from '../../kube/informers/informers.js';
import { silentLogger } from '../../kube/log.js';
import {
  ADDRESS_LEASES,
  ADDRESS_POOLS,
  CONFIG_MAPS,
  IPAM_CLAIMS,
  NETWORK_ATTACHMENT_DEFINITIONS,
  STATEFUL_SETS,
  VIRTUAL_MACHINE_INSTANCES,
} from '../../kube/resources.js';
import { MemoryTransport } from '../../kube/testing/memory-transport.js';
import type { Component } from '../../process/context.js';
import { GUEST_SETTINGS, type GuestConfig } from '../../process/config/guest-config.js';
import { Metrics } from '../../process/metrics.js';
import { defaultConfig } from '../../test/default-config.js';
import { apiError } from '../../test/api-errors.js';
import { adminPool, nadDefinition } from '../../test/objects/pool-objects.js';
import { claim, vmReference, vmi } from '../../test/objects/workload-objects.js';
import { createGuest } from '../main.js';
import { responderSetName } from '../../api/responders.js';
import { indexNames, indexOfTable, readIndex } from './published-index.js';
import { publishedTableOf } from '../testing/received-table-of.js';
import { type PublishedTable, indexNameOf, statementOf } from './published-table.js';

const GUEST = { attachment: 'blue', dhcp: {} };
const POOL = adminPool('blue', { cidr: '10.1.0.0/24', guest: GUEST });
const SET = responderSetName({ uid: POOL.metadata.uid ?? '' });
const MACS = ['02:00:00:00:00:0a', '02:00:00:00:00:0b'];

function claimOfGuest(number: number, more: Partial<IPAMClaim['metadata']> = {}): IPAMClaim {
  const owner = vmReference(`vm${number}-uid`, `vm${number}`);
  const options = { network: 'blue', nad: 'vms/data', owner, ips: [`10.1.0.${number + 2}/24`] };
  const made = claim({ name: `vm${number}.data`, vmNetwork: 'data', ...options });
  const annotations = { ...made.metadata.annotations, [CLAIM_GUEST_MAC]: MACS[number]! };
  made.metadata = { ...made.metadata, uid: `claim${number}-uid`, annotations, ...more };
  return made;
}

function leaseOfGuest(number: number, isProbed = false): AddressLease {
  const { name, namespace = '', uid = '' } = claimOfGuest(number).metadata;
  const owner = { kind: 'IPAMClaim', namespace, name, uid } as const;
  const address = parseAddress(`10.1.0.${number + 2}`);
  return createLease({ address, addressSpace: 'blue', pool: 'blue', owner, isProbed }).object;
}

/** The process `guest` as the only replica, on an API server in memory with one running guest of pool blue. */
class Bench {
  readonly api;
  readonly client;
  readonly #informers: InformerRegistry;
  readonly #guest: Component;

  constructor(api = new MemoryTransport(), maxResponderPools = 32) {
    this.api = api;
    this.client = new Client(api);
    const metrics = new Metrics();
    const shared = { client: this.client, clock: systemClock, random: Math.random, log: silentLogger };
    this.#informers = new InformerRegistry({ ...shared, metrics: metrics.kube });
    const changes = { leaderElect: false, responderImage: 'holdfast:1', maxStalenessMs: 10_000, maxResponderPools };
    const config = { ...defaultConfig<GuestConfig>(GUEST_SETTINGS), ...changes };
    this.#guest = createGuest({ ...shared, informers: this.#informers, metrics }, config);
    const { tracker } = this.api;
    tracker.put(ADDRESS_POOLS, POOL);
    const config2 = { name: 'blue', type: 'bridge', bridge: 'br0', allowPersistentIPs: true };
    for (const key of [`${RESPONDERS_NAMESPACE}/blue`, 'vms/data'])
      tracker.put(NETWORK_ATTACHMENT_DEFINITIONS, nadDefinition(key, config2));
    this.run(0);
  }

  /** A VM with its claim and lease. */
  run(number: number): void {
    const { tracker } = this.api;
    tracker.put(IPAM_CLAIMS, claimOfGuest(number));
    tracker.put(ADDRESS_LEASES, leaseOfGuest(number));
    const options = { name: `vm${number}`, uid: `vmi${number}-uid`, vm: `vm${number}-uid` };
    const made = vmi({ data: 'vms/data' }, options);
    for (const each of made.spec?.domain?.devices?.interfaces ?? []) each.macAddress = MACS[number]!;
    tracker.put(VIRTUAL_MACHINE_INSTANCES, { ...made, status: { phase: 'Running', interfaces: [] } });
  }

  async start(): Promise<void> {
    await this.#guest.start();
  }

  async stop(): Promise<void> {
    await this.#guest.stop();
    await this.#informers.stop();
  }

  /** Waits until the published table satisfies a condition. */
  async untilTable(isWanted: (table: PublishedTable) => boolean): Promise<PublishedTable> {
    return this.until(async () => {
      const object = await this.client.find(CONFIG_MAPS, { namespace: RESPONDERS_NAMESPACE, name: SET });
      const table = object && (await publishedTableOf(object));
      return table !== undefined && isWanted(table) ? table : undefined;
    });
  }

  async until<T>(find: () => Promise<T | undefined>): Promise<T> {
    for (;;) {
      const found = await find();
      if (found !== undefined) return found;
      await sleep(20);
    }
  }

  /** Waits until its index says that the table as it is stored is current. */
  async untilCurrent(): Promise<number> {
    return this.until(async () => {
      const ref = { namespace: RESPONDERS_NAMESPACE };
      const table = await this.client.find(CONFIG_MAPS, { ...ref, name: SET });
      const index = table && (await this.client.find(CONFIG_MAPS, { ...ref, name: indexNameOf(table) }));
      if (table === undefined || index === undefined) return undefined;
      const { versions, beat } = readIndex(index);
      return versions[SET] === statementOf(table).version ? beat : undefined;
    });
  }

  /** Writes of the table. */
  writes(): number {
    return this.api.requests.filter(({ method, path }) => method === 'PUT' && path.endsWith(`/${SET}`)).length;
  }
}

const macsOf = ({ table }: PublishedTable) => [...table.entries.keys()];

describe('the tables that guest publishes', function () {
  this.timeout(20_000);
  let bench: Bench;
  beforeEach(async () => {
    bench = new Bench();
    await bench.start();
  });
  afterEach(() => bench.stop());

  it('have the pool, the configuration of both responders, and the guests', async () => {
    const { pool, configs, table } = await bench.untilTable(({ table: { entries } }) => entries.size === 1);
    expect(pool).to.deep.equal({ name: 'blue', uid: 'blue-uid', network: 'blue', hasIpv6Gateway: false });
    expect(Object.keys(configs)).to.deep.equal([`${SET}-0`, `${SET}-1`]);
    expect(table.entries.get(MACS[0]!)).to.deep.include({ mac: MACS[0], ipv4: { address: '10.1.0.2', prefix: 24 } });
    expect(table.guests.get('10.1.0.2')).to.deep.include({ claim: 'vms/vm0.data' });
  });

  it('follow the VMs, claims and leases', async () => {
    await bench.untilTable((each) => macsOf(each).join() === MACS[0]);
    bench.run(1);
    await bench.untilTable((each) => macsOf(each).join() === MACS.join());
    const name = leaseOfGuest(0).metadata.name;
    await bench.client.patch(
      ADDRESS_LEASES,
      { name },
      { type: 'merge', body: { spec: { releasedAt: '2026-01-01T00:00:00Z' } } },
    );
    await bench.untilTable((each) => macsOf(each).join() === MACS[1]);
    await bench.client.delete(VIRTUAL_MACHINE_INSTANCES, { namespace: 'vms', name: 'vm1' });
    await bench.untilTable((each) => macsOf(each).length === 0);
  });

  it('have each change, also one that comes shortly before a beat of the index', async function () {
    this.timeout(60_000);
    await bench.untilTable((each) => macsOf(each).length === 1);
    const { tracker } = bench.api;
    for (let round = 0; round < 4; round++) {
      const first = await bench.untilCurrent();
      await bench.until(async () => ((await bench.untilCurrent()) > first ? true : undefined));
      // the next beat is due 667 ms after this one
      await sleep(600);
      const addresses = round % 2 === 0 ? 0 : 1;
      const released = addresses === 0 ? { releasedAt: '2026-01-01T00:00:00Z' } : {};
      const lease = leaseOfGuest(0);
      tracker.put(ADDRESS_LEASES, { ...lease, spec: { ...lease.spec, ...released } });
      await bench.untilTable((each) => macsOf(each).length === addresses);
    }
  });

  it('have the probes that ipam requests, until they have ended', async () => {
    bench.api.tracker.put(IPAM_CLAIMS, claimOfGuest(1));
    await bench.client.create(ADDRESS_LEASES, leaseOfGuest(1, true));
    const { probes } = await bench.untilTable((each) => each.probes.length === 1);
    expect(probes[0]).to.deep.include({ address: '10.1.0.3', expected: [MACS[1]] });
    const { name } = leaseOfGuest(1).metadata;
    const body = { metadata: { annotations: { [PROBE_ANNOTATION]: 'free' } } };
    await bench.client.patch(ADDRESS_LEASES, { name }, { type: 'merge', body });
    await bench.untilTable((each) => each.probes.length === 0);
  });

  it('are current by the index, whose beats rise, and are not written again without a change', async () => {
    await bench.untilTable((each) => macsOf(each).length === 1);
    const first = await bench.untilCurrent();
    const writes = bench.writes();
    await bench.until(async () => ((await bench.untilCurrent()) > first + 1 ? true : undefined));
    expect(bench.writes()).to.equal(writes);
  });

  it('are current by another index, and name it, when so many responders are allowed that there are several', async () => {
    await bench.untilCurrent();
    await bench.stop();
    bench = new Bench(bench.api, 5_000);
    await bench.start();
    const name = indexOfTable(SET, indexNames(5_000));
    expect(name).not.to.equal(RESPONDER_INDEX);
    await bench.until(async () => {
      const table = await bench.client.get(CONFIG_MAPS, { namespace: RESPONDERS_NAMESPACE, name: SET });
      return indexNameOf(table) === name ? true : undefined;
    });
    const first = await bench.untilCurrent();
    await bench.until(async () => ((await bench.untilCurrent()) > first ? true : undefined));
  });

  it('are not called current while a change cannot be read, because the pool is invalid', async () => {
    await bench.untilCurrent();
    const guest = { ...GUEST, dns: { nameservers: ['none'] } };
    bench.api.tracker.put(ADDRESS_POOLS, {
      ...POOL,
      metadata: { ...POOL.metadata, resourceVersion: '' },
      spec: { ...POOL.spec, guest },
    });
    await bench.until(async () => {
      const index = await bench.client.get(CONFIG_MAPS, { namespace: RESPONDERS_NAMESPACE, name: RESPONDER_INDEX });
      return readIndex(index).versions[SET] === undefined ? true : undefined;
    });
    bench.api.tracker.put(ADDRESS_POOLS, POOL);
    await bench.untilCurrent();
  });

  it('are written again after somebody changed or deleted them', async () => {
    await bench.untilTable((each) => macsOf(each).length === 1);
    const ref = { namespace: RESPONDERS_NAMESPACE, name: SET };
    const { metadata } = await bench.client.get(CONFIG_MAPS, ref);
    await bench.client.replace(CONFIG_MAPS, { metadata, data: { version: 'forged' } });
    await bench.until(async () => {
      const { data } = await bench.client.get(CONFIG_MAPS, ref);
      return data?.version === 'forged' ? undefined : true;
    });
    await bench.client.delete(CONFIG_MAPS, ref);
    await bench.untilTable((each) => macsOf(each).length === 1);
  });

  it('are written although a write fails', async () => {
    await bench.untilTable((each) => macsOf(each).length === 1);
    let failures = 2;
    bench.api.before = ({ method, path }) => {
      if (method === 'PUT' && path.endsWith(`/${SET}`) && failures-- > 0)
        throw apiError(409, 'Conflict', 'the object has been modified', SET);
    };
    bench.run(1);
    await bench.untilTable((each) => macsOf(each).length === 2);
    expect(failures).to.be.at.most(0);
  });

  it('go with their responders', async () => {
    await bench.untilCurrent();
    const { guest: _guest, ...spec } = POOL.spec;
    bench.api.tracker.put(ADDRESS_POOLS, { ...POOL, spec });
    await bench.until(async () => {
      const set = await bench.client.find(STATEFUL_SETS, { namespace: RESPONDERS_NAMESPACE, name: SET });
      const table = await bench.client.find(CONFIG_MAPS, { namespace: RESPONDERS_NAMESPACE, name: SET });
      return set === undefined && table === undefined ? true : undefined;
    });
  });
});
