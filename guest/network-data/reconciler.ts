import type { ReasonOf } from '../../api/conditions.js';
import { createHash } from 'node:crypto';
import { joinKey, splitKey } from '../../api/meta.js';
import { leaseName } from '../../addressing/lease/lease-name.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import type { CallOptions, Client } from '../../kube/client.js';
import { forEachParallel } from '../../kube/run-in-slices.js';
import type { GuestInterface } from '../interfaces.js';
import { allLeasedAddresses, shownAddresses } from '../leased-addresses.js';
import type { ObservedGuestWorkload } from '../observed-workload.js';
import { type NetworkDataInput, type NetworkDataOutcome, networkDataOf } from './plan.js';
import { SecretUsers, type SecretUsersDeps, requestOf, secretNameIn } from './request.js';
import { isLockedFor, lockAll, lockedSecretOf, readLive, unlock } from './lease-locks.js';
import { type SecretOfVm, type UnansweredWrites, withdrawSecret, writeSecret } from './secret.js';

/** Leases of a VM that are read at the same time. */
const CONCURRENT_READS = 8;
/** Until leases are read again for the first time. */
const RETRY_MS = 5_000;
/** Until a Secret that was rejected is written again for the first time. */
const REJECTED_RETRY_MS = 30_000;
const MAX_RETRY_MS = 60_000;
/** In the state of a Secret without a text. */
const WITHDRAWN = 'withdrawn';

interface NetworkDataDeps extends SecretUsersDeps {
  readonly client: Pick<Client, 'create' | 'patch' | 'find'>;
  readonly unanswered: UnansweredWrites;
  /** Leases whose addresses a Secret of the workload may hold, from a cache. */
  readonly lockedLeasesOf: (key: string) => readonly LeaseRecord[];
  /** A Secret was written. */
  readonly written: () => void;
}

/** What became of the network data, and when to look again. */
interface NetworkDataResult {
  readonly outcome: NetworkDataOutcome;
  readonly retryAfterMs?: number;
}

/** A Secret that this process has written or may have written. */
interface KnownSecret extends SecretOfVm {
  /** Its text and the VMI that starts with it; undefined while a write without an answer may arrive. */
  readonly state: string | undefined;
  /** The leases of the addresses in its text; undefined if it has none. */
  readonly leases: ReadonlySet<string> | undefined;
}

/** A Secret to be written, with the state that it has then. */
interface ReadySecret extends KnownSecret {
  readonly input: NetworkDataInput;
  /** Its state if a lease is missing, so that its text is withdrawn instead. */
  readonly withdrawn: string;
}

/** What the Secret of a workload should hold. */
interface Goal {
  readonly result: NetworkDataResult;
  /** The Secret of this workload. Undefined: none, or that of somebody else. */
  readonly name?: string;
  /** Absent: the Secret must hold no text. */
  readonly ready?: { readonly input: NetworkDataInput; readonly text: string; readonly leases: ReadonlySet<string> };
}

/**
 * Writes the Secrets of VMs during one term of leadership, and withdraws their text as soon as it may hold an address that is not leased to the
 * VM's claim. It remembers what it has written, because it may not read Secrets.
 */
export class NetworkData {
  readonly #deps: NetworkDataDeps;
  readonly #users: SecretUsers;
  /** By workload. */
  readonly #secrets = new Map<string, KnownSecret>();
  /** By workload: how often the same state could not be written. */
  readonly #failures = new Map<string, { readonly state: string; readonly count: number }>();

  constructor(deps: NetworkDataDeps) {
    this.#deps = deps;
    this.#users = new SecretUsers(deps);
  }

  /**
   * Withdraws the text of a deleted workload, whose Secret the garbage collector deletes. A tenant who makes the Secret immutable keeps no
   * address of the pool by that.
   */
  async end(key: string, signal: AbortSignal): Promise<void> {
    await this.#unlock(key, () => false, { signal, isDeleted: true });
    this.#forget(key);
  }

  #forget(key: string): void {
    this.#secrets.delete(key);
    this.#deps.unanswered.forget(key);
    this.#failures.delete(key);
  }

  /** @param isRecorded a claim of the VM says what became of the Secret, perhaps of an earlier term */
  async reconcile(
    workload: ObservedGuestWorkload,
    isRecorded: boolean,
    signal: AbortSignal,
  ): Promise<NetworkDataResult> {
    const { namespace, owner } = workload;
    const key = joinKey(namespace, owner.name);
    const { name, ready, result } = this.#goalOf(workload, isRecorded);
    const left = await this.#withdrawEarlier(key, { name, uid: owner.uid }, signal);
    if (left !== undefined) return left;
    const isCurrent = (lease: LeaseRecord) => isLockedFor(lease, { namespace, name, owner }, ready?.leases);
    const unlock = () => this.#unlock(key, isCurrent, { signal });
    if (name === undefined) return (await unlock()) ?? result;
    // each start writes it again: somebody may have changed or deleted the Secret
    const start = [name, owner.uid, workload.vmi?.metadata.uid ?? ''].join(' ');
    const state = `${start} ${ready === undefined ? WITHDRAWN : hashOf(ready.text)}`;
    const secret = { namespace, name, owner, state, leases: ready?.leases };
    const write = () => {
      if (this.#secrets.get(key)?.state === state) return undefined;
      return ready === undefined
        ? this.#withdraw(key, secret, signal)
        : this.#write(key, { ...secret, input: ready.input, withdrawn: `${start} ${WITHDRAWN}` }, signal);
    };
    // an address is unlocked after it was withdrawn, and before another one is locked: so the workload never locks more than it has
    for (const step of ready === undefined ? [write, unlock] : [unlock, write]) {
      const failure = await step();
      if (failure !== undefined) return this.#backedOff(key, state, failure);
    }
    this.#failures.delete(key);
    const lateMs = this.#deps.unanswered.remainingMs(key);
    return lateMs === 0 ? result : { ...result, retryAfterMs: lateMs };
  }

  /** Withdraws the text of a Secret that the workload does not name any more. */
  async #withdrawEarlier(
    key: string,
    now: { readonly name: string | undefined; readonly uid: string },
    signal: AbortSignal,
  ): Promise<NetworkDataResult | undefined> {
    const known = this.#secrets.get(key);
    if (known === undefined || (known.name === now.name && known.owner.uid === now.uid)) return undefined;
    if (known.state === undefined || known.leases !== undefined) {
      const failure = await this.#withdraw(key, known, signal);
      if (failure !== undefined) return this.#backedOff(key, `${known.name} ${WITHDRAWN}`, failure);
    }
    this.#forget(key);
    return undefined;
  }

  #goalOf(workload: ObservedGuestWorkload, isRecorded: boolean): Goal {
    const interfaces = this.#deps.interfacesOf(workload);
    const request = requestOf(workload, interfaces);
    if (request.kind !== 'secret') {
      const result: NetworkDataResult = request.kind === 'refused' ? refused(request) : { outcome: { kind: 'none' } };
      const isMaybeWritten =
        request.kind === 'undecided' ? !this.#users.isRequested(workload, request.name) : isRecorded;
      const mounted = isMaybeWritten ? secretNameIn(workload.spec) : undefined;
      return { result, ...(mounted !== undefined && { name: mounted }) };
    }
    const { name, format } = request;
    const shared = this.#users.sharingProblem(workload, name);
    if (shared !== undefined)
      return { result: refused({ reason: 'SecretShared', message: `${shared}: name another Secret` }) };
    const { defaultRoute } = workload;
    const input = { interfaces, defaultRoute, format, addressesOf: shownAddresses };
    const plan = networkDataOf(input);
    if (plan.kind !== 'ready') return { name, result: refused(plan) };
    return {
      name,
      result: { outcome: { kind: 'written', secret: name } },
      ready: { input, text: plan.text, leases: new Set(leaseNames(interfaces)) },
    };
  }

  /** Nobody tells this process about leases, so it looks again, ever less often while nothing else changes. */
  #backedOff(key: string, state: string, { outcome, retryAfterMs = RETRY_MS }: NetworkDataResult): NetworkDataResult {
    const last = this.#failures.get(key);
    const count = last?.state === state ? last.count : 0;
    this.#failures.set(key, { state, count: count + 1 });
    return { outcome, retryAfterMs: Math.min(retryAfterMs * 2 ** count, MAX_RETRY_MS) };
  }

  /** @returns why the text was not written; then the Secret has none */
  async #write(
    key: string,
    { input, withdrawn, ...secret }: ReadySecret,
    signal: AbortSignal,
  ): Promise<NetworkDataResult | undefined> {
    const leases = await this.#readLeases(input.interfaces, { signal, tenant: secret.namespace });
    const plan = networkDataOf({ ...input, addressesOf: (claim, pool) => allLeasedAddresses(claim, pool, leases) });
    if (plan.kind !== 'ready') {
      const isWithdrawn = this.#secrets.get(key)?.state === withdrawn;
      const failure = isWithdrawn ? undefined : await this.#withdraw(key, { ...secret, state: withdrawn }, signal);
      return failure ?? { ...refused(plan), retryAfterMs: RETRY_MS };
    }
    await lockAll(this.#deps.client, leases.values(), secret, signal);
    this.#secrets.set(key, { ...secret, state: undefined });
    const lateMs = this.#deps.unanswered.remainingMs(key);
    const rejection = await this.#deps.unanswered.answerOf(
      key,
      writeSecret(this.#deps.client, secret, plan.text, signal),
    );
    if (rejection !== undefined) return { ...refused(rejection), retryAfterMs: REJECTED_RETRY_MS };
    if (lateMs === 0) this.#secrets.set(key, secret);
    this.#deps.written();
    return undefined;
  }

  /** @returns why the Secret may still hold a text */
  async #withdraw(
    key: string,
    secret: Omit<KnownSecret, 'leases'>,
    signal: AbortSignal,
  ): Promise<NetworkDataResult | undefined> {
    const withdrawn = { ...secret, leases: undefined };
    // without an answer, nobody knows which text it has
    this.#secrets.set(key, { ...withdrawn, state: undefined });
    const lateMs = this.#deps.unanswered.remainingMs(key);
    const rejection = await this.#deps.unanswered.answerOf(key, withdrawSecret(this.#deps.client, secret, signal));
    // the text in a Secret of somebody else was not written by this process
    if (rejection !== undefined && rejection.reason !== 'SecretForeign')
      return { ...refused(rejection), retryAfterMs: REJECTED_RETRY_MS };
    if (lateMs > 0) {
      const message = `Secret ${secret.name}: the API server has not answered a write, and may still carry it out`;
      return { ...refused({ reason: 'SecretRejected', message }), retryAfterMs: lateMs };
    }
    this.#secrets.set(key, withdrawn);
    return undefined;
  }

  /**
   * Unlocks leases whose addresses no Secret may hold any more, after their text is withdrawn.
   * @returns why a Secret may still hold one
   */
  async #unlock(
    key: string,
    isCurrent: (lease: LeaseRecord) => boolean,
    { signal, isDeleted = false }: { signal: AbortSignal; isDeleted?: boolean },
  ): Promise<NetworkDataResult | undefined> {
    const call = { signal, tenant: splitKey(key).namespace };
    const { unanswered } = this.#deps;
    const versionOf = ({ metadata: { name, resourceVersion } }: LeaseRecord) => `${name} ${resourceVersion}`;
    const staysLocked = (lease: LeaseRecord) => isCurrent(lease) && unanswered.remainingMs(versionOf(lease)) === 0;
    for (const cached of this.#deps.lockedLeasesOf(key)) {
      if (staysLocked(cached)) continue;
      // the cache may show a lock that was removed or replaced
      const lease = await readLive(this.#deps.client, cached.metadata.name, call);
      const secret = lease && lockedSecretOf(lease);
      if (lease === undefined || secret === undefined || staysLocked(lease)) continue;
      if (!this.#lacksAddress(key, secret, lease.metadata.name)) {
        const failure = await this.#withdraw(key, { ...secret, state: WITHDRAWN }, signal);
        if (failure !== undefined && !isDeleted) return failure;
      }
      await unanswered.answerOf(versionOf(lease), unlock(this.#deps.client, lease, call));
    }
    return undefined;
  }

  /** True if this process has written the Secret without the address of a lease, or withdrawn its text. */
  #lacksAddress(key: string, { name, owner }: SecretOfVm, lease: string): boolean {
    const known = this.#secrets.get(key);
    if (known?.state === undefined || known.name !== name || known.owner.uid !== owner.uid) return false;
    return known.leases?.has(lease) !== true;
  }

  /** Live, because a cache of all leases would be large, and this happens once for each start of a VM. */
  async #readLeases(interfaces: readonly GuestInterface[], call: CallOptions): Promise<Map<string, LeaseRecord>> {
    const names = leaseNames(interfaces);
    const leases = new Map<string, LeaseRecord>();
    const failures: unknown[] = [];
    await forEachParallel(names, CONCURRENT_READS, async (name) => {
      try {
        const found = await readLive(this.#deps.client, name, call);
        if (found !== undefined) leases.set(name, found);
      } catch (error) {
        failures.push(error);
      }
    });
    if (failures.length > 0) throw failures[0];
    return leases;
  }
}

function refused({ reason, message }: { reason: ReasonOf<'NetworkDataWritten'>; message: string }): NetworkDataResult {
  return { outcome: { kind: 'not-written', reason, message } };
}

function leaseNames(interfaces: readonly GuestInterface[]): string[] {
  return interfaces.flatMap(({ source }) =>
    source.kind === 'claim'
      ? (shownAddresses(source.claim) ?? []).map((address) => leaseName(source.pool.addressSpace, address))
      : [],
  );
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
