import { objectKey } from '../../../api/meta.js';
import { type LeaseRecord, isHeldByPod, stateOf } from '../../../addressing/lease/lease.js';
import { collectIntervalMs } from '../../../addressing/lease/lease-times.js';
import type { PoolDirectory } from '../../../addressing/directory/directory.js';
import type { Pool } from '../../../addressing/pool/pool.js';
import type { CallOptions, Client } from '../../../kube/client.js';
import type { Clock, Random } from '../../../kube/clock.js';
import { Informer } from '../../../kube/informers/informer.js';
import type { Logger } from '../../../kube/log.js';
import { messageOf } from '../../../kube/errors.js';
import { ADDRESS_LEASES } from '../../../kube/resources.js';
import { abortable } from '../../../kube/transport/deadline.js';
import type { AgentConfig } from '../../../process/config/agent-config.js';
import type { InformerRegistry } from '../../../kube/informers/informers.js';
import type { Metrics } from '../../../process/metrics.js';
import { PeriodicTask } from '../../../process/periodic-task.js';
import type { Attachment } from '../attachment.js';
import { type Grant, grantedAddress } from '../result.js';
import type { PoolLookup } from '../pool-lookup.js';
import { type AddContext, type RequestContext, waitIdle } from '../request-queue.js';
import { type InterfaceRef, sandboxInterfaceKey } from '../request.js';
import type { Sandboxes } from '../sandboxes.js';
import { CniCode, CniError, readResult } from '../cni-error.js';
import { type PodLeaseMetrics, createNodeBlockMetrics, createPodLeaseMetrics } from '../metrics.js';
import { NodeBlocks } from '../blocks/node-blocks.js';
import { CandidateRegistry } from './space-candidates.js';
import { LeaseWriter, tryReadLease } from './lease-writer.js';
import { NodeLeases, isHeldAt, nodeFieldSelector } from '../node-leases.js';
import { asAllocationError } from './allocation-errors.js';
import { PodAllocation, type PodAllocationDeps } from './pod-allocation.js';
import { type CachedPods, LeakSweep } from './leak-sweep.js';

interface PodLeasesDeps {
  readonly client: Client;
  readonly informers: Pick<InformerRegistry, 'get' | 'start'>;
  readonly lookup: Pick<PoolLookup, 'loadPools'> & { readonly directory: Pick<PoolDirectory, 'pool'> };
  /** Normally {@link NodePods}. */
  readonly pods: CachedPods;
  readonly sandboxes: Pick<Sandboxes, 'known'>;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly config: Pick<AgentConfig, 'maxStalenessMs' | 'collectAfterMs' | 'featureGates'>;
  /** Default: with informers. */
  readonly candidates?: CandidateRegistry;
}

/** The addresses of pods without a claim. The agent of the pod's node leases them. */
export class PodLeases {
  readonly #deps: PodLeasesDeps;
  readonly #own: NodeLeases;
  readonly #writer: LeaseWriter;
  readonly #allocation: PodAllocationDeps;
  readonly #candidates: CandidateRegistry;
  /** Absent if the feature gate NodeBlocks is off. */
  readonly #blocks: NodeBlocks | undefined;
  readonly #sweep: LeakSweep;
  readonly #metrics: PodLeaseMetrics;
  readonly #rounds: PeriodicTask;

  constructor(deps: PodLeasesDeps) {
    const { client, informers, nodeName, clock, config } = deps;
    const { maxStalenessMs, collectAfterMs, featureGates } = config;
    this.#deps = deps;
    this.#metrics = createPodLeaseMetrics(deps.metrics);
    this.#own = new NodeLeases(informers, nodeName, clock, collectAfterMs);
    this.#blocks = featureGates.nodeBlocks ? createNodeBlocks(deps, this.#own) : undefined;
    const parts = { own: this.#own, metrics: this.#metrics };
    this.#writer = new LeaseWriter({ ...parts, client, uses: this.#blocks?.uses, clock });
    const rules = { maxStalenessMs, stickyMAC: featureGates.stickyMAC };
    this.#allocation = { ...deps, ...parts, writer: this.#writer, rules };
    this.#candidates = deps.candidates ?? createCandidates(deps);
    this.#sweep = new LeakSweep({ ...deps, ...parts, writer: this.#writer, collectAfterMs });
    const pauseMs = collectIntervalMs(collectAfterMs);
    this.#rounds = new PeriodicTask({ clock, pauseMs, run: (signal) => this.#round(signal) });
  }

  /** Whether the leases of this node are known. */
  get hasSynced(): boolean {
    return this.#own.hasSynced;
  }

  start(): void {
    this.#deps.informers.start();
    this.#blocks?.start();
    this.#rounds.start();
  }

  /** Resolves when nothing more is written, except by requests that still run. */
  async stop(): Promise<void> {
    await this.#rounds.stop();
    await this.#blocks?.stop();
    await this.#candidates.stop();
  }

  /**
   * Leases an address of each family of the pool: the one that the interface has already, the requested one, or any free one.
   * @throws {CniError} 7 if the pool does not lease the requested address; 11 if the pool is full, another owner has the address, or a
   *   request to the API server failed; 100 if the API server refuses the lease
   */
  async grant(attachment: Attachment, pool: Pool, call: AddContext): Promise<Grant> {
    try {
      await this.#synced(call);
      const blocks = this.#blocks?.candidates;
      const candidates = this.#candidates.forPool(blocks?.withoutWithheld(pool) ?? pool);
      const request = { attachment, pool, candidates, blocks, call };
      const leases = await new PodAllocation(this.#allocation, request).run();
      return leases.map((lease) => grantedAddress(lease, pool));
    } catch (error) {
      const what = `allocate an address of pool ${pool.name} to pod ${objectKey(attachment.pod)}`;
      throw asAllocationError(error, what, call.signal);
    } finally {
      this.#metrics.held(this.#own.held);
    }
  }

  /**
   * Releases the leases that pods hold on the interface.
   * @throws {TransportError | StatusError} if a request failed; retry later
   */
  async release(containerId: string, interfaceName: string, call: RequestContext): Promise<void> {
    const target = { containerId, interfaceName };
    const found = await this.#leasesOfNode(call);
    await this.#writer.readUncertain(target, call);
    const leases = new Map([...found, ...this.#own.heldAt(target)].map((lease) => [lease.metadata.name, lease]));
    await this.#releaseAll([...leases.values()], (lease) => isHeldAt(lease, target), call);
  }

  /** Returns the leases of the interface, each read live. @throws {CniError} 11 if one cannot be read */
  async held(target: InterfaceRef, call: CallOptions): Promise<readonly LeaseRecord[]> {
    const known = this.#own.heldAt(target);
    const found = await readResult(Promise.all(known.map(({ metadata }) => this.#writer.read(metadata.name, call))));
    return found.flatMap((lease) => (lease !== undefined && isHeldAt(lease, target) ? [lease] : []));
  }

  /**
   * Releases the leases of the network on this node whose sandboxes do not exist any more.
   * @param valid keys of {@link sandboxInterfaceKey} of the sandbox interfaces that exist
   * @throws {CniError} 11 if this agent has just started
   * @throws {TransportError | StatusError} if one release failed; the others are still done
   */
  async collect(network: string, valid: ReadonlySet<string>, call: RequestContext): Promise<void> {
    if (!this.hasSynced)
      throw new CniError(
        CniCode.TryAgain,
        'the agent has just started and is still reading its leases: the kubelet retries',
      );
    const isOver = (lease: LeaseRecord) => {
      const { containerID: containerId, interface: interfaceName } = lease;
      if (containerId === undefined || interfaceName === undefined || !isHeldByPod(lease)) return false;
      return !valid.has(sandboxInterfaceKey({ containerId, interfaceName }));
    };
    const over = this.#own.all().filter(isOver);
    const { lookup } = this.#deps;
    const pools = over.map(({ pool }) => pool);
    await lookup.loadPools(pools, call);
    const isOfNetwork = ({ pool }: LeaseRecord) => lookup.directory.pool(pool)?.network === network;
    await this.#releaseAll(over.filter(isOfNetwork), isOver, call);
  }

  async #releaseAll(
    leases: readonly LeaseRecord[],
    still: (lease: LeaseRecord) => boolean,
    { signal }: RequestContext,
  ): Promise<void> {
    const results = await Promise.allSettled(leases.map((lease) => this.#writer.release(lease, still, { signal })));
    this.#metrics.held(this.#own.held);
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }

  /** Lists the leases of the node if the first list has not arrived yet, because a DEL may concern an earlier process of the agent. */
  async #leasesOfNode(call: CallOptions): Promise<readonly LeaseRecord[]> {
    if (this.hasSynced) return [];
    const { client, nodeName } = this.#deps;
    const options = { fieldSelector: nodeFieldSelector(nodeName), ...(call.signal && { signal: call.signal }) };
    const { items } = await client.listAs(ADDRESS_LEASES, tryReadLease, options);
    return items.flatMap((lease) => (lease !== undefined && stateOf(lease) === 'held' ? [lease] : []));
  }

  async #synced(call: RequestContext): Promise<void> {
    if (this.hasSynced && this.#blocks?.hasSynced !== false) return;
    const synced = async () => {
      await abortable(Promise.all([this.#own.synced(), this.#blocks?.synced()]), call.signal);
    };
    await waitIdle(call, synced);
  }

  async #round(signal: AbortSignal): Promise<void> {
    try {
      await this.#sweep.round(signal);
      await this.#candidates.prune();
    } catch (error) {
      this.#deps.log.error({ err: error }, `cannot search for leaked leases: ${messageOf(error)}`);
    }
    this.#metrics.held(this.#own.held);
  }
}

function createNodeBlocks({ metrics, ...deps }: PodLeasesDeps, own: NodeLeases): NodeBlocks {
  return new NodeBlocks({ ...deps, own, metrics: createNodeBlockMetrics(metrics) });
}

function createCandidates({ client, clock, random, log, metrics }: PodLeasesDeps): CandidateRegistry {
  return new CandidateRegistry({
    clock,
    random,
    createInformer: ({ resource, ...watched }) =>
      new Informer(client, resource, { ...watched, clock, random, log, metrics: metrics.kube }),
  });
}
