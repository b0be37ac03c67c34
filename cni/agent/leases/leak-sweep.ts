import { type Pod, hasUid, isTerminal, networkStatuses, reportedIPsOf } from '../../../api/pod.js';
import { readAllAddresses, sameAddress } from '../../../addressing/address/address.js';
import { type LeaseRecord, stateOf } from '../../../addressing/lease/lease.js';
import { LeakCandidates } from '../../../addressing/lease/leak-candidates.js';
import { findUnlessGone } from '../../../kube/absence.js';
import type { Client } from '../../../kube/client.js';
import type { Clock } from '../../../kube/clock.js';
import { messageOf } from '../../../kube/errors.js';
import type { Logger } from '../../../kube/log.js';
import { PODS } from '../../../kube/resources.js';
import { runAtOnce } from '../../../kube/run-in-slices.js';
import { type NodePod, isKnownAs } from '../node-pods.js';
import type { LeaseWriter } from './lease-writer.js';
import type { PodLeaseMetrics } from '../metrics.js';
import type { NodeLeases } from '../node-leases.js';
import type { KnownSandboxes, Sandboxes } from '../sandboxes.js';

/** The cached pods of this node. */
export interface CachedPods {
  readonly hasSynced: boolean;
  named(namespace: string, name: string): NodePod | undefined;
}

interface LeakSweepDeps {
  readonly own: NodeLeases;
  readonly writer: LeaseWriter;
  readonly pods: CachedPods;
  readonly sandboxes: Pick<Sandboxes, 'known'>;
  readonly client: Pick<Client, 'get'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly metrics: PodLeaseMetrics;
  readonly log: Logger;
  readonly collectAfterMs: number;
}

/** Each costs two requests; the rest waits for the next round. */
const MAX_RELEASES_A_ROUND = 100;

/**
 * Releases leases of pods that no longer exist: a DEL was lost, the node went down, or the agent stopped between a write and its answer.
 * A pod that was deleted by force may still run: its lease is kept while the network namespace of its sandbox exists. A write of an earlier
 * process may also arrive when the pod has another sandbox with another address: then its lease is released as well, once it is known that
 * its own sandbox has ended. A tenant may write what Multus reports, so that alone proves nothing.
 * Caches choose candidates in two rounds, a live read of the pod confirms it, and the write fails if the lease has changed.
 */
export class LeakSweep {
  readonly #deps: LeakSweepDeps;
  readonly #candidates: LeakCandidates<'leaked'>;
  #sandboxes: KnownSandboxes = { existing: new Set(), ended: new Set() };
  /** Names of the leases of deleted pods whose sandboxes exist. */
  #kept: ReadonlySet<string> = new Set();

  constructor(deps: LeakSweepDeps) {
    this.#deps = deps;
    const leakOf = (lease: LeaseRecord) =>
      this.#looksLeaked(lease) || this.#successorsOf(lease).length > 0 ? 'leaked' : undefined;
    this.#candidates = new LeakCandidates({ leakOf, afterMs: deps.collectAfterMs, maxChecks: MAX_RELEASES_A_ROUND });
  }

  /** Runs one round. Failures are logged, and the lease is a candidate again later. */
  async round(signal: AbortSignal): Promise<void> {
    const { own, pods, sandboxes, clock } = this.#deps;
    if (!own.hasSynced || !pods.hasSynced) {
      // the two rounds must have had complete caches
      this.#candidates.known.clear();
      return;
    }
    const now = clock.now();
    own.prune();
    await this.#resolveUncertain(now, signal);
    this.#sandboxes = await sandboxes.known();
    this.#keepLeasesOfSandboxes();
    const others = own.all().filter(({ metadata }) => !this.#kept.has(metadata.name));
    for (const { lease } of runAtOnce(this.#candidates.observe(others, now))) {
      if (signal.aborted) return;
      // those that cannot be checked do not come first again
      this.#candidates.known.delete(lease.metadata.uid);
      await this.#releaseIfLeaked(lease, signal);
    }
  }

  /** Finds the leases that look leaked while their sandboxes exist. */
  #keepLeasesOfSandboxes(): void {
    const { own, metrics, log } = this.#deps;
    const kept = own.all().filter((lease) => this.#hasSandbox(lease) && this.#looksLeaked(lease));
    for (const { metadata, owner, containerID } of kept.filter(({ metadata: { name } }) => !this.#kept.has(name))) {
      const message = 'keeping the lease of a pod that is gone: the network namespace of its sandbox exists';
      log.info({ lease: metadata.name, owner, containerID }, `${message}, so its containers may run`);
    }
    this.#kept = new Set(kept.map(({ metadata }) => metadata.name));
    metrics.kept(kept.length);
  }

  #looksLeaked(lease: LeaseRecord): boolean {
    const { owner } = lease;
    if (owner?.kind !== 'Pod' || stateOf(lease) !== 'held') return false;
    const pod = this.#deps.pods.named(owner.namespace, owner.name);
    return pod === undefined || !isKnownAs(pod, owner.uid) || isTerminal(pod);
  }

  #hasSandbox({ containerID = '' }: LeaseRecord): boolean {
    return this.#sandboxes.existing.has(containerID);
  }

  /** Returns the leases that another sandbox, which exists, holds for the same interface and family, if the sandbox of this one has ended. */
  #successorsOf(lease: LeaseRecord): readonly LeaseRecord[] {
    const { owner, containerID = '', interface: interfaceName, address } = lease;
    if (owner?.kind !== 'Pod' || stateOf(lease) !== 'held' || !this.#sandboxes.ended.has(containerID)) return [];
    const others = this.#deps.own.ofPod(owner.uid).filter((each) => stateOf(each) === 'held' && this.#hasSandbox(each));
    return others.filter((each) => each.interface === interfaceName && each.address.family === address.family);
  }

  /** Whether Multus reports the other address, and not this one. An address that cannot be read may be this one. */
  #isReplaced(lease: LeaseRecord, pod: Pod): boolean {
    const attached = networkStatuses(pod).filter((each) => each.interface === lease.interface);
    const reported = readAllAddresses(attached.flatMap(reportedIPsOf)) ?? [];
    const isReported = ({ address }: LeaseRecord) => reported.some((each) => sameAddress(each, address));
    return !isReported(lease) && this.#successorsOf(lease).some(isReported);
  }

  async #releaseIfLeaked(lease: LeaseRecord, signal: AbortSignal): Promise<void> {
    const { writer, log, metrics } = this.#deps;
    const { name, uid, resourceVersion } = lease.metadata;
    try {
      const proof = await this.#leakProof(lease, signal);
      if (proof === undefined) return;
      const isSame = ({ metadata }: LeaseRecord) =>
        metadata.uid === uid && metadata.resourceVersion === resourceVersion;
      if (!(await writer.release(lease, isSame, { signal }))) return;
      metrics.swept();
      log.info({ lease: name, owner: lease.owner }, `released a leaked lease: its pod ${proof}`);
    } catch (error) {
      if (signal.aborted) return;
      log.warn({ lease: name, err: error }, `cannot check a lease that looks leaked, keeping it: ${messageOf(error)}`);
    }
  }

  /** Returns why the pod no longer needs its address; undefined if it does. */
  async #leakProof(lease: LeaseRecord, signal: AbortSignal): Promise<string | undefined> {
    const { namespace = '', name = '', uid = '' } = lease.owner ?? {};
    const pod = await findUnlessGone(this.#deps.client, PODS, { namespace, name }, { signal });
    if (pod === undefined || !hasUid(pod, uid)) return 'was deleted';
    if (isTerminal(pod)) return 'has ended';
    return this.#isReplaced(lease, pod) ? 'has another sandbox with another address' : undefined;
  }

  /** Resolves uncertain writes without a DEL. After this time they are applied or never will be. */
  async #resolveUncertain(now: number, signal: AbortSignal): Promise<void> {
    const { own, writer, log, collectAfterMs } = this.#deps;
    for (const { leaseName, target, since } of own.uncertainWrites()) {
      if (now - since < collectAfterMs || signal.aborted) continue;
      try {
        await writer.read(leaseName, { signal });
        own.resolve(leaseName, target);
      } catch (error) {
        log.debug({ lease: leaseName, err: error }, `cannot read the lease of an uncertain write: ${messageOf(error)}`);
      }
    }
  }
}
