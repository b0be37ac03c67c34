import { nadRightsFrom } from '../api/networks/nad-rights.js';
import type { Component, ProcessContext } from '../process/context.js';
import { type ElectedContext, type ElectedWork, createElectedComponent } from '../process/elected-component.js';
import type { IpamConfig } from '../process/config/config.js';
import { createAuditLog } from './audit/create-audit-log.js';
import { reportUnhonouredClaims } from './claims/reports/unhonoured-claims.js';
import { reportUnleasedAddresses } from './claims/running/unleased-addresses.js';
import { UnservedOwners } from './claims/reports/unserved-owners.js';
import { Collector } from './collector/collector.js';
import { createCollectorReport } from './collector/report.js';
import { IpamMetrics } from './metrics.js';
import { ServedNetworksWriter } from './pools/served-networks.js';
import { Reconcilers } from './reconcilers.js';
import { createValidationWebhook } from './validation/webhook.js';
import { type Views, createIpamViews } from './views.js';

/** Creates the process `holdfast ipam`. Every replica serves admission reviews; only the leader writes. */
export function createIpam(shared: ProcessContext, config: IpamConfig): Component {
  const create = (elected: ElectedContext) => new Ipam(elected, config, shared);
  return createElectedComponent({ name: 'ipam', context: shared, config }, create);
}

class Ipam implements ElectedWork {
  readonly #metrics: IpamMetrics;
  readonly #reconcilers: Reconcilers;
  readonly #audit: ReturnType<typeof createAuditLog>;
  /** What only the leader runs besides the reconcilers and the audit log. */
  readonly #tasks: readonly { start(): void; stop(): Promise<void> }[];
  readonly #validation: Component;
  readonly #referring: Views['referring'];

  constructor(context: ElectedContext, config: IpamConfig, shared: ProcessContext) {
    const { client, clock, log, metrics, events, whileLeading } = context;
    const views = createIpamViews(shared);
    const { watched, book, directory, users } = views;
    this.#referring = views.referring;
    this.#metrics = new IpamMetrics(metrics, clock, config.maxDerivedPoolMetrics);
    this.#reconcilers = new Reconcilers({
      ...{ context, config, views, events, metrics: this.#metrics, whileLeading },
    });
    const { gate } = this.#reconcilers;
    const [claims, pods, networks] = [watched.claims.cache, watched.pods.cache, watched.networks.cache];
    const collector = new Collector({
      ...{ config, book, client, clock, users, directory, gate, claims: watched.claims, pods: watched.pods },
      nodes: watched.nodes,
      report: createCollectorReport({ log, metrics, events }),
    });
    const unhonoured = reportUnhonouredClaims({ ...context, config, gate, directory, events, claims, pods: users });
    this.#audit = createAuditLog(config, watched.leases, context);
    const unleased = reportUnleasedAddresses({
      ...{ ...context, config, directory, book, events, pods, claims, networks },
      count: (addresses) => this.#metrics.setUnleased(addresses),
    });
    const unserved = new UnservedOwners({ ...context, claims, directory });
    const servedNetworks = new ServedNetworksWriter({ ...context, config, pools: watched.pools });
    this.#tasks = [collector, unhonoured, unserved, unleased, servedNetworks];
    this.#validation = createValidationWebhook(shared, config, {
      leases: book,
      pools: watched.pools.cache,
      networks: directory,
      rightsOf: nadRightsFrom(config),
    });
    this.#reconcilers.listen();
  }

  start(): Promise<void> {
    return this.#validation.start();
  }

  ready(): string | undefined {
    return this.#validation.ready?.();
  }

  notice(): string | undefined {
    return this.#reconcilers.kubevirt.controller().problem;
  }

  async stop(): Promise<void> {
    this.#reconcilers.stop();
    await Promise.all([this.#referring.stop(), this.#validation.stop()]);
  }

  prepare(): Promise<void> {
    return this.#reconcilers.prepare();
  }

  startWork(signal: AbortSignal): void {
    this.#metrics.begin();
    void this.#begin(signal);
  }

  /** Claims come first: the first rounds of the tasks look at all objects, too. */
  async #begin(signal: AbortSignal): Promise<void> {
    this.#audit?.start();
    await this.#reconcilers.begin(signal);
    if (!signal.aborted) for (const task of this.#tasks) task.start();
  }

  async stopWork(): Promise<void> {
    await Promise.all([this.#reconcilers.end(), this.#audit?.stop(), ...this.#tasks.map((task) => task.stop())]);
    this.#metrics.end();
  }
}
