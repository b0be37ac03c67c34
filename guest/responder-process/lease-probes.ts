import { PROBE_LIMITS } from '../../api/limits.js';
import type { ProbeState } from '../../api/probe.js';
import { endProbe } from '../../addressing/lease/lease-quarantine.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { classifyError, isConflict, isNotFound, messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { MAX_PROBES } from '../responder-tables/protocol.js';
import type { RequestedProbe } from '../responder-tables/guest-table.js';
import type { ResponderMetrics } from './metrics.js';
import type { HelperSession } from './session.js';

/** Leases that are probed at one time. Addresses that guests declined are probed too. */
const MAX_RUNNING = MAX_PROBES - 16;
/** After a failure: ipam still waits. */
const RETRY_MS = 300;
/** While ipam waits. The helpers of all responders may start again at the same time. */
const MAX_TRIES = Math.floor(PROBE_LIMITS.timeoutMs / RETRY_MS);

type ProbeResult = Exclude<ProbeState, 'requested' | 'skipped'>;

interface LeaseProbesDeps {
  readonly client: Pick<Client, 'patch'>;
  readonly session: Pick<HelperSession, 'probe'>;
  readonly metrics: Pick<ResponderMetrics, 'probed'>;
  readonly clock: Pick<Clock, 'sleep'>;
  readonly log: Logger;
}

/**
 * Probes the addresses of leases for which ipam requests it, and writes what was found. All responders of a pool do the same, and the first write
 * counts: no other one has its resourceVersion.
 */
export class LeaseProbes {
  readonly #deps: LeaseProbesDeps;
  /** Names of leases, the oldest request first. */
  readonly #waiting = new Set<string>();
  readonly #running = new Set<string>();
  /** As the last table has them, by name. */
  #requested: ReadonlyMap<string, RequestedProbe> = new Map();

  constructor(deps: LeaseProbesDeps) {
    this.#deps = deps;
  }

  /** Call it with the requests of each table. */
  request(probes: readonly RequestedProbe[]): void {
    const before = this.#requested;
    this.#requested = new Map(probes.map((each) => [each.metadata.name, each]));
    for (const { metadata } of probes) {
      const isNew = before.get(metadata.name)?.metadata.resourceVersion !== metadata.resourceVersion;
      if (isNew && !this.#running.has(metadata.name)) this.#waiting.add(metadata.name);
    }
    this.#startNext();
  }

  #startNext(): void {
    for (const name of this.#waiting) {
      if (this.#running.size >= MAX_RUNNING) return;
      this.#waiting.delete(name);
      this.#running.add(name);
      void this.#run(name);
    }
  }

  async #run(name: string): Promise<void> {
    const { metrics, log } = this.#deps;
    const lease = this.#requested.get(name);
    try {
      if (lease !== undefined) await this.#probe(lease);
    } catch (error) {
      metrics.probed('failed');
      log.warn({ lease: name }, `the result of a probe was not written: ${messageOf(error)}`);
    }
    this.#running.delete(name);
    const now = this.#requested.get(name);
    // it changed meanwhile, so that nothing was written
    if (now !== undefined && now.metadata.resourceVersion !== lease?.metadata.resourceVersion) this.#waiting.add(name);
    this.#startNext();
  }

  async #probe(lease: RequestedProbe): Promise<void> {
    const { session, metrics } = this.#deps;
    const { address, expected } = lease;
    const ask = () => session.probe(address, expected);
    let macs = await ask();
    for (let tries = 1; macs === undefined && tries < MAX_TRIES && (await this.#mayTryAgain(lease)); tries++)
      macs = await ask();
    if (macs === undefined) {
      metrics.probed('failed');
      return;
    }
    const state = stateFor(macs, expected);
    try {
      await this.#write(lease, state);
    } catch (error) {
      // another responder was faster, or ipam did not wait any longer
      if (isConflict(error) || isNotFound(error)) return;
      throw error;
    }
    metrics.probed(typeof state === 'string' ? state : 'taken');
  }

  async #write(lease: RequestedProbe, state: ProbeResult): Promise<void> {
    const { name, body } = endProbe(lease, state);
    const write = () => this.#deps.client.patch(ADDRESS_LEASES, { name }, { type: 'merge', body });
    try {
      await write();
    } catch (error) {
      if (classifyError(error) !== 'transient' || !(await this.#mayTryAgain(lease))) throw error;
      await write();
    }
  }

  /** Waits, and tells whether the probe of this version of the lease is still requested. */
  async #mayTryAgain({ metadata: { name, resourceVersion } }: RequestedProbe): Promise<boolean> {
    await this.#deps.clock.sleep(RETRY_MS);
    return this.#requested.get(name)?.metadata.resourceVersion === resourceVersion;
  }
}

function stateFor(macs: readonly string[], expected: readonly string[]): ProbeResult {
  const taken = macs.find((mac) => !expected.includes(mac));
  if (taken !== undefined) return { taken };
  return macs.length > 0 ? 'self' : 'free';
}
