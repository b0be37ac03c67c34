import type { KnownSandboxes } from '../../sandboxes.js';
import { type KubeObject, joinKey } from '../../../../api/meta.js';
import type { Attachment } from '../../attachment.js';
import { PodLeases } from '../../leases/pod-leases.js';
import { CandidateRegistry } from '../../leases/space-candidates.js';
import { nodeFieldSelector } from '../../node-leases.js';
import { type NodePod, transformNodePod } from '../../node-pods.js';
import { AddOrder, type RequestContext } from '../../request-queue.js';
import type { Grant } from '../../result.js';
import type { Pool } from '../../../../addressing/pool/pool.js';
import { Client } from '../../../../kube/client.js';
import type { Clock, Random } from '../../../../kube/clock.js';
import { LaggingInformer } from '../../../../kube/testing/lagging-informer.js';
import { silentLogger } from '../../../../kube/log.js';
import type { InformerRegistry, WatchSpec } from '../../../../kube/informers/informers.js';
import { DEFAULT_FEATURE_GATES } from '../../../../process/config/feature-gates.js';
import { Metrics } from '../../../../process/metrics.js';
import { LeaseApi, type LeaseCluster } from './lease-api.js';

export const MAX_STALENESS_MS = 30_000;
export const COLLECT_AFTER_MS = 60_000;

export interface LeaseAgentOptions {
  readonly cluster: LeaseCluster;
  readonly nodeName: string;
  readonly pools: readonly Pool[];
  readonly clock: Clock;
  readonly random: Random;
  /** The feature gate StickyMAC. Default: on. */
  readonly stickyMAC?: boolean;
  /** The feature gate NodeBlocks. Default: off. */
  readonly nodeBlocks?: boolean | undefined;
  /** Default: none is known. */
  readonly sandboxes?: KnownSandboxes;
}

/** Key of the feed of blocks. */
export const BLOCK_FEED = 'blocks';

/** One process of the agent of a node, restricted to leases of pods. Tests decide how stale its caches are. */
export class LeaseAgent {
  readonly leases: PodLeases;
  readonly api: LeaseApi;
  readonly metrics = new Metrics();
  readonly #candidates: CandidateRegistry;
  /** Its cache of pods. */
  readonly pods = {
    hasSynced: false,
    known: new Map<string, NodePod>(),
    named: (namespace: string, name: string) => this.pods.known.get(joinKey(namespace, name)),
  };
  /** By field selector; {@link BLOCK_FEED}. */
  readonly feeds = new Map<string, LaggingInformer<KubeObject>>();
  readonly #cluster: LeaseCluster;
  readonly #nodeName: string;
  readonly #adds = new AddOrder();

  constructor(options: LeaseAgentOptions) {
    const { cluster, nodeName, pools, clock, random, nodeBlocks = false, stickyMAC = true } = options;
    this.#cluster = cluster;
    this.#nodeName = nodeName;
    this.api = new LeaseApi(cluster);
    const follow = (watched: WatchSpec<KubeObject>) => this.#feed(watched);
    const createInformer = follow as unknown as ConstructorParameters<typeof CandidateRegistry>[0]['createInformer'];
    this.#candidates = new CandidateRegistry({ clock, random, createInformer });
    this.leases = new PodLeases({
      client: new Client(this.api),
      informers: { get: follow as unknown as InformerRegistry['get'], start: () => undefined },
      candidates: this.#candidates,
      lookup: {
        directory: { pool: (name) => pools.find((pool) => pool.name === name) },
        loadPools: () => Promise.resolve(),
      },
      pods: this.pods,
      sandboxes: { known: () => Promise.resolve(options.sandboxes ?? { existing: new Set(), ended: new Set() }) },
      nodeName,
      clock,
      random,
      log: silentLogger,
      metrics: this.metrics,
      config: {
        maxStalenessMs: MAX_STALENESS_MS,
        collectAfterMs: COLLECT_AFTER_MS,
        featureGates: { ...DEFAULT_FEATURE_GATES, nodeBlocks, stickyMAC },
      },
    });
    this.leases.start();
  }

  /** Carries out the part of an ADD that leases addresses. */
  grant(attachment: Attachment, pool: Pool, call: RequestContext): Promise<Grant> {
    const key = `${attachment.pod.metadata.name} ${attachment.interfaceName}`;
    return this.#adds.run(key, call, (add) => this.leases.grant(attachment, pool, add));
  }

  /** Watches the leases of the pool's address space, as after random attempts have failed. */
  watchSpace(pool: Pool): void {
    void this.#candidates.forPool(pool).synced(new AbortController().signal);
    this.feeds.get(`spec.addressSpace=${pool.addressSpace}`)?.list();
  }

  /** Brings all caches up to date. */
  catchUp(): void {
    for (const feed of this.feeds.values()) feed.deliver();
    this.seePods();
  }

  /** Lists the leases of the node again. */
  listOwn(): void {
    this.feeds.get(nodeFieldSelector(this.#nodeName))?.list();
  }

  seePods(): void {
    this.pods.hasSynced = true;
    this.pods.known = new Map([...this.#cluster.pods].map(([key, pod]) => [key, transformNodePod(pod)]));
  }

  /** Returns the value of a metric, summed over its labels. */
  async metric(name: string): Promise<number> {
    const found = await this.metrics.registry.getSingleMetric(name)?.get();
    return (found?.values ?? []).reduce((sum, { value }) => sum + value, 0);
  }

  #feed(watched: WatchSpec<KubeObject>): LaggingInformer<KubeObject> {
    const feed = new LaggingInformer(this.#cluster.server.tracker, watched);
    this.feeds.set(watched.resource.plural === 'addressblocks' ? BLOCK_FEED : (watched.fieldSelector ?? ''), feed);
    return feed;
  }
}
