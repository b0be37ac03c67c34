import { nadRightsFrom } from '../api/nad-rights.js';
import { EventRecorder } from '../kube/events.js';
import type { Component } from '../process/component.js';
import type { IpamConfig } from '../process/config.js';
import type { ProcessContext } from '../process/context.js';
import { Leadership, leaderIdentity } from '../process/leadership.js';
import { createAuditLog } from './audit/create-audit-log.js';
import { UnhonouredClaims } from './claims/reports/unhonoured-claims.js';
import { UnleasedAddresses } from './claims/running/unleased-addresses.js';
import { UnservedOwners } from './claims/reports/unserved-owners.js';
import { createCollector } from './collector/collector.js';
import { createCollectorReport } from './collector/report.js';
import { IpamMetrics } from './metrics.js';
import { ServedNetworksWriter } from './pools/served-networks-writer.js';
import { Reconcilers } from './reconcilers.js';
import { createValidationWebhook } from './validation/webhook.js';
import { createIpamViews } from './views.js';

const NAME = 'holdfast-ipam';

/**
 * Creates the process `holdfast ipam`. Every replica fills caches and serves admission reviews; only the leader writes.
 * @param identity unique among the candidates for leadership
 */
export function createIpam(context: ProcessContext, config: IpamConfig, identity = leaderIdentity()): Component {
  return new Ipam(context, config, identity);
}

class Ipam implements Component {
  readonly name = 'ipam';
  readonly #context: ProcessContext;
  readonly #events: EventRecorder;
  readonly #metrics: IpamMetrics;
  readonly #reconcilers: Reconcilers;
  /** What only the leader runs besides the reconcilers. */
  readonly #tasks: readonly { start(): void; stop(): Promise<void> }[];
  readonly #validation: Component;
  readonly #leadership: Leadership;

  constructor(shared: ProcessContext, config: IpamConfig, identity: string) {
    const { client, clock, random, metrics } = shared;
    const log = shared.log.child({ part: this.name });
    const context = { ...shared, log };
    const views = createIpamViews(shared);
    const { watched, book, directory, users } = views;
    this.#context = context;
    this.#metrics = new IpamMetrics(metrics, clock, config.maxDerivedPoolMetrics);
    const events = new EventRecorder({ client, component: NAME, clock, random, log, metrics: metrics.kube });
    this.#events = events;
    this.#reconcilers = new Reconcilers({
      ...{ context, config, views, events, metrics: this.#metrics },
      whileLeading: (sync) => this.#leadership.whileLeading(sync),
    });
    const { gate } = this.#reconcilers;
    const [claims, pods, networks] = [watched.claims.cache, watched.pods.cache, watched.networks.cache];
    const collector = createCollector({
      ...{ config, book, client, clock, users, directory, gate, claims: watched.claims, pods: watched.pods },
      report: createCollectorReport({ log, metrics, events }),
    });
    const unhonoured = new UnhonouredClaims({ ...context, config, gate, directory, events, claims, pods: users });
    const audit = createAuditLog(config, watched.leases, context);
    const unleased = new UnleasedAddresses({
      ...{ ...context, config, directory, book, events, pods, claims, networks },
      count: (addresses) => this.#metrics.setUnleased(addresses),
    });
    const unserved = new UnservedOwners({ ...context, claims, directory });
    const servedNetworks = new ServedNetworksWriter({ ...context, config, pools: watched.pools });
    this.#tasks = [...(audit ? [audit] : []), collector, unhonoured, unserved, unleased, servedNetworks];
    this.#validation = createValidationWebhook(shared, config, {
      leases: book,
      pools: watched.pools.cache,
      networks: directory,
      rightsOf: nadRightsFrom(config),
    });
    this.#leadership = new Leadership({
      ...{ context, config, name: NAME, identity },
      startWork: (signal) => this.#beginTerm(signal),
      stopWork: () => this.#endTerm(),
    });
    this.#reconcilers.listen();
  }

  async start(): Promise<void> {
    this.#context.informers.start();
    this.#leadership.start();
    await this.#validation.start();
  }

  ready(): string | undefined {
    return this.#context.informers.ready() ?? this.#validation.ready?.();
  }

  notice(): string | undefined {
    return this.#reconcilers.kubevirt.controller().problem;
  }

  async stop(): Promise<void> {
    this.#reconcilers.stop();
    await Promise.all([this.#leadership.stop(), this.#validation.stop()]);
    await this.#events.flush();
  }

  #beginTerm(signal: AbortSignal): void {
    this.#metrics.begin();
    for (const task of this.#tasks) task.start();
    this.#reconcilers.begin(signal);
  }

  async #endTerm(): Promise<void> {
    await Promise.all([this.#reconcilers.end(), ...this.#tasks.map((task) => task.stop())]);
    this.#metrics.end();
  }
}
