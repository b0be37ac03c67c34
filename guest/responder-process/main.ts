import { joinKey } from '../../api/meta.js';
import { EventRecorder } from '../../kube/events.js';
import { messageOf } from '../../kube/errors.js';
import type { WatchSpec } from '../../kube/informers/informers.js';
import { CONFIG_MAPS, type ConfigMap } from '../../kube/resources.js';
import type { Component, ProcessContext } from '../../process/context.js';
import { PeriodicTask } from '../../process/periodic-task.js';
import type { ResponderConfig } from '../../process/config/guest-config.js';
import { indexNameOf, statementOf } from '../responder-tables/published-table.js';
import { Freshness, readIndexLive } from './freshness.js';
import { LeaseProbes } from './lease-probes.js';
import { createResponderMetrics } from './metrics.js';
import { ReceivedTable, type StoredTable, storedTableOf } from './received-table.js';
import { Reports } from './reports.js';
import { type HelperObservation, HelperSession } from './session.js';

const NAME = 'holdfast-responder';
/** Between two messages about the age of the table. */
const REFRESH_MS = 1_000;
/** The pause between two reads of the index, as a part of the longest time for which a table may be used: a late one must not make it stale. */
const READ_PART = 1 / 5;

/** Answers the guests of one pool: gives holdfast-packets the table that `guest` publishes. All responders of a pool do the same. */
export function createResponder(context: ProcessContext, config: ResponderConfig): Component {
  return new ResponderProcess(context, config);
}

class ResponderProcess implements Component {
  readonly name = 'responder';
  readonly #context: ProcessContext;
  readonly #config: ResponderConfig;
  /** The name of the StatefulSet, and of the table. */
  readonly #set: string;
  readonly #tables;
  readonly #freshness: Freshness;
  readonly #session: HelperSession;
  readonly #events: EventRecorder;
  readonly #reports: Reports;
  readonly #probes: LeaseProbes;
  readonly #metrics;
  readonly #refresh: PeriodicTask;
  readonly #reads: PeriodicTask;
  readonly #stopping = new AbortController();
  #table: ReceivedTable | undefined;
  /** Why the newest table is not used. */
  #problem: string | undefined;
  #isReading = false;
  /** Ends when no table is read. */
  #reading: Promise<void> | undefined;

  constructor(shared: ProcessContext, config: ResponderConfig) {
    const context = { ...shared, log: shared.log.child({ part: this.name }) };
    const { client, clock, random, log, metrics, informers } = context;
    const { maxStalenessMs, pool, podName, namespace } = config;
    this.#context = context;
    this.#config = config;
    this.#set = podName.slice(0, podName.lastIndexOf('-'));
    const watched: WatchSpec<ConfigMap, StoredTable> = {
      resource: CONFIG_MAPS,
      namespace,
      fieldSelector: `metadata.name=${this.#set}`,
      transform: storedTableOf,
    };
    this.#tables = informers.get(watched);
    this.#freshness = new Freshness(this.#set, maxStalenessMs, clock);
    const reads = { client, clock, log, freshness: this.#freshness };
    this.#metrics = createResponderMetrics(metrics, pool);
    this.#events = new EventRecorder({ client, component: NAME, clock, random, log, metrics: metrics.kube });
    this.#session = new HelperSession({
      socket: config.packetSocket,
      clock,
      random,
      log,
      onReport: (report) => this.#receive(report),
    });
    this.#reports = new Reports({ events: this.#events, clock, session: this.#session });
    this.#probes = new LeaseProbes({ client, session: this.#session, metrics: this.#metrics, clock, log });
    this.#refresh = new PeriodicTask({ clock, pauseMs: REFRESH_MS, run: () => this.#tick() });
    const pauseMs = maxStalenessMs * READ_PART;
    this.#reads = new PeriodicTask({
      clock,
      pauseMs,
      run: async (signal) => {
        const table = this.#object();
        // without a table, nothing says which index has it
        if (table !== undefined) await readIndexLive(indexNameOf(table), reads, signal);
      },
    });
    this.#tables.onChange(() => this.#changed());
  }

  async start(): Promise<void> {
    const { informers } = this.#context;
    informers.start();
    this.#session.start();
    await informers.synced();
    this.#reads.start();
    this.#refresh.start();
  }

  ready(): string | undefined {
    return this.#context.informers.ready() ?? this.#tableProblem() ?? this.#session.problem;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([this.#refresh.stop(), this.#reads.stop(), this.#session.stop(), this.#reading]);
    await this.#events.flush();
  }

  #changed(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    this.#reading = this.#readTables();
  }

  /** Reads until the newest table is used. */
  async #readTables(): Promise<void> {
    for (let last = ''; ;) {
      const object = this.#object();
      const version = object?.metadata.resourceVersion ?? '';
      // without an object, nothing is known that could replace the last table, which gets older
      if (object === undefined || version === last || this.#stopping.signal.aborted) {
        // in the turn of the comparison, so that a later change is read
        this.#isReading = false;
        return;
      }
      last = version;
      try {
        await this.#use(object);
        this.#problem = undefined;
      } catch (error) {
        this.#problem = messageOf(error);
        this.#context.log.error({ configmap: this.#set }, `the table cannot be read: ${this.#problem}`);
      }
    }
  }

  async #use(object: StoredTable): Promise<void> {
    const { podName, guestInterface } = this.#config;
    const table = await ReceivedTable.read(object);
    const { configs, probes, entries, leftOut } = table.header;
    const { [podName]: config } = configs;
    if (config === undefined) throw new TypeError(`it has no configuration for ${podName}`);
    this.#table = table;
    this.#freshness.use(statementOf(object));
    const freshForMs = () => this.#freshness.forMs();
    this.#session.set({ config: { ...config, interface: guestInterface }, table, freshForMs });
    this.#probes.request(probes);
    this.#metrics.table(entries, leftOut);
  }

  async #tick(): Promise<void> {
    const freshMs = this.#freshness.forMs();
    if (freshMs > 0) this.#session.refresh();
    this.#metrics.fresh(freshMs);
    this.#metrics.connected(this.#session.problem === undefined);
    if (this.#table === undefined) return;
    this.#reports.checkRouter(this.#table.header.pool);
    await this.#reports.report(this.#table);
  }

  #receive(report: HelperObservation): void {
    if (report.kind === 'counts') {
      this.#metrics.counted(report.counts);
      return;
    }
    const { observation } = report;
    this.#metrics.observed(observation.kind);
    this.#reports.observed(observation);
  }

  #object(): StoredTable | undefined {
    return this.#tables.cache.get(joinKey(this.#config.namespace, this.#set));
  }

  #tableProblem(): string | undefined {
    if (this.#table !== undefined && this.#object() !== undefined) return this.#problem;
    return (
      this.#problem ??
      `ConfigMap ${joinKey(this.#config.namespace, this.#set)} with the table of AddressPool ${this.#config.pool} does not exist: look at the log of guest`
    );
  }
}
