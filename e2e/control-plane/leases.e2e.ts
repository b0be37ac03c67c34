import { expect } from 'chai';
import { join } from 'node:path';
import type { AddressLease, LeaseOwner, LeaseWrite } from '../../api/address-lease.js';
import { type Address, parseAddress } from '../../addressing/address/address.js';
import { leaseName } from '../../addressing/lease/lease-name.js';
import {
  createLease,
  expireLease,
  availabilityOf,
  readLease,
  releaseLease,
  stateOf,
  reallocateLease,
} from '../../addressing/lease/lease.js';
import { Client } from '../../kube/client.js';
import { loadCredentials } from '../../kube/transport/credentials.js';
import { classifyError } from '../../kube/errors.js';
import { EMPTY_SERVER } from '../../manifests/testing/shared-server.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { Transport } from '../../kube/transport/transport.js';
import { writeLease } from '../../cluster/lease-writes.js';
import type { ControlPlane } from '../../bed/control-plane/control-plane.js';
import { createAll, readManifests } from '../../bed/control-plane/objects.js';
import { MANIFESTS } from '../../bed/holdfast/manifests.js';
import { until } from '../../bed/processes/wait.js';

const ADDRESSES = Array.from({ length: 100 }, (_, i) => parseAddress(i % 2 === 0 ? `10.1.0.${i}` : `fd00::${i}`));
const TIMES = { cooldownMs: 60_000, stickyMs: 0 };
const NOW = Date.parse('2026-01-01T00:00:00Z');
const POOL = { addressSpace: 'Race_1', pool: 'race' };

/** One of several independent processes. */
class Racer {
  readonly name: string;
  readonly client: Client;
  #count = 0;

  constructor(name: string, client: Client) {
    this.name = name;
    this.client = client;
  }

  owner(): LeaseOwner {
    this.#count += 1;
    const name = `${this.name}-${this.#count}`;
    return { kind: 'Pod', namespace: this.name, name, uid: `uid-of-${name}` };
  }

  /** @returns the lease; undefined if another process was faster */
  async write(write: LeaseWrite): Promise<AddressLease | 'gone' | undefined> {
    try {
      return (await writeLease(this.client, write)) ?? 'gone';
    } catch (error) {
      if (classifyError(error) === 'stale') return undefined;
      throw error;
    }
  }
}

/** Leases on a real API server: the creation of a lease is the lock. */
describe('Concurrent allocations', function () {
  let plane: ControlPlane;
  let racers: Racer[] = [];

  EMPTY_SERVER.use(this, async (started) => {
    plane = started;
    await createAll(plane.client, await readManifests(join(MANIFESTS, 'crds', 'addressleases.yaml')));
    await until('leases are served', () => plane.client.list(ADDRESS_LEASES));
    racers = await Promise.all(
      ['left', 'right'].map(async (name) => {
        const credentials = await loadCredentials({ kubeconfig: plane.kubeconfig });
        return new Racer(name, new Client(new Transport(credentials, { connections: 8 })));
      }),
    );
  });

  after(async () => {
    await Promise.all(racers.map(({ client }) => client.transport.close()));
  });

  /** All processes try the same on all addresses at once. @returns the winner of each address */
  async function race(
    attempt: (racer: Racer, address: Address, index: number) => LeaseWrite,
  ): Promise<(string | undefined)[]> {
    return Promise.all(
      ADDRESSES.map(async (address, index) => {
        // random delays vary the order
        const order = index % 2 === 0 ? racers : [...racers].reverse();
        const results = await Promise.all(order.map((racer) => racer.write(attempt(racer, address, index))));
        const winners = order.filter((_, i) => results[i] !== undefined).map(({ name }) => name);
        expect(winners, `winners of ${leaseName(POOL.addressSpace, address)}`).to.have.length(1);
        return winners[0];
      }),
    );
  }

  async function stored() {
    const { items } = await plane.client.list(ADDRESS_LEASES);
    const byName = new Map(items.map((lease) => [lease.metadata.name, readLease(lease)]));
    return ADDRESSES.map((address) => byName.get(leaseName(POOL.addressSpace, address))!);
  }

  async function releaseAll(): Promise<void> {
    const records = await stored();
    await Promise.all(records.map((record) => writeLease(plane.client, releaseLease(record, NOW))));
  }

  it('give each address to exactly one owner', async () => {
    const winners = await race((racer, address) => createLease({ ...POOL, address, owner: racer.owner() }));
    const records = await stored();
    expect(records.map(({ owner }) => owner?.namespace)).to.deep.equal(winners);
    expect(new Set(records.map(({ owner }) => owner?.uid)).size).to.equal(ADDRESSES.length);
  });

  it('give each released address to exactly one new owner, with no field of the old one', async () => {
    await releaseAll();
    const released = await stored();
    const winners = await race((racer, address, index) => {
      const request = { ...POOL, address, owner: racer.owner(), node: racer.name };
      expect(availabilityOf(released[index]!, request, TIMES, NOW + TIMES.cooldownMs)).to.equal(true);
      return reallocateLease(released[index]!, request);
    });
    const records = await stored();
    expect(records.map(stateOf)).to.deep.equal(ADDRESSES.map(() => 'held'));
    expect(records.map(({ owner, node }) => [owner?.namespace, node])).to.deep.equal(
      winners.map((name) => [name, name]),
    );
    expect(records.map(({ metadata }) => metadata.uid)).to.deep.equal(released.map(({ metadata }) => metadata.uid));
    const { items } = await plane.client.list(ADDRESS_LEASES, { labelSelector: 'ipam.holdfast.dev/node=left' });
    expect(items).to.have.length(winners.filter((name) => name === 'left').length);
  });

  it('either expire or reallocate a released address, never both', async () => {
    await releaseAll();
    const released = await stored();
    const winners = await race((racer, address, index) =>
      (racer.name === 'left') === index % 4 < 2
        ? expireLease(released[index]!)
        : reallocateLease(released[index]!, { ...POOL, address, owner: racer.owner() }),
    );
    const left = (await plane.client.list(ADDRESS_LEASES)).items.map(readLease);
    const takers = winners.filter((name, index) => (name === 'left') !== index % 4 < 2);
    expect(left.map(stateOf)).to.deep.equal(takers.map(() => 'held'));
  });

  it('lease an expired address again, and reject writes that are based on the old lease', async () => {
    const before = await plane.client.list(ADDRESS_LEASES);
    for (const { metadata } of before.items) await plane.client.delete(ADDRESS_LEASES, { name: metadata.name });
    const [address] = ADDRESSES;
    const [left, right] = racers;
    const first = readLease(
      (await left!.write(createLease({ ...POOL, address: address!, owner: left!.owner() }))) as AddressLease,
    );
    const released = readLease((await left!.write(releaseLease(first, NOW))) as AddressLease);
    expect(await left!.write(expireLease(released))).to.equal('gone');
    await right!.write(createLease({ ...POOL, address: address!, owner: right!.owner() }));
    const late = [
      expireLease(released),
      releaseLease(first, NOW),
      reallocateLease(released, { ...POOL, address: address!, owner: left!.owner() }),
    ];
    for (const write of late) expect(await left!.write(write), write.verb).to.equal(undefined);
    const [lease] = (await plane.client.list(ADDRESS_LEASES)).items.map(readLease);
    expect(lease?.owner?.namespace).to.equal('right');
    expect(stateOf(lease!)).to.equal('held');
  });
});
