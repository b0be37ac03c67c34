import { createHash } from 'node:crypto';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { describeValue } from '../../api/json.js';
import { byAge, joinKey } from '../../api/meta.js';
import { leaseName } from '../../ipam/core/lease-name.js';
import { type LeaseRecord, readLease } from '../../ipam/core/lease.js';
import type { Client } from '../../kube/client.js';
import { forEachParallel } from '../../kube/for-each-parallel.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import type { GuestInterface } from '../interfaces.js';
import { allLeasedAddresses, shownAddresses } from '../leased-addresses.js';
import type { ObservedWorkload } from '../observed-workload.js';
import type { NetworkDataOutcome } from './conditions.js';
import { type NetworkDataInput, networkDataOf } from './plan.js';
import { type NetworkDataRequest, networkDataRequest, secretNameIn } from './request.js';
import { withdrawSecret, writeSecret } from './secret.js';

/** Workloads that may name one Secret, so that its owner can be found. A Secret of more is written for none of them. */
export const MAX_SECRET_USERS = 16;
const SECRET_SHARED = 'SecretShared';
/** Leases of a VM that are read at the same time. */
const CONCURRENT_READS = 8;
/** Until leases are read again for the first time. */
const RETRY_MS = 5_000;
/** Until a Secret that was rejected is written again for the first time. */
const REJECTED_RETRY_MS = 30_000;
const MAX_RETRY_MS = 60_000;

export interface NetworkDataDeps {
  readonly client: Pick<Client, 'create' | 'patch' | 'find'>;
  /** The workloads of the namespace that name the Secret, this one too. */
  readonly usersOf: (namespace: string, secret: string) => readonly ObservedWorkload[];
  readonly interfacesOf: (workload: ObservedWorkload) => readonly GuestInterface[];
  /** A Secret was written. */
  readonly written: () => void;
}

/** What became of the network data, and when to look again. */
export interface NetworkDataResult {
  readonly outcome: NetworkDataOutcome;
  readonly retryAfterMs?: number;
}

/**
 * Writes the Secrets of VMs during one term of leadership. A Secret has data only while all addresses in it are leased to the claims of its VM,
 * because a launcher may start at any time. It remembers what it has written, because it may not read Secrets.
 */
export class NetworkData {
  readonly #deps: NetworkDataDeps;
  /** The Secret of each workload that has data, and the state for which it was written. */
  readonly #written = new Map<string, { readonly secret: string; readonly state: string }>();
  /** The state for which the Secret of a workload was emptied. */
  readonly #withdrawn = new Map<string, string>();
  /** By workload: how often the same state could not be written. */
  readonly #failures = new Map<string, { readonly state: string; readonly count: number }>();

  constructor(deps: NetworkDataDeps) {
    this.#deps = deps;
  }

  forget(key: string): void {
    this.#written.delete(key);
    this.#failures.delete(key);
    this.#withdrawn.delete(key);
  }

  /** @param isRecorded a claim of the VM says what became of the Secret, perhaps of an earlier term */
  async reconcile(workload: ObservedWorkload, isRecorded: boolean, signal: AbortSignal): Promise<NetworkDataResult> {
    const interfaces = this.#deps.interfacesOf(workload);
    const request = requestOf(workload, interfaces);
    const key = joinKey(workload.namespace, workload.owner.name);
    const result = await this.#fulfil(key, workload, { request, interfaces }, signal);
    const { outcome } = result;
    const kept = outcome.kind === 'written' ? outcome.secret : undefined;
    const written = this.#written.get(key)?.secret;
    if (written !== undefined && written !== kept) await this.#withdraw(key, workload, written, signal);
    const isOfAnother = outcome.kind === 'not-written' && outcome.reason === SECRET_SHARED;
    const named = request.kind === 'secret' || isRecorded ? secretNameIn(workload.spec) : undefined;
    if (named !== undefined && named !== kept && !isOfAnother) await this.#withdraw(key, workload, named, signal);
    return result;
  }

  async #fulfil(
    key: string,
    workload: ObservedWorkload,
    { request, interfaces }: { request: NetworkDataRequest; interfaces: readonly GuestInterface[] },
    signal: AbortSignal,
  ): Promise<NetworkDataResult> {
    if (request.kind === 'none') return { outcome: request };
    if (request.kind === 'refused') return refused(request);
    const { name, format } = request;
    const shared = this.#sharingProblem(workload, name);
    if (shared !== undefined) return refused({ reason: SECRET_SHARED, message: `${shared}: name another Secret` });
    const { defaultRoute } = workload;
    const input = { interfaces, defaultRoute, format, addressesOf: shownAddresses };
    const plan = networkDataOf(input);
    if (plan.kind !== 'ready') return refused(plan);
    const state = `${stateOf(workload, name)} ${hashOf(plan.text)}`;
    if (this.#written.get(key)?.state !== state) {
      const result = await this.#write(workload, name, input, signal);
      if (result !== undefined) return this.#backedOff(key, state, result);
      this.#failures.delete(key);
      const former = this.#written.get(key)?.secret;
      if (former !== undefined && former !== name) await this.#withdraw(key, workload, former, signal);
      this.#written.set(key, { secret: name, state });
      this.#withdrawn.delete(key);
    }
    return { outcome: { kind: 'written', secret: name } };
  }

  /** Nobody tells this process about leases, so it looks again, ever less often while nothing else changes. */
  #backedOff(key: string, state: string, { outcome, retryAfterMs = RETRY_MS }: NetworkDataResult): NetworkDataResult {
    const last = this.#failures.get(key);
    const count = last?.state === state ? last.count : 0;
    this.#failures.set(key, { state, count: count + 1 });
    return { outcome, retryAfterMs: Math.min(retryAfterMs * 2 ** count, MAX_RETRY_MS) };
  }

  async #withdraw(key: string, workload: ObservedWorkload, secret: string, signal: AbortSignal): Promise<void> {
    const state = stateOf(workload, secret);
    if (this.#withdrawn.get(key) === state) return;
    const { namespace, owner } = workload;
    await withdrawSecret(this.#deps.client, { namespace, name: secret, owner }, signal);
    if (this.#written.get(key)?.secret === secret) this.#written.delete(key);
    this.#withdrawn.set(key, state);
  }

  /** @returns why nothing was written */
  async #write(
    { namespace, owner }: ObservedWorkload,
    name: string,
    input: NetworkDataInput,
    signal: AbortSignal,
  ): Promise<NetworkDataResult | undefined> {
    const leases = await this.#readLeases(input.interfaces, signal);
    const plan = networkDataOf({ ...input, addressesOf: (claim, pool) => allLeasedAddresses(claim, pool, leases) });
    if (plan.kind !== 'ready') return { ...refused(plan), retryAfterMs: RETRY_MS };
    const rejection = await writeSecret(this.#deps.client, { namespace, name, owner, text: plan.text }, signal);
    if (rejection !== undefined) return { ...refused(rejection), retryAfterMs: REJECTED_RETRY_MS };
    this.#deps.written();
    return undefined;
  }

  /** Live, because a cache of all leases would be large, and this happens once for each start of a VM. */
  async #readLeases(interfaces: readonly GuestInterface[], signal: AbortSignal): Promise<Map<string, LeaseRecord>> {
    const names = interfaces.flatMap(({ source }) =>
      source.kind === 'claim' ? leaseNames(source.claim, source.pool.addressSpace) : [],
    );
    const leases = new Map<string, LeaseRecord>();
    const failures: unknown[] = [];
    await forEachParallel(names, CONCURRENT_READS, async (name) => {
      try {
        const found = await this.#deps.client.find(ADDRESS_LEASES, { name }, { signal });
        if (found !== undefined) leases.set(name, readLease(found));
      } catch (error) {
        failures.push(error);
      }
    });
    if (failures.length > 0) throw failures[0];
    return leases;
  }

  /** The oldest of the VMs that name a Secret has it. */
  #sharingProblem(workload: ObservedWorkload, secret: string): string | undefined {
    const users = this.#deps.usersOf(workload.namespace, secret);
    if (users.length > MAX_SECRET_USERS) return `More than ${MAX_SECRET_USERS} VMs name Secret ${secret}`;
    for (const user of users.toSorted(byAge)) {
      if (user.owner.uid === workload.owner.uid) return undefined;
      const request = requestOf(user, this.#deps.interfacesOf(user));
      if (request.kind === 'secret' && request.name === secret)
        return `Secret ${secret} has the network data of VM ${describeValue(user.owner.name)}`;
    }
    return undefined;
  }
}

function requestOf({ spec, networkData }: ObservedWorkload, interfaces: readonly GuestInterface[]): NetworkDataRequest {
  const isDefault = interfaces.some(
    ({ source }) => source.kind === 'claim' && source.pool.guest?.isNetworkDataDefault === true,
  );
  return networkDataRequest(spec, networkData, isDefault);
}

/** What a write depends on: each start writes the Secret again, because somebody may have changed or deleted it. */
function stateOf({ owner, vmi }: ObservedWorkload, secret: string): string {
  return [secret, owner.uid, vmi?.metadata.uid ?? ''].join(' ');
}

function refused({ reason, message }: { reason: string; message: string }): NetworkDataResult {
  return { outcome: { kind: 'not-written', reason, message } };
}

function leaseNames(claim: IPAMClaim, addressSpace: string): string[] {
  return (shownAddresses(claim) ?? []).map((address) => leaseName(addressSpace, address));
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
