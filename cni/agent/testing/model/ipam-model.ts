import type { AddressLease } from '../../../../api/address-lease.js';
import { parseAddress } from '../../../../addressing/address/address.js';
import { leaseName } from '../../../../addressing/lease/lease-name.js';
import {
  type LeaseRecord,
  createLease,
  expireLease,
  mayExpire,
  readLease,
  stateOf,
  reallocateLease,
} from '../../../../addressing/lease/lease.js';
import type { Pool } from '../../../../addressing/pool/pool.js';
import { Client } from '../../../../kube/client.js';
import type { Clock } from '../../../../kube/clock.js';
import { ADDRESS_LEASES } from '../../../../kube/resources.js';
import { writeLease } from '../../../../cluster/lease-writes.js';
import { MAX_STALENESS_MS } from './lease-agent.js';
import type { LeaseCluster } from './lease-api.js';

export const TIMES = { cooldownMs: 2 * MAX_STALENESS_MS, stickyMs: 600_000 };
const RESERVED = ['10.0.0.6', 'fd00::6'];
const RESERVED_FOR = '02:00:00:00:00:01';
const CLAIMED = ['10.0.0.2', '10.0.0.3', 'fd00::2', 'fd00::3'];

/** The part of ipam that leases to claims and expires leases of the same pool, with checks of what agents must never do to a lease. */
export class IpamModel {
  readonly #cluster: LeaseCluster;
  readonly #pool: Pool;
  readonly #clock: Pick<Clock, 'wall'>;
  readonly #violated: (text: string) => void;
  readonly #client: Client;
  #isWriting = false;
  #count = 0;

  constructor(
    cluster: LeaseCluster,
    pool: Pool,
    { clock, wrong }: { clock: Pick<Clock, 'wall'>; wrong: (text: string) => void },
  ) {
    this.#cluster = cluster;
    this.#pool = pool;
    this.#clock = clock;
    this.#violated = wrong;
    this.#client = new Client(cluster.server);
  }

  async reserve(): Promise<void> {
    await this.#write(async () => {
      for (const address of RESERVED) await this.#client.create(ADDRESS_LEASES, reservation(address, this.#pool));
    });
  }

  /** Expires released leases whose time is over. */
  async expire(): Promise<void> {
    await this.#write(async () => {
      for (const lease of this.#records()) {
        if (mayExpire(lease, TIMES, this.#clock.wall())) await writeLease(this.#client, expireLease(lease));
      }
    });
  }

  /** Creates a claim and leases an address to it, if possible. */
  async claim(pick: number): Promise<void> {
    const address = parseAddress(CLAIMED[pick % CLAIMED.length]!);
    const uid = `claim${++this.#count}`;
    const owner = { kind: 'IPAMClaim', namespace: 'vms', name: uid, uid } as const;
    const request = { address, addressSpace: this.#pool.addressSpace, pool: this.#pool.name, owner };
    const name = leaseName(request.addressSpace, address);
    const known = this.#records().find(({ metadata }) => metadata.name === name);
    if (known !== undefined && !mayExpire(known, TIMES, this.#clock.wall())) return;
    const write = known === undefined ? createLease(request) : reallocateLease(known, request);
    await this.#write(() => writeLease(this.#client, write));
  }

  /** Deletes the claims and releases their leases. */
  async endClaims(): Promise<void> {
    const releasedAt = new Date(this.#clock.wall()).toISOString();
    await this.#write(async () => {
      for (const { metadata, owner, releasedAt: released } of this.#records()) {
        if (owner?.kind !== 'IPAMClaim' || released !== undefined) continue;
        await writeLease(this.#client, { verb: 'patch', name: metadata.name, body: { spec: { releasedAt } } });
      }
    });
  }

  /** Checks a write of an agent. */
  checkWrite(before: AddressLease | undefined, after: AddressLease | undefined): void {
    if (before === undefined || this.#isWriting) return;
    const was = readLease(before);
    const { name } = was.metadata;
    if (after === undefined) this.#violated(`${name} was deleted by an agent`);
    if (was.owner?.kind === 'IPAMClaim' && stateOf(was) === 'held') this.#violated(`${name} of a claim was changed`);
    if (after === undefined) return;
    const is = readLease(after);
    this.#checkReservation(was, is);
    if (was.owner !== undefined && was.owner.uid !== is.owner?.uid) this.#checkReallocation(was, is);
  }

  #checkReallocation(was: LeaseRecord, is: LeaseRecord): void {
    const isBack = was.owner?.kind === 'Pod' && was.mac !== undefined && was.mac === is.mac;
    const hasCooled = this.#clock.wall() >= (was.releasedAt ?? Infinity) + TIMES.cooldownMs;
    if (!isBack && !hasCooled) this.#violated(`${was.metadata.name} was taken before it had cooled down`);
  }

  #checkReservation(was: LeaseRecord, is: LeaseRecord): void {
    const { name } = was.metadata;
    const wasOfTable = was.owner === undefined || was.reserved === true;
    if (wasOfTable && was.mac !== is.mac) this.#violated(`${name} is reserved for another MAC address now`);
    if (wasOfTable !== (is.reserved === true)) this.#violated(`${name} became a reservation, or is none any more`);
  }

  async #write(work: () => Promise<unknown>): Promise<void> {
    this.#isWriting = true;
    await work();
    this.#isWriting = false;
  }

  #records(): LeaseRecord[] {
    return [...this.#cluster.server.leases.values()].map(readLease);
  }
}

function reservation(text: string, { addressSpace, name }: Pool): AddressLease {
  const metadata = { name: leaseName(addressSpace, parseAddress(text)) };
  return { metadata, spec: { address: text, addressSpace, pool: name, mac: RESERVED_FOR } };
}
