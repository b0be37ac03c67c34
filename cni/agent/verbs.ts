import { SUPPORTED_VERSIONS } from '../../api/networks/cni-version.js';
import { type AddressPool, familyCountsOf } from '../../api/address-pool.js';
import { joinKey, objectKey } from '../../api/meta.js';
import { controllingVmi } from '../../api/pod.js';
import { type Address, formatAddresses, formatFamily, sameAddress } from '../../addressing/address/address.js';
import { poolFullSubject } from '../../addressing/allocator/refusal-messages.js';
import type { Pool } from '../../addressing/pool/pool.js';
import type { InformerRegistry } from '../../kube/informers/informers.js';
import { abortable } from '../../kube/transport/deadline.js';
import { type Attachment, type AttachmentResolver, userOfAttachment } from './attachment.js';
import type { PortGuard, PortRules } from './guard/port-guard.js';
import { type Grant, type VerbOutcome, addResult } from './result.js';
import { type AddContext, AddOrder, type RequestContext, waitIdle } from './request-queue.js';
import type { ClaimedAddresses } from './claims/claimed-addresses.js';
import { CniCode, CniError } from './cni-error.js';
import type { JsonObject } from './stdin-config.js';
import type { PodLeases } from './leases/pod-leases.js';
import type { PendingDeletes } from './pending-deletes.js';
import type { Sandboxes } from './sandboxes.js';
import type { NodePods } from './node-pods.js';
import type { PoolLookup } from './pool-lookup.js';
import type { AddRequest, CheckRequest, GcRequest, InterfaceRef, CniRequest } from './request.js';

export interface VerbsDeps {
  readonly pods: Pick<NodePods, 'find'>;
  readonly resolver: Pick<AttachmentResolver, 'resolve' | 'selectionFor'>;
  /** Addresses of claims. It never writes. */
  readonly claims: Pick<ClaimedAddresses, 'grant' | 'hasClaim' | 'check'>;
  /** Addresses of pods without a claim. */
  readonly leases: Pick<PodLeases, 'grant' | 'release' | 'held' | 'collect'>;
  readonly lookup: Pick<PoolLookup, 'resolve' | 'confirm' | 'adminPools' | 'writtenPool'>;
  readonly pendingDeletes: Pick<PendingDeletes, 'has' | 'remove'>;
  readonly sandboxes: Pick<Sandboxes, 'add'>;
  readonly guard: Pick<PortGuard, 'rulesFor'>;
  readonly informers: Pick<InformerRegistry, 'ready' | 'synced'>;
}

/** A pool that refuses is read again, but not for each of many pods for which it is too small. */
const REFUSING_POOL_AGE_MS = 1_000;

/** Carries out the CNI verbs for validated requests. */
export class Verbs {
  readonly #deps: VerbsDeps;
  readonly #adds = new AddOrder();

  constructor(deps: VerbsDeps) {
    this.#deps = deps;
  }

  /**
   * Carries out a request.
   * @throws {CniError}, and errors of the API client
   */
  async perform(request: CniRequest, call: RequestContext): Promise<VerbOutcome> {
    switch (request.command) {
      case 'ADD':
        return this.#adds.run(addOrderKey(request), call, (add) => this.#add(request, add));
      case 'DEL':
        await this.delete(request, call);
        return {};
      case 'CHECK':
        await this.#check(request, call);
        return {};
      case 'GC':
        await this.#collect(request, call);
        return {};
      case 'STATUS': {
        const { network } = request;
        const reason = this.#deps.informers.ready() ?? (network && unavailableReason(network, this.#deps.lookup));
        if (reason) throw new CniError(CniCode.NotAvailable, reason);
        return {};
      }
      case 'VERSION':
        return { result: { cniVersion: request.version, supportedVersions: SUPPORTED_VERSIONS } };
    }
  }

  /** Releases the leases of the interface that no claim owns, and removes its pending delete. */
  async delete(at: InterfaceRef, call: RequestContext): Promise<void> {
    await this.#deps.leases.release(at.containerId, at.interfaceName, call);
    await this.#deps.pendingDeletes.remove(at);
  }

  async #add(request: AddRequest, call: AddContext): Promise<VerbOutcome> {
    await this.#waitUntilReady(call);
    // unplugged during an outage and plugged again: a later retry would release the new address
    if (this.#deps.pendingDeletes.has(request)) await this.delete(request, call);
    const attachment = await this.#deps.resolver.resolve(request, call);
    const { version, extras, prevResult } = request;
    // before it has a lease, because afterwards only this proves that the sandbox exists
    if (prevResult === undefined) this.#deps.sandboxes.add(request);
    const grant =
      prevResult === undefined ? await this.#grant(attachment, call) : await this.#guestGrant(attachment, call);
    const guard = await this.#deps.guard.rulesFor(attachment, { grant, vlans: request.vlans }, call);
    if (guard?.mode === 'Enforce' && !request.appliesGuards) throw olderPlugin(guard);
    const result =
      prevResult === undefined ? addResult(version, grant, extras) : (JSON.parse(prevResult) as JsonObject);
    return { result, ...(guard !== undefined && { guard }) };
  }

  /** As a chained plugin, which passes on the result of the others. The guest has the addresses of its claim; without one it may use none. */
  async #guestGrant(attachment: Attachment, call: RequestContext): Promise<Grant> {
    const grant = (await this.#deps.claims.grant(attachment, call)) ?? [];
    // without a pool it is not known whether there is a guard
    if (grant.length === 0) await this.#poolFor(attachment, call, { isClaim: true });
    return grant;
  }

  async #grant(attachment: Attachment, call: AddContext): Promise<Grant> {
    const { claims, leases, lookup } = this.#deps;
    for (;;) {
      const claimed = await claims.grant(attachment, call);
      if (claimed !== undefined) return claimed;
      const pool = await this.#poolFor(attachment, call);
      if (!(await lookup.confirm(pool, call))) continue;
      const granted = await this.#lease(attachment, pool, call);
      if (granted === undefined) continue;
      if (!(await this.#hasClaimNow(attachment, call))) return granted;
      await leases.release(attachment.containerId, attachment.interfaceName, call);
    }
  }

  /** @returns undefined if the pool has changed since it was chosen, so that its refusal may be wrong */
  async #lease(attachment: Attachment, pool: Pool, call: AddContext): Promise<Grant | undefined> {
    try {
      return await this.#deps.leases.grant(attachment, pool, call);
    } catch (error) {
      const isRefused = error instanceof CniError && error.cause === undefined && !call.signal.aborted;
      if (isRefused && !(await this.#deps.lookup.confirm(pool, call, REFUSING_POOL_AGE_MS))) return undefined;
      throw error;
    }
  }

  /**
   * Reads live whether a launcher has a claim after all: persistent addresses may have been allowed since the last read. A claim that is created after
   * this read takes over the leases of the launcher, because they exist already.
   */
  async #hasClaimNow(attachment: Attachment, call: RequestContext): Promise<boolean> {
    return controllingVmi(attachment.pod) !== undefined && (await this.#deps.claims.hasClaim(attachment, call));
  }

  /** @param isClaim whether the guest of the interface may get its addresses, where the NAD has no IPAM */
  async #poolFor(attachment: Attachment, call: RequestContext, { isClaim = false } = {}): Promise<Pool> {
    const user = userOfAttachment(attachment);
    const resolution = await this.#deps.lookup.resolve({ ...user, isClaim }, call);
    switch (resolution.kind) {
      case 'served':
        return resolution.pool;
      case 'unserved':
        throw new CniError(CniCode.TryAgain, resolution.message);
      case 'foreign':
        throw new CniError(
          CniCode.InvalidConfig,
          `name: Holdfast does not serve network ${user.network}, because ${resolution.message}: correct the NAD, or create a pool`,
        );
    }
  }

  async #check(request: CheckRequest, call: RequestContext): Promise<void> {
    if (request.isChained) return;
    await this.#waitUntilReady(call);
    const { claims, leases, pods, resolver } = this.#deps;
    const own = await leases.held(request, call);
    const isOwn = (address: Address) => own.some((lease) => sameAddress(lease.address, address));
    const others = request.addresses.filter((address) => !isOwn(address));
    if (others.length === 0 && request.addresses.length > 0) return;
    const pod = await pods.find(request.pod, call);
    const selection = resolver.selectionFor(pod, request.interfaceName);
    const checked = { ...request, pod, ...(selection !== undefined && { selection }) };
    const verdict = others.length === 0 ? 'lost' : await claims.check(checked, others, call);
    if (verdict === 'held') return;
    const shown = formatAddresses(others) || 'no address';
    const subject = `interface ${request.interfaceName} of pod ${objectKey(pod)} has ${shown}`;
    if (verdict === 'lost')
      throw new CniError(CniCode.Refused, `${subject} but holds no lease for it: recreate the pod`);
    throw new CniError(CniCode.TryAgain, `${subject}, and its lease could not be checked: the kubelet retries`);
  }

  async #collect({ network, valid }: GcRequest, call: RequestContext): Promise<void> {
    if (valid === undefined) return;
    await this.#waitUntilReady(call);
    await this.#deps.leases.collect(network, valid, call);
  }

  /** Waits until the caches are filled, because they are incomplete before. */
  async #waitUntilReady(call: RequestContext): Promise<void> {
    const { informers } = this.#deps;
    if (informers.ready() === undefined) return;
    try {
      await waitIdle(call, () => abortable(informers.synced(), call.signal));
    } catch {
      const missing = informers.ready();
      const state = missing === undefined ? 'the agent has just become ready' : `the agent is starting: ${missing}`;
      throw new CniError(CniCode.TryAgain, `${state}: the kubelet retries`);
    }
  }
}

function addOrderKey({ pod, interfaceName }: AddRequest): string {
  return `${joinKey(pod.namespace, pod.name)} ${interfaceName}`;
}

/** The plugin on the node would create the interface without its guard. */
function olderPlugin({ subject: { pool, interfaceName } }: PortRules): CniError {
  return new CniError(
    CniCode.TryAgain,
    `AddressPool ${pool} has guard.mode Enforce, and the CNI plugin on this node is older than the agent and cannot guard interface ${interfaceName}: ` +
      'the kubelet retries; if this stays, delete the pod of the agent, whose container install-plugin installs the plugin',
  );
}

/**
 * Returns why no pod can get an address of the network, for STATUS; undefined if a pod can, as far as is known. STATUS names no pod, so only
 * administrators' pools are known. Others may serve, unless one of these is for all namespaces.
 */
function unavailableReason(
  network: string,
  lookup: Pick<PoolLookup, 'adminPools' | 'writtenPool'>,
): string | undefined {
  const known = lookup.adminPools(network);
  if (!known.some(({ namespaces }) => namespaces === undefined)) return undefined;
  const serving = known.flatMap(({ state }) => (state.kind === 'served' ? state.pool : []));
  if (serving.length === 0) {
    const reasons = known.flatMap(({ state }) => (state.kind === 'served' ? [] : state.message));
    return [`no AddressPool serves network ${network}`, ...reasons].join(': ');
  }
  const full = serving.map((pool) => fullReason(pool, lookup.writtenPool(pool.name)));
  return full.every((each) => each !== undefined) ? full.join('; ') : undefined;
}

/** A pod needs an address of each family. */
function fullReason(pool: Pool, written: AddressPool | undefined): string | undefined {
  const counts = written?.status === undefined ? [] : familyCountsOf(written.status);
  const [reason] = pool.families.flatMap((family) => {
    const own = counts.find((each) => each.family === '' || each.family === formatFamily(family));
    return own?.free === 0 ? `${poolFullSubject(pool, family)}: ${own.leased} of ${own.capacity} leased` : [];
  });
  return reason;
}
