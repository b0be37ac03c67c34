import type { AddressLease } from '../../api/address-lease.js';
import { formatAddress, parseAddress } from '../../ipam/core/address.js';
import {
  type LeaseRecord,
  createLease,
  expireLease,
  mayExpire,
  readLease,
  stateOf,
  takeLease,
} from '../../ipam/core/lease.js';
import type { Pool } from '../../ipam/core/pool.js';
import { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { writeLease } from '../../process/lease-writes.js';
import { MAX_STALENESS_MS } from './lease-agent.js';
import type { LeaseCluster } from './lease-api.js';

const TIMES = { cooldownMs: 2 * MAX_STALENESS_MS, stickyMs: 0 };
const CLAIMED = ['10.0.0.2', '10.0.0.3', 'fd00::2', 'fd00::3'];

/** ipam, which leases from the same pool to claims and deletes what has cooled down; and what agents must never do to a lease. */
export class IpamSide {
  readonly #cluster: LeaseCluster;
  readonly #pool: Pool;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #wrong: (text: string) => void;
  readonly #client: Client;
  #isWriting = false;
  #count = 0;

  constructor(
    cluster: LeaseCluster,
    pool: Pool,
    { clock, wrong }: { clock: Pick<Clock, 'now'>; wrong: (text: string) => void },
  ) {
    this.#cluster = cluster;
    this.#pool = pool;
    this.#clock = clock;
    this.#wrong = wrong;
    this.#client = new Client(cluster.server);
  }

  /** What is released for long enough is deleted. */
  async expire(): Promise<void> {
    await this.#write(async () => {
      for (const lease of this.#records()) {
        if (mayExpire(lease, TIMES, this.#clock.now())) await writeLease(this.#client, expireLease(lease));
      }
    });
  }

  /** A claim gets an address, if it can. */
  async claim(pick: number): Promise<void> {
    const address = parseAddress(CLAIMED[pick % CLAIMED.length]!);
    const uid = `claim${++this.#count}`;
    const owner = { kind: 'IPAMClaim', namespace: 'vms', name: uid, uid } as const;
    const request = { address, addressSpace: this.#pool.addressSpace, pool: this.#pool.name, owner };
    const known = this.#records().find((lease) => formatAddress(lease.address) === formatAddress(address));
    if (known !== undefined && !mayExpire(known, TIMES, this.#clock.now())) return;
    const write = known === undefined ? createLease(request) : takeLease(known, request);
    await this.#write(() => writeLease(this.#client, write));
  }

  /** The claims go, and their leases with them. */
  async endClaims(): Promise<void> {
    const releasedAt = new Date(this.#clock.now()).toISOString();
    await this.#write(async () => {
      for (const { metadata, owner, releasedAt: released } of this.#records()) {
        if (owner?.kind !== 'IPAMClaim' || released !== undefined) continue;
        await writeLease(this.#client, { verb: 'patch', name: metadata.name, body: { spec: { releasedAt } } });
      }
    });
  }

  /** Looks at each write of an agent that the API server makes. */
  judge(before: AddressLease | undefined, after: AddressLease | undefined): void {
    if (before === undefined || this.#isWriting) return;
    const was = readLease(before);
    const { name } = was.metadata;
    if (after === undefined) this.#wrong(`${name} was deleted by an agent`);
    if (was.owner?.kind === 'IPAMClaim' && stateOf(was) === 'held') this.#wrong(`${name} of a claim was changed`);
    const isOther = was.owner?.uid !== after?.spec.owner?.uid;
    if (isOther && !mayExpire(was, TIMES, this.#clock.now()))
      this.#wrong(`${name} was taken before it had cooled down`);
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
