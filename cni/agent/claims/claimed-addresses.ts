import type { IPAMClaim } from '../../../api/ipam-claim.js';
import { isBeingDeleted, objectKey } from '../../../api/meta.js';
import type { Client } from '../../../kube/client.js';
import type { Clock, Random } from '../../../kube/clock.js';
import type { Logger } from '../../../kube/log.js';
import { type Backoff, backoff } from '../../../kube/retry.js';
import { ADDRESS_LEASES, IPAM_CLAIMS } from '../../../kube/resources.js';
import { PeriodicTask } from '../../../process/periodic-task.js';
import type { KubeVirtControllerSource } from '../../../cluster/kubevirt-controller.js';
import type { PersistentIPsGate } from '../../../cluster/persistent-ips-gate.js';
import { type Address, formatAddresses, sameAddress } from '../../../addressing/address/address.js';
import type { Attachment } from '../attachment.js';
import { CniCode, CniError, readResult } from '../cni-error.js';
import { LIVE_READ_MS, ReadCache } from '../live-reads.js';
import type { NodePod, NodePods } from '../node-pods.js';
import type { PoolLookup } from '../pool-lookup.js';
import { type InterfaceRef, sandboxInterfaceKey } from '../request.js';
import { type RequestContext, waitIdle } from '../request-queue.js';
import type { Grant } from '../result.js';
import { ClaimAuthorization } from './claim-authorization.js';
import { ClaimGrants, readHeldLease } from './claim-grants.js';
import { Prefetch } from './prefetch.js';

interface ClaimedAddressesDeps {
  readonly pods: NodePods;
  readonly client: Pick<Client, 'get' | 'listAs'>;
  readonly lookup: PoolLookup;
  /** Whether the controller creates claims for interfaces without one. */
  readonly gate: PersistentIPsGate;
  readonly kubevirt: KubeVirtControllerSource;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly config: { readonly maxStalenessMs: number };
}

/** Most waits end after a few of these. */
const BASE_DELAY_MS = 50;
const MAX_DELAY_MS = 1_000;
/** How long stale reads are kept: a decision that used them may still wait for others, and an unchanged pool stays the same object. */
const KEPT_MS = 10 * LIVE_READ_MS;

/** An interface of a sandbox, with the rest of its attachment if that is known. */
type CheckedInterface = InterfaceRef & Partial<Attachment>;

/** The addresses that attachments have by a claim. It reads from the API server and never writes. */
export class ClaimedAddresses {
  readonly #deps: ClaimedAddressesDeps;
  readonly #reads: ReadCache;
  readonly #authorization: ClaimAuthorization;
  readonly #grants: ClaimGrants;
  readonly #prefetch: Prefetch;
  readonly #eviction: PeriodicTask;
  /** By UID of the pod, then by sandbox and interface. */
  readonly #granted = new Map<string, Map<string, Grant>>();

  constructor(deps: ClaimedAddressesDeps) {
    const { pods, config } = deps;
    const { maxStalenessMs } = config;
    const reads = new ReadCache({ ...deps, maxStalenessMs });
    const authorization = new ClaimAuthorization({ ...deps, reads });
    const grants = new ClaimGrants({ ...deps, reads, authorization });
    this.#deps = deps;
    this.#reads = reads;
    this.#authorization = authorization;
    this.#grants = grants;
    const isGranted = (pod: NodePod, interfaceName: string) => this.#isGranted(pod, interfaceName);
    this.#prefetch = new Prefetch({ ...deps, authorization, grants, isGranted, maxStalenessMs });
    this.#eviction = new PeriodicTask({ clock: deps.clock, pauseMs: maxStalenessMs, run: () => this.#evict() });
    pods.onChange((pod, gone) => {
      if (gone) this.#granted.delete(pod.metadata.uid);
    });
  }

  start(): void {
    this.#prefetch.start();
    this.#eviction.start();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#prefetch.stop(), this.#eviction.stop()]);
  }

  /**
   * Returns the addresses of the claim that the attachment may use. Waits for a claim that is about to be created, and for its leases.
   * @returns undefined if the attachment uses no claim, and gets addresses of its own
   * @throws {CniError} 11 with the reason of the wait, or if a retry may succeed; 100 if an object must be changed first
   */
  async grant(attachment: Attachment, call: RequestContext): Promise<Grant | undefined> {
    const wait = new BoundedWait(this.#deps, attachment.pod.metadata.uid, call);
    /** The claim of the last attempt. */
    let earlier: IPAMClaim | undefined;
    for (;;) {
      const decision = await this.#authorization.decide(attachment, call);
      switch (decision.kind) {
        case 'none':
          if (earlier === undefined) return undefined;
          throw new CniError(
            CniCode.TryAgain,
            `IPAMClaim ${objectKey(earlier)} was deleted just now: the kubelet retries`,
          );
        case 'refused':
          throw new CniError(CniCode.Refused, decision.reason);
        case 'pending':
          if (decision.isOnItsWay !== true) throw new CniError(CniCode.TryAgain, decision.reason);
          await wait.pause(decision.reason);
          continue;
        case 'claim':
      }
      const { claim } = decision;
      requireNoRequest(attachment, claim);
      const granted = await this.#grants.attempt(attachment, claim, call);
      if (typeof granted !== 'string') return this.#remember(attachment, granted);
      // the cached claim may be stale, so the first retry does not wait
      if (earlier === undefined) wait.restart(granted);
      else await wait.pause(granted);
      await readResult(this.#reads.read(IPAM_CLAIMS, objectKey(claim), call.signal));
      earlier = claim;
    }
  }

  /**
   * Reads live whether the attachment has a claim, without waiting for one.
   * @throws {CniError} 11 if a read failed
   */
  async hasClaim(attachment: Attachment, call: RequestContext): Promise<boolean> {
    const { kind } = await this.#authorization.decide(attachment, call, this.#deps.clock.now());
    return kind === 'claim';
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
      const areGranted = addresses.every((address) => granted.some((each) => sameAddress(each.address, address)));
      if (!areGranted) return 'lost';
      return known === undefined || (await this.#areHeld(known, call)) ? 'held' : 'lost';
    } catch (error) {
      if (error instanceof CniError) return 'unknown';
      throw error;
    }
  }

  #remember(attachment: Attachment, granted: Grant): Grant {
    const { uid } = attachment.pod.metadata;
    const ofPod = this.#granted.get(uid) ?? new Map<string, Grant>();
    this.#granted.set(uid, ofPod.set(sandboxInterfaceKey(attachment), granted));
    return granted;
  }

  #grantOf(checked: CheckedInterface): Grant | undefined {
    for (const ofPod of this.#granted.values()) {
      const found = ofPod.get(sandboxInterfaceKey(checked));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  async #findGrant(checked: CheckedInterface, call: RequestContext): Promise<Grant | undefined> {
    const { pod, network, selection, ...rest } = checked;
    if (pod === undefined || network === undefined || selection === undefined) return undefined;
    const attachment: Attachment = { requested: [], mac: undefined, ...rest, pod, network, selection };
    const decision = await this.#authorization.decide(attachment, call);
    if (decision.kind !== 'claim') return undefined;
    const granted = await this.#grants.attempt(attachment, decision.claim, call);
    return typeof granted === 'string' ? undefined : granted;
  }

  async #areHeld(grant: Grant, { signal }: RequestContext): Promise<boolean> {
    const reads = grant.map(({ lease }) => this.#reads.read(ADDRESS_LEASES, lease.metadata.name, signal));
    const seen = await readResult(Promise.all(reads));
    return seen.every(({ object }, index) => {
      const owner = grant[index]?.lease.owner;
      return object !== undefined && owner !== undefined && typeof readHeldLease(object, owner) !== 'string';
    });
  }

  #isGranted({ metadata }: NodePod, interfaceName: string): boolean {
    const keys = this.#granted.get(metadata.uid)?.keys() ?? [];
    return [...keys].some((key) => key.endsWith(` ${interfaceName}`));
  }

  #evict(): void {
    const { lookup, pods } = this.#deps;
    const before = this.#reads.staleBefore - KEPT_MS;
    this.#reads.evictBefore(before);
    lookup.evictBefore(before);
    // a grant may complete after its pod was deleted
    for (const uid of this.#granted.keys()) if (pods.get(uid) === undefined) this.#granted.delete(uid);
  }
}

/** Checks that the interface requests no addresses, because those of its claim are fixed. @throws {CniError} 100 */
function requireNoRequest({ pod, interfaceName, requested, selection }: Attachment, claim: IPAMClaim): void {
  if (requested.length === 0 && !selection.requestsAddresses) return;
  const asked = requested.length > 0 ? ` (${formatAddresses(requested)})` : '';
  throw new CniError(
    CniCode.Refused,
    `interface ${interfaceName} of pod ${objectKey(pod)} has "ips"${asked}, which is not allowed together with its IPAMClaim ` +
      `${claim.metadata.name} (multi-net-spec 4.1.2.1.11): remove "ips", and request addresses with the annotation ` +
      'network.kubevirt.io/addresses of the VM',
  );
}

/** Waits between attempts with back-off, until the request's time is up or the pod is being deleted. */
class BoundedWait {
  readonly #deps: ClaimedAddressesDeps;
  readonly #podUid: string;
  readonly #call: RequestContext;
  readonly #backoff: Backoff;

  constructor(deps: ClaimedAddressesDeps, podUid: string, call: RequestContext) {
    this.#deps = deps;
    this.#podUid = podUid;
    this.#call = call;
    this.#backoff = backoff({ baseMs: BASE_DELAY_MS, maxMs: MAX_DELAY_MS, random: deps.random });
  }

  /** Waits once. @throws {CniError} 11 with the reason of the wait, if the wait must end */
  async pause(reason: string): Promise<void> {
    await waitIdle(this.#call, () => this.#deps.clock.sleep(this.#backoff.next(), this.#call.signal));
    this.#check(reason);
  }

  /** Begins with short waits again, because something has changed. Does not wait itself. @throws {CniError} 11, as {@link pause} */
  restart(reason: string): void {
    this.#backoff.reset();
    this.#check(reason);
  }

  #check(reason: string): void {
    if (this.#call.signal.aborted) throw new CniError(CniCode.TryAgain, `${reason}; timeout: the kubelet retries`);
    const pod = this.#deps.pods.get(this.#podUid);
    // the deletion of the pod waits for this answer
    if (pod !== undefined && isBeingDeleted(pod))
      throw new CniError(CniCode.TryAgain, `${reason}; the pod is being deleted`);
  }
}
