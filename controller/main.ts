import { joinKey } from '../api/meta.js';
import { ControllerLoop } from '../kube/controller-loop.js';
import { WorkQueue } from '../kube/workqueue.js';
import type { ControllerConfig } from '../process/config/config.js';
import type { Component, ProcessContext } from '../process/context.js';
import { type ElectedContext, type ElectedWork, createElectedComponent } from '../process/elected-component.js';
import { type WatchingGate, isNamespaceServed, createPersistentIPsGate } from '../cluster/persistent-ips-gate.js';
import { type KubeVirtControllerSource, watchKubeVirt } from '../cluster/kubevirt-controller.js';
import {
  NAMESPACE_WATCH,
  CLAIM_WATCH,
  KUBEVIRT_WATCH,
  NAD_WATCH,
  VMI_WATCH,
  VM_WATCH,
} from '../cluster/watch-specs.js';
import { LauncherList } from './claims/live-workload.js';
import { createSync } from './claims/sync.js';
import { allKeys, keysOfClaim, keysOfLauncher, keysOfNad, keysOfNamespace } from './claims/workload-keys.js';
import { reportUnansweredClaims } from './unanswered-claims.js';
import { BlockedWorkloads, QuotaWaits, WriteFailures } from './claims/waiting-workloads.js';
import { createControllerMetrics } from './claims/reports.js';
import { CreatedClaims } from './claims/created-claims.js';
import { DHCPAfterMigration } from './claims/dhcp-after-migration.js';
import { UnreportedChanges } from './claims/life-events.js';
import { LAUNCHER_SELECTOR } from '../api/pod.js';
import { PODS, RESOURCE_QUOTAS, type ResourceQuota } from '../kube/resources.js';
import type { WatchSpec } from '../kube/informers/informers.js';
import { type ClaimQuota, LAUNCHER_INDEXES, transformLauncher, transformQuota } from './caches.js';

const NAME = 'controller';

/** Creates and releases the IPAMClaims of VMs and VMIs. @param identity unique among the candidates for leadership */
export function createController(context: ProcessContext, config: ControllerConfig, identity?: string): Component {
  return createElectedComponent(
    { name: NAME, context, config, identity },
    (elected) => new Controller(elected, config),
  );
}

/** One term of leadership: the queue and the workers. */
interface Term {
  queue: WorkQueue;
  loop: ControllerLoop;
  createdClaims: CreatedClaims;
  quotaWaits: QuotaWaits;
  unreportedChanges: UnreportedChanges;
  unanswered: ReturnType<typeof reportUnansweredClaims>;
}

class Controller implements ElectedWork {
  readonly #context: ElectedContext;
  readonly #config: ControllerConfig;
  readonly #informers;
  readonly #listers;
  readonly #gate: WatchingGate;
  readonly #kubevirt: KubeVirtControllerSource;
  readonly #blockedWorkloads = new BlockedWorkloads();
  readonly #metrics;
  #term: Term | undefined;

  constructor(context: ElectedContext, config: ControllerConfig) {
    const { informers } = context;
    this.#context = context;
    this.#config = config;
    this.#gate = createPersistentIPsGate(config, informers, () => this.#addAll());
    const claims = informers.get(CLAIM_WATCH);
    this.#informers = {
      vms: informers.get(VM_WATCH),
      vmis: informers.get(VMI_WATCH),
      launchers: informers.get(LAUNCHERS),
      claims,
      namespaces: informers.get(NAMESPACE_WATCH),
      // new claims need them, and claims that exist follow their NADs
      networks: this.#gate.informer(NAD_WATCH, () => claims.cache.size > 0),
      // only new claims need them
      quotas: this.#gate.informer(QUOTAS),
    };
    const { vms, vmis, launchers, networks, namespaces } = this.#informers;
    this.#listers = {
      ...{ vms: vms.cache, vmis: vmis.cache, launchers: launchers.cache },
      ...{ claims: claims.cache, networks: networks.cache, namespaces: namespaces.cache },
    };
    this.#metrics = createControllerMetrics(context.metrics);
    this.#kubevirt = watchKubeVirt(informers, config.namespace, () => this.#addAll());
    this.#listen();
  }

  notice(): string | undefined {
    return this.#kubevirt.controller().problem;
  }

  #listen(): void {
    const { vms, vmis, launchers, claims, networks, namespaces, quotas } = this.#informers;
    for (const informer of [vms, vmis]) {
      informer.onServed(() => this.#addAll());
      informer.onChange(({ object: { metadata } }) => this.#add([joinKey(metadata.namespace, metadata.name)]));
    }
    launchers.onChange((change) => {
      this.#term?.unreportedChanges.launcherChanged(change);
      this.#add(keysOfLauncher(change, claims.cache));
    });
    networks.onSynced(() => this.#addAll());
    claims.onChange((change) => {
      // the first claim needs NADs, and the last one did
      if (claims.cache.size < 2) this.#context.informers.update();
      this.#term?.createdClaims.shown(change.object);
      this.#term?.unreportedChanges.claimChanged(change);
      this.#add(keysOfClaim(change, this.#blockedWorkloads));
    });
    quotas.onChange((change) => this.#term?.quotaWaits.quotaChanged(change));
    const { primaryUserDefinedNetwork } = this.#config.featureGates;
    networks.onChange((change) => this.#add(keysOfNad(change, this.#listers, primaryUserDefinedNetwork)));
    namespaces.onChange((change) => this.#add(keysOfNamespace(change, this.#listers)));
  }

  #add(keys: Iterable<string>): void {
    void this.#term?.queue.addAll(keys);
  }

  #addAll(): void {
    void this.#term?.queue.addAll(allKeys(this.#listers), 'low');
  }

  startWork(): void {
    const { client, clock, events, informers, random, log, metrics } = this.#context;
    const { workers } = this.#config;
    const queue = new WorkQueue({ name: NAME, clock, random, metrics: metrics.kube, workers });
    const quotaWaits = new QuotaWaits((key) => {
      queue.forget(key);
      queue.add(key);
    });
    const unreportedChanges = new UnreportedChanges(clock);
    const createdClaims = new CreatedClaims(clock);
    const sync = createSync({
      listers: this.#listers,
      client,
      launchers: new LauncherList(client, clock),
      blockedWorkloads: this.#blockedWorkloads,
      createdClaims,
      quotaWaits,
      unreportedChanges,
      writeFailures: new WriteFailures(clock),
      dhcpAfterMigration: new DHCPAfterMigration(informers.get(KUBEVIRT_WATCH).cache),
      areWorkloadsServed: () => this.#informers.vms.isServed && this.#informers.vmis.isServed,
      isGateOpen: (namespace) => isNamespaceServed(namespace, this.#gate, this.#config.namespace),
      areNetworksKnown: () => this.#informers.networks.hasSynced,
      servesPrimaryNetworks: this.#config.featureGates.primaryUserDefinedNetwork,
      maxClaims: this.#config.maxClaimsPerVm,
      restoreWaitMs: this.#config.restoreWaitMs,
      clock,
      kubevirt: this.#kubevirt,
      events,
      metrics: this.#metrics,
      log,
    });
    const options = { name: NAME, queue, workers, log, clock, metrics: metrics.kube };
    const loop = new ControllerLoop({ ...options, sync: this.#context.whileLeading(sync) });
    const unanswered = reportUnansweredClaims({
      ...this.#listers,
      events,
      clock,
      log,
      gate: this.#gate,
      afterMs: this.#config.unhonouredAfterMs,
    });
    this.#term = { queue, loop, createdClaims, quotaWaits, unreportedChanges, unanswered };
    loop.start();
    unanswered.start();
    this.#addAll();
  }

  async stopWork(): Promise<void> {
    const term = this.#term;
    this.#term = undefined;
    await Promise.all([term?.loop.stop(), term?.unanswered.stop()]);
  }
}

/** The launchers, which only the controller watches with these fields. */
const LAUNCHERS = {
  resource: PODS,
  labelSelector: LAUNCHER_SELECTOR,
  transform: transformLauncher,
  indexes: LAUNCHER_INDEXES,
};

/** Tells when a quota may have room for claims that it rejected. */
const QUOTAS: WatchSpec<ResourceQuota, ClaimQuota> = { resource: RESOURCE_QUOTAS, transform: transformQuota };
