import type { IPAMClaim } from '../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../api/kubevirt.js';
import { type KubeObject, joinKey, objectKey } from '../api/meta.js';
import { EventReason } from '../api/event-reasons.js';
import {
  GUEST_CONFIGURED,
  KUBEVIRT_API_VERSION,
  NETWORK_DATA_WRITTEN,
  PERSISTENT_IPS_DISABLED,
  PERSISTENT_IPS_LABEL,
} from '../api/names.js';
import { type ConditionValue, conditionOf, writeConditions } from '../cluster/claim-conditions.js';
import { BY_NAD, BY_WORKLOAD, workloadOfClaim } from '../cluster/watch-specs.js';
import { changesNetwork } from '../cluster/transforms.js';
import { isNamespaceServed } from '../cluster/persistent-ips-gate.js';
import type { Client } from '../kube/client.js';
import type { Clock } from '../kube/clock.js';
import type { Sync, SyncResult } from '../kube/controller-loop.js';
import type { EventRecorder } from '../kube/events.js';
import { affectedClaims } from '../addressing/directory/affected.js';
import type { GuestConfig } from '../process/config/guest-config.js';
import { CachedGuestView } from './cached-view.js';
import { type GuestInterface, guestInterfacesOf } from './interfaces.js';
import type { GuestMetrics } from './metrics.js';
import { networkDataCondition } from './network-data/plan.js';
import { NetworkData } from './network-data/reconciler.js';
import { MAX_SECRET_USERS } from './network-data/request.js';
import { UnansweredWrites } from './network-data/secret.js';
import { type ObservedGuestWorkload, observeGuestWorkload } from './observed-workload.js';
import type { GuestViews, Reconciler } from './views.js';
import { type GuestReport, GuestReports } from './guest-reports.js';
import { BY_SECRET, secretKeysOf, workloadOfLock } from './watch-specs.js';

/** VMs whose conditions and Secrets are written at the same time. */
const WORKERS = 8;

export interface WorkloadReconcilerDeps {
  readonly views: GuestViews;
  readonly client: Pick<Client, 'create' | 'patch' | 'find'>;
  readonly config: Pick<GuestConfig, 'namespace' | 'guestGraceMs'>;
  readonly clock: Clock;
  readonly events: Pick<EventRecorder, 'event'>;
  readonly metrics: GuestMetrics;
}

/** What one term of leadership remembers. */
interface Term {
  readonly networkData: NetworkData;
  readonly reports: GuestReports;
}

interface Problems {
  /** Why its Secret is not written. */
  readonly notWritten: string | undefined;
  /** Claims whose guest lacks their addresses. */
  readonly misconfigured: number;
}

const NO_PROBLEMS: Problems = { notWritten: undefined, misconfigured: 0 };

/** Writes the network data of VMs, and the conditions of their claims, by the key of the VM. */
export class WorkloadReconciler implements Reconciler {
  readonly name = 'workloads';
  readonly workers = WORKERS;
  readonly #deps: WorkloadReconcilerDeps;
  /** By workload: what the metrics count. */
  readonly #problems = new Map<string, Problems>();
  readonly #unanswered: UnansweredWrites;

  constructor(deps: WorkloadReconcilerDeps) {
    this.#deps = deps;
    this.#unanswered = new UnansweredWrites(deps.clock);
  }

  listen(add: (keys: Iterable<string>) => void): void {
    const { watched, directory, onGateChange } = this.#deps.views;
    const { vms, vmis, claims, namespaces, lockedLeases } = watched;
    for (const informer of [vms, vmis])
      informer.onChange((change) => {
        const { object, before = object } = change;
        add([objectKey(object), ...this.#usersOf(before), ...this.#usersOf(object)]);
      });
    claims.onChange(({ object }) => add(workloadOfClaim(object)));
    lockedLeases.onChange(({ object }) => add(workloadOfLock(object)));
    directory.onChange((changes) => add(affectedClaims(changes, claims.cache).flatMap(workloadOfClaim)));
    watched.networks.onChange((change) => {
      if (changesNetwork(change)) add(this.#keysOfNad(objectKey(change.object)));
    });
    namespaces.onChange(({ object }) => add(this.#keysOfNamespace(object.metadata.name)));
    onGateChange(() => add(this.allKeys()));
  }

  *allKeys(): Generator<string> {
    const { vms, vmis, claims, lockedLeases } = this.#deps.views.watched;
    for (const { cache } of [vms, vmis]) yield* cache.keys();
    for (const claim of claims.cache.list()) yield* workloadOfClaim(claim);
    for (const lease of lockedLeases.cache.list()) yield* workloadOfLock(lease);
  }

  createSync(): Sync {
    const { client, config, metrics } = this.#deps;
    const term: Term = {
      networkData: new NetworkData({
        client,
        unanswered: this.#unanswered,
        usersOf: (namespace, secret) => this.#workloadsOfSecret(namespace, secret),
        interfacesOf: (workload) => this.#interfacesOf(workload),
        lockedLeasesOf: (key) => this.#deps.views.watched.lockedLeases.cache.byIndex(BY_WORKLOAD, key),
        written: () => metrics.written(),
      }),
      reports: new GuestReports(config.guestGraceMs),
    };
    return (key: string, signal: AbortSignal) => this.#sync(key, term, signal);
  }

  end(): void {
    this.#problems.clear();
    this.#deps.metrics.clear();
  }

  async #sync(key: string, term: Term, signal: AbortSignal): Promise<SyncResult> {
    const { watched } = this.#deps.views;
    const workload = observeGuestWorkload(key, { vms: watched.vms.cache, vmis: watched.vmis.cache });
    const claims = watched.claims.cache.byIndex(BY_WORKLOAD, key);
    if (workload === undefined) {
      await term.networkData.end(key, signal);
      term.reports.retain(key, []);
      this.#count(key, NO_PROBLEMS);
      return undefined;
    }
    const isRecorded = claims.some((claim) => conditionOf(claim, NETWORK_DATA_WRITTEN) !== undefined);
    const { outcome, retryAfterMs } = await term.networkData.reconcile(workload, isRecorded, signal);
    const condition = networkDataCondition(outcome);
    term.reports.retain(key, claims);
    const reports = await this.#writeConditions(workload, claims, condition, term.reports);
    const notWritten = outcome.kind === 'not-written' ? outcome.reason : undefined;
    this.#count(key, {
      notWritten,
      misconfigured: reports.filter((report) => report.condition?.status === 'False').length,
    });
    const again = [retryAfterMs, ...reports.map((report) => report.again)].filter((ms) => ms !== undefined);
    return again.length === 0 ? undefined : { requeueAfterMs: Math.min(...again) };
  }

  async #writeConditions(
    workload: ObservedGuestWorkload,
    claims: readonly IPAMClaim[],
    written: ConditionValue | undefined,
    reports: GuestReports,
  ): Promise<GuestReport[]> {
    const { client, clock } = this.#deps;
    const interfaces = this.#interfacesOf(workload);
    const made: GuestReport[] = [];
    for (const claim of claims) {
      const own = interfaces.find(({ source }) => source.kind === 'claim' && source.claim === claim);
      const report = reports.report(claim, own, workload, clock.now());
      made.push(report);
      const desired = { [NETWORK_DATA_WRITTEN]: own && written, [GUEST_CONFIGURED]: report.condition };
      if (!(await writeConditions(client, claim, desired, clock.wall()))) continue;
      this.#warn(workload, claim, report.condition);
      if (report.isChange) reports.changed(claim, clock.now());
    }
    return made;
  }

  /** @param claim before the condition was written */
  #warn(workload: ObservedGuestWorkload, claim: IPAMClaim, configured: ConditionValue | undefined): void {
    if (configured?.status !== 'False' || conditionOf(claim, GUEST_CONFIGURED)?.status === 'False') return;
    const { kind } = workload.owner;
    const subject = { apiVersion: KUBEVIRT_API_VERSION, kind, metadata: workload.metadata };
    this.#deps.events.event(subject, 'Warning', EventReason.GuestMisconfigured, configured.message);
  }

  #interfacesOf(workload: ObservedGuestWorkload): GuestInterface[] {
    const { namespace } = workload;
    const { watched, directory, gate } = this.#deps.views;
    const labels = watched.namespaces.cache.get(namespace)?.metadata.labels;
    const getsClaims =
      isNamespaceServed(namespace, gate, this.#deps.config.namespace) &&
      labels?.[PERSISTENT_IPS_LABEL] !== PERSISTENT_IPS_DISABLED;
    const listers = { claims: watched.claims.cache, networks: watched.networks.cache, directory };
    return guestInterfacesOf(workload, new CachedGuestView(namespace, listers, getsClaims));
  }

  #workloadsOfSecret(namespace: string, secret: string): ObservedGuestWorkload[] | undefined {
    const { vms, vmis } = this.#deps.views.watched;
    const keys = this.#keysOfSecret(joinKey(namespace, secret), MAX_SECRET_USERS);
    return keys?.flatMap((key) => observeGuestWorkload(key, { vms: vms.cache, vmis: vmis.cache }) ?? []);
  }

  /** Undefined if there are more than `most`. Each of them asks, so that must not cost more for a larger number. */
  #keysOfSecret(secret: string, most: number): string[] | undefined {
    const { vms, vmis } = this.#deps.views.watched;
    // a VM and its VMI are one user
    if ([vms, vmis].some(({ cache }) => cache.countByIndex(BY_SECRET, secret) > most)) return undefined;
    const users = [vms, vmis].flatMap(({ cache }): readonly KubeObject[] => cache.byIndex(BY_SECRET, secret));
    const keys = new Set(users.map(objectKey));
    return keys.size > most ? undefined : [...keys];
  }

  /** Returns the workloads that name the same Secret as an object: one of them may have it when the object has changed. */
  #usersOf(object: VirtualMachine | VirtualMachineInstance): string[] {
    // of more of them, none depends on the others
    return secretKeysOf(object).flatMap((secret) => this.#keysOfSecret(secret, MAX_SECRET_USERS + 1) ?? []);
  }

  #keysOfNad(nad: string): string[] {
    const { vms, vmis } = this.#deps.views.watched;
    return [vms, vmis].flatMap(({ cache }) => cache.byIndex(BY_NAD, nad).map(objectKey));
  }

  #keysOfNamespace(namespace: string): string[] {
    const { vms, vmis } = this.#deps.views.watched;
    return [vms, vmis].flatMap(({ cache }) => cache.inNamespace(namespace).map(objectKey));
  }

  #count(key: string, found: Problems): void {
    const before = this.#problems.get(key) ?? NO_PROBLEMS;
    if (found.notWritten === undefined && found.misconfigured === 0) this.#problems.delete(key);
    else this.#problems.set(key, found);
    this.#deps.metrics.notWritten(before.notWritten, found.notWritten);
    this.#deps.metrics.misconfigured(found.misconfigured - before.misconfigured);
  }
}
