import type { IPAMClaim } from '../../../api/ipam-claim.js';
import type { Client } from '../../../kube/client.js';
import type { Clock, Random } from '../../../kube/clock.js';
import type { Logger } from '../../../kube/log.js';
import { ADDRESS_LEASES } from '../../../kube/resources.js';
import type { PersistentIPsGate } from '../../../cluster/persistent-ips-gate.js';
import type { InformerRegistry } from '../../../kube/informers.js';
import type { KubeVirtControllerSource } from '../../../cluster/kubevirt-controller.js';
import type { PoolDirectory } from '../../../addressing/directory/directory.js';
import { NAD_WATCH } from '../../../cluster/watch-specs.js';
import { type Address, sameAddress } from '../../../addressing/address/address.js';
import { CniError, readResult } from '../cni-error.js';
import type { Attachment } from '../attachment.js';
import type { Grant } from '../result.js';
import type { RequestContext } from '../request-context.js';
import type { NodePod, NodePods } from '../node-pods.js';
import { type InterfaceRef, sandboxInterfaceKey } from '../request.js';
import { type ClaimGrant, ClaimGrants } from './claim-grants.js';
import { readHeldLease } from './lease-checks.js';
import { ClaimLeaseReader } from './claim-lease-reader.js';
import { type AuthorizedClaim, ClaimAuthorization } from './claim-authorization.js';
import { OtherUsers } from './other-users.js';
import { Prefetch } from './prefetch.js';
import { ReadCache } from './read-cache.js';

export type { AuthorizedClaim } from './claim-authorization.js';

export interface ClaimedAddressesDeps {
  readonly pods: NodePods;
  readonly client: Pick<Client, 'get'>;
  readonly informers: Pick<InformerRegistry, 'get'>;
  readonly directory: PoolDirectory;
  /** Whether the controller creates claims for interfaces without one. */
  readonly gate: PersistentIPsGate;
  readonly kubevirt: KubeVirtControllerSource;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly config: { readonly maxStalenessMs: number };
}

/** An interface of a sandbox, with the rest of its attachment if that is known. */
export type CheckedInterface = InterfaceRef & Partial<Attachment>;

/** The addresses that attachments have by a claim. It reads from the API server and never writes. */
export class ClaimedAddresses {
  readonly #reads: ReadCache;
  readonly #authorization: ClaimAuthorization;
  readonly #grants: ClaimGrants;
  readonly #prefetch: Prefetch;
  readonly #pods: Pick<NodePods, 'get'>;
  readonly #clock: Clock;
  readonly #maxStalenessMs: number;
  readonly #abort = new AbortController();
  #evicting: Promise<void> = Promise.resolve();
  /** By UID of the pod, then by sandbox and interface. */
  readonly #granted = new Map<string, Map<string, ClaimGrant>>();

  constructor({ pods, client, informers, directory, config, ...rest }: ClaimedAddressesDeps) {
    const { clock } = rest;
    const { maxStalenessMs } = config;
    const reads = new ReadCache(client, clock);
    const networks = informers.get(NAD_WATCH).cache;
    const shared = { ...rest, reads, networks, directory, pods, maxStalenessMs };
    const authorization = new ClaimAuthorization(shared);
    const leases = new ClaimLeaseReader(shared);
    const users = new OtherUsers(shared);
    this.#pods = pods;
    this.#clock = clock;
    this.#maxStalenessMs = maxStalenessMs;
    this.#reads = reads;
    this.#authorization = authorization;
    this.#grants = new ClaimGrants({ ...shared, authorization, leases, users });
    this.#prefetch = new Prefetch({
      ...shared,
      prefetch: (attachment, signal) => this.#prefetchFor(attachment, signal),
      isGranted: (pod, interfaceName) => this.#isGranted(pod, interfaceName),
    });
    pods.onChange((pod, gone) => {
      if (gone) this.#granted.delete(pod.metadata.uid);
    });
  }

  start(): void {
    this.#prefetch.start();
    this.#evicting = this.#evict();
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await Promise.all([this.#prefetch.stop(), this.#evicting]);
  }

  /**
   * Returns the claim that the attachment may use, or none. Waits for a claim that is about to be created.
   * @throws {CniError} 11 if a retry may succeed, 100 if an object must be changed first
   */
  authorize(attachment: Attachment, call: RequestContext): Promise<AuthorizedClaim> {
    return this.#authorization.authorize(attachment, call);
  }

  /**
   * Reads live whether the attachment has a claim, without waiting for one.
   * @throws {CniError} 11 if a read failed
   */
  async hasClaim(attachment: Attachment, call: RequestContext): Promise<boolean> {
    const { kind } = await this.#authorization.decide(attachment, this.#clock.now(), call);
    return kind === 'claim';
  }

  /**
   * Returns the addresses of a claim that {@link authorize} has returned. Waits until the claim holds their leases.
   * @throws {CniError} 11 with the reason of the wait, 100 if the attachment is not authorized any more
   */
  async grant(attachment: Attachment, claim: IPAMClaim, call: RequestContext): Promise<Grant> {
    const granted = await this.#grants.grant(attachment, claim, call);
    const { uid } = attachment.pod.metadata;
    const ofPod = this.#granted.get(uid) ?? new Map<string, ClaimGrant>();
    this.#granted.set(uid, ofPod.set(sandboxInterfaceKey(attachment), granted));
    return granted.grant;
  }

  /**
   * Checks whether the claim of a sandbox still holds its addresses. It changes nothing.
   * @param checked with pod, network and selection, grants of an earlier process of the agent can be checked, too
   * @returns `unknown` if the sandbox has no claim, or a read failed
   */
  async check(
    checked: CheckedInterface,
    addresses: readonly Address[],
    call: RequestContext,
  ): Promise<'held' | 'lost' | 'unknown'> {
    try {
      const known = this.#grantOf(checked);
      const granted = known ?? (await this.#findGrant(checked, call));
      if (granted === undefined) return 'unknown';
      const areGranted = addresses.every((address) => granted.grant.some((each) => sameAddress(each.address, address)));
      if (!areGranted) return 'lost';
      return known === undefined || (await this.#areHeld(known, call)) ? 'held' : 'lost';
    } catch (error) {
      if (error instanceof CniError) return 'unknown';
      throw error;
    }
  }

  #grantOf(checked: CheckedInterface): ClaimGrant | undefined {
    for (const ofPod of this.#granted.values()) {
      const found = ofPod.get(sandboxInterfaceKey(checked));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  async #findGrant(checked: CheckedInterface, call: RequestContext): Promise<ClaimGrant | undefined> {
    const { pod, network, selection, ...rest } = checked;
    if (pod === undefined || network === undefined || selection === undefined) return undefined;
    const attachment: Attachment = { requested: [], mac: undefined, ...rest, pod, network, selection };
    const since = this.#clock.now() - this.#maxStalenessMs;
    const decision = await this.#authorization.decide(attachment, since, call);
    if (decision.kind !== 'claim') return undefined;
    const granted = await this.#grants.attempt(attachment, decision.claim, call);
    return typeof granted === 'string' ? undefined : granted;
  }

  async #areHeld({ claim, leases }: ClaimGrant, { signal }: RequestContext): Promise<boolean> {
    const reads = leases.map((name) => this.#reads.read(ADDRESS_LEASES, name, signal));
    const seen = await readResult(Promise.all(reads));
    return seen.every(({ object }) => object !== undefined && typeof readHeldLease(object, claim) !== 'string');
  }

  #isGranted({ metadata }: NodePod, interfaceName: string): boolean {
    const keys = this.#granted.get(metadata.uid)?.keys() ?? [];
    return [...keys].some((key) => key.endsWith(` ${interfaceName}`));
  }

  /** Reads everything that an ADD will need, without using cached reads. */
  async #prefetchFor(attachment: Attachment, signal: AbortSignal): Promise<void> {
    const decision = await this.#authorization.decide(attachment, this.#clock.now(), { signal });
    if (decision.kind === 'claim') await this.#grants.attempt(attachment, decision.claim, { signal });
  }

  async #evict(): Promise<void> {
    const { signal } = this.#abort;
    while (!signal.aborted) {
      await this.#clock.sleep(this.#maxStalenessMs, signal);
      this.#reads.evictBefore(this.#clock.now() - this.#maxStalenessMs);
      // a grant may complete after its pod was deleted
      for (const uid of this.#granted.keys()) if (this.#pods.get(uid) === undefined) this.#granted.delete(uid);
    }
  }
}
