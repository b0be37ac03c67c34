import type { LeaseOwner, LeaseWrite } from '../../api/address-lease.js';
import { type Address, parseAddress } from '../address/address.js';
import { leaseName } from '../lease/lease-name.js';
import {
  type LeaseRecord,
  type LeaseRequest,
  type LeaseTimes,
  createLease,
  expireLease,
  mayExpire,
  availabilityOf,
  isReservation,
  patchLease,
  releaseLease,
  stateOf,
  reallocateLease,
} from '../lease/lease.js';
import { timesWhenExhausted } from '../lease/lease-times.js';
import { PROBE_ANNOTATION } from '../../api/names.js';
import { type ProbeState, formatProbe } from '../../api/probe.js';
import { quarantineLease } from '../lease/lease-quarantine.js';
import { Client } from '../../kube/client.js';
import { StatusError } from '../../kube/errors.js';
import { writeLease } from '../../cluster/lease-writes.js';
import { LeaseInvariants } from './lease-invariants.js';
import { LeaseReader } from './lease-reader.js';
import { LeaseServer } from '../../test/object-tracker/lease-server.js';

const SPACE = 'fabric';
const ADDRESSES = ['10.0.0.1', '10.0.0.2', 'fd00::1'].map(parseAddress);
export const POOLS = ['blue', 'green'];
const TIMES: LeaseTimes = { cooldownMs: 60_000, stickyMs: 300_000, isStickyForClaims: true };
const QUARANTINE_MS = 120_000;
/** A host on the wire that Holdfast does not know. */
const HOST = '02:00:00:00:00:ff';
const ANSWERS: readonly ProbeState[] = ['free', { taken: HOST }, 'self', { taken: HOST }, 'skipped'];
/** After this time a request has failed, and the server does not process it any more. */
const DEADLINE_MS = 10_000;

interface ModelClaim {
  readonly owner: LeaseOwner;
  readonly pool: string;
  readonly mac: string | undefined;
  /** The address is probed before the claim shows it. */
  readonly isProbed: boolean;
}

/** A write that a process has decided on and the server has not processed. */
interface PendingWrite {
  readonly write: LeaseWrite;
  readonly decidedAt: number;
  readonly byAdmin: boolean;
  /** The process that decided saw no free address. */
  readonly isExhausted: boolean;
  /** The owner for whom it allocates. */
  readonly claim: ModelClaim | undefined;
}

export const JOBS = ['allocate', 'probe', 'collect', 'expire', 'reserve', 'unreserve'] as const;
export type Job = (typeof JOBS)[number];

/** Claims, an API server, and processes that decide with caches of any age and write later. */
export class LeaseWorld {
  readonly server: LeaseServer;
  readonly readers: readonly LeaseReader[];
  readonly #claims: ModelClaim[] = [];
  readonly #alive = new Set<string>();
  readonly #pending: PendingWrite[] = [];
  /** The UIDs of owners who got a positive answer, by lease name. */
  readonly #answered = new Map<string, Set<string>>();
  readonly #client: Client;
  #now = Date.parse('2026-01-01T00:00:00Z');
  #serving: PendingWrite | undefined;
  #count = 0;

  constructor(processes: number) {
    const world = {
      now: () => this.#now,
      isAlive: (uid: string) => this.#alive.has(uid),
      byAdmin: () => this.#serving?.byAdmin ?? false,
      isExhausted: () => this.#serving?.isExhausted ?? false,
    };
    const judge = new LeaseInvariants(world, { ...TIMES, quarantineMs: QUARANTINE_MS }, DEADLINE_MS);
    this.server = new LeaseServer((before, after) => {
      judge.check(before, after);
      if (after?.spec.releasedAt !== undefined) this.#answered.delete(after.metadata.name);
    });
    this.readers = Array.from({ length: processes }, () => new LeaseReader(this.server.tracker, () => this.#now));
    this.#client = new Client(this.server);
  }

  /** Creates the next claim or pod of a workload. Some have a fixed MAC address. */
  claim(workload: number, pool: string): void {
    this.#count += 1;
    const uid = `claim-${this.#count}`;
    const namespace = workload === 4 ? 'b' : 'a';
    const owner: LeaseOwner =
      workload % 2 === 0
        ? { kind: 'IPAMClaim', namespace, name: uid, uid, workloadUID: `vm-${workload}` }
        : { kind: 'Pod', namespace, name: uid, uid };
    // several workloads share one, like a VM that was recreated
    const mac = workload % 3 === 0 ? undefined : macOf(workload);
    this.#claims.push({ owner, pool, mac, isProbed: owner.kind === 'IPAMClaim' && workload > 0 });
    this.#alive.add(uid);
  }

  endClaim(pick: number): void {
    const living = this.#claims.filter(({ owner }) => this.#alive.has(owner.uid));
    const ended = choose(living, pick);
    if (ended !== undefined) this.#alive.delete(ended.owner.uid);
  }

  pass(ms: number): void {
    this.#now += ms;
    // the client gives up on late requests, and the server does not process them
    for (const late of this.#pending.filter(({ decidedAt }) => this.#now - decidedAt > DEADLINE_MS)) this.drop(late);
  }

  /** Lets a process decide on a write with the events that it has read. */
  decide(process: number, job: Job, pick: number): void {
    const reader = this.readers[process];
    if (reader === undefined) return;
    if (job === 'allocate') this.#allocate(reader, pick);
    else this.#enqueue(this.#writeFor(reader, job, pick), { byAdmin: job === 'reserve' || job === 'unreserve' });
  }

  /** Lets the server process one pending write. The answer may be lost. */
  async serve(pick: number, isAnswerLost: boolean): Promise<void> {
    const next = choose(this.#pending, pick);
    if (next === undefined) return;
    this.drop(next);
    this.#serving = next;
    try {
      await writeLease(this.#client, next.write);
      const { write, claim } = next;
      const name = write.verb === 'create' ? write.object.metadata.name : write.name;
      const isProbed = this.server.leases.get(name)?.metadata.annotations?.[PROBE_ANNOTATION] !== undefined;
      if (!isAnswerLost && claim !== undefined && !isProbed) this.#tell(name, claim.owner);
    } catch (error) {
      if (!(error instanceof StatusError) || ![404, 409].includes(error.status)) throw error;
    } finally {
      this.#serving = undefined;
    }
  }

  drop(write: PendingWrite): void {
    this.#pending.splice(this.#pending.indexOf(write), 1);
  }

  /** @throws {Error} if two owners got an answer for one address, or one that does not hold it */
  check(): void {
    for (const [name, uids] of this.#answered) {
      const holder = this.server.leases.get(name)?.spec.owner?.uid;
      if (uids.size > 1) throw new Error(`${name} was given to ${[...uids].join(' and ')}`);
      if (!uids.has(holder ?? ''))
        throw new Error(`${name} belongs to ${holder ?? 'nobody'}, not to ${[...uids].join()}`);
    }
  }

  /** Ends all owners, lets all processes catch up, and lets all times pass. */
  async settle(): Promise<void> {
    this.#alive.clear();
    while (this.#pending.length > 0) await this.serve(0, false);
    for (const job of ['collect', 'expire'] as const) {
      this.readers[0]?.deliver();
      this.pass(TIMES.stickyMs);
      for (let pick = 0; pick < ADDRESSES.length; pick++) this.decide(0, job, pick);
      while (this.#pending.length > 0) await this.serve(0, false);
    }
  }

  #allocate(reader: LeaseReader, pick: number): void {
    const held = reader.cache.list().filter((record) => stateOf(record) === 'held');
    const served = new Set(held.map(({ owner }) => owner?.uid));
    const waiting = this.#claims.filter(({ owner }) => this.#alive.has(owner.uid) && !served.has(owner.uid));
    const claim = choose(waiting, pick);
    if (claim === undefined) return;
    const writesWith = (times: LeaseTimes) =>
      ADDRESSES.flatMap((address) => this.#writesFor(address, claim, reader, times));
    const candidates = writesWith(TIMES);
    const isExhausted = candidates.length === 0;
    const writes = isExhausted ? writesWith(timesWhenExhausted(TIMES)) : candidates;
    const write = choose(writes, Math.floor(pick / waiting.length));
    if (write !== undefined) this.#enqueue(write, { claim, isExhausted });
  }

  #writesFor(address: Address, claim: ModelClaim, reader: LeaseReader, times: LeaseTimes): LeaseWrite[] {
    const { owner, pool, mac } = claim;
    const known = reader.cache.get(leaseName(SPACE, address));
    const isProbed = claim.isProbed && !(known !== undefined && isReservation(known));
    const request: LeaseRequest = { address, addressSpace: SPACE, pool, owner, isProbed, ...(mac && { mac }) };
    if (known === undefined) return [createLease(request)];
    return availabilityOf(known, request, times, this.#now) === true ? [reallocateLease(known, request)] : [];
  }

  /** A responder or ipam answers a probe; or ipam acts on the answer: the claim shows the address, or it is quarantined. */
  #probe(lease: LeaseRecord, pick: number, setMs: number): LeaseWrite | undefined {
    const { probe, owner, metadata } = lease;
    if (probe === 'requested') {
      const answer = formatProbe(choose(ANSWERS, pick)!);
      return patchLease(lease, { annotations: { [PROBE_ANNOTATION]: answer }, spec: {} });
    }
    if (typeof probe === 'object') return quarantineLease(lease, probe.taken, this.#now + setMs, QUARANTINE_MS);
    if (owner !== undefined && this.#alive.has(owner.uid)) this.#tell(metadata.name, owner);
    return undefined;
  }

  #writeFor(reader: LeaseReader, job: Exclude<Job, 'allocate'>, pick: number): LeaseWrite | undefined {
    const among = (fits: (record: LeaseRecord) => boolean) => choose(reader.cache.list().filter(fits), pick);
    switch (job) {
      case 'probe': {
        const probed = among((record) => stateOf(record) === 'held' && record.probe !== undefined);
        return probed && this.#probe(probed, pick, reader.setMs);
      }
      case 'collect': {
        // the owner is read live, never from a cache
        const leaked = among((record) => stateOf(record) === 'held' && !this.#alive.has(record.owner?.uid ?? ''));
        return leaked && releaseLease(leaked, this.#now + reader.setMs);
      }
      case 'expire': {
        const over = among((record) => mayExpire(record, TIMES, this.#now));
        return over && expireLease(over);
      }
      case 'reserve': {
        const address = choose(ADDRESSES, pick)!;
        return reader.cache.get(leaseName(SPACE, address)) === undefined ? reservation(address, pick) : undefined;
      }
      case 'unreserve': {
        const reserved = among((record) => stateOf(record) === 'reserved');
        return reserved && removal(reserved);
      }
    }
  }

  #enqueue(
    write: LeaseWrite | undefined,
    { claim, byAdmin = false, isExhausted = false }: Partial<Pick<PendingWrite, 'claim' | 'byAdmin' | 'isExhausted'>>,
  ): void {
    if (write !== undefined) this.#pending.push({ write, byAdmin, isExhausted, claim, decidedAt: this.#now });
  }

  #tell(name: string, { uid }: LeaseOwner): void {
    this.#answered.set(name, (this.#answered.get(name) ?? new Set()).add(uid));
  }
}

function reservation(address: Address, pick: number): LeaseWrite {
  const owner: LeaseOwner = { kind: 'Pod', namespace: '', name: '', uid: '' };
  const made = createLease({ address, addressSpace: SPACE, pool: choose(POOLS, pick)!, owner });
  const { owner: _owner, ...spec } = made.object.spec;
  const mac = pick % 4 === 0 ? {} : { mac: macOf(pick) };
  return { verb: 'create', object: { ...made.object, spec: { ...spec, ...mac } } };
}

function macOf(number: number): string {
  return `02:00:00:00:00:0${number % 3}`;
}

function removal({ metadata: { name, uid, resourceVersion } }: LeaseRecord): LeaseWrite {
  return { verb: 'delete', name, uid, resourceVersion };
}

function choose<T>(among: readonly T[], pick: number): T | undefined {
  return among[pick % Math.max(among.length, 1)];
}
