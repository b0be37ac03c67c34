import { join } from 'node:path';
import type { AgentConfig } from '../../process/config/agent-config.js';
import { EventRecorder } from '../../kube/events.js';
import type { Component, ProcessContext } from '../../process/context.js';
import { PeriodicTask } from '../../process/periodic-task.js';
import { createPersistentIPsGate } from '../../cluster/persistent-ips-gate.js';
import { type KubeVirtControllerSource, watchKubeVirt } from '../../cluster/kubevirt-controller.js';
import { ClaimedAddresses } from './claims/claimed-addresses.js';
import { Dispatcher } from './dispatcher.js';
import { PluginFolder, createPluginFolderMetrics } from './installation/plugin-folder.js';
import { PodLeases } from './leases/pod-leases.js';
import { createAgentMetrics } from './metrics.js';
import { PendingDeleteRetry, PendingDeletes } from './pending-deletes.js';
import { GUARDS_FOLDER } from './guard/guard-notes.js';
import { GuardWatch } from './guard/guard-watch.js';
import { createGuardMetrics } from './guard/metrics.js';
import { PortGuard } from './guard/port-guard.js';
import { AttachmentResolver } from './attachment.js';
import { NodePods } from './node-pods.js';
import { ADMIN_POOL_WATCH, PoolLookup } from './pool-lookup.js';
import { Sandboxes } from './sandboxes.js';
import { SocketServer } from './server.js';
import { Verbs } from './verbs.js';

const NAME = 'agent';
/** Names inside `--run-dir`. The plugin uses the same ones. */
const SOCKET_NAME = 'agent.sock';
const PENDING_DELETES_FOLDER = 'deletions';
const SANDBOXES_FOLDER = 'sandboxes';
/** As often as the counters are written. */
const GUARD_PAUSE_MS = 10_000;
const SOCKET_CHECK_MS = 10_000;

/** Serves the CNI plugin of one node. @param plugins folder of the plugin's binaries; default: the build output */
export function createAgent(
  shared: ProcessContext,
  config: AgentConfig,
  plugins = join(import.meta.dirname, 'cni'),
): Component {
  return new Agent({ ...shared, log: shared.log.child({ part: NAME, node: config.nodeName }) }, config, plugins);
}

class Agent implements Component {
  readonly name = NAME;
  readonly #context: ProcessContext;
  readonly #config: AgentConfig;
  /** Absent if no directory of CNI plugins is configured. */
  readonly #folder: PluginFolder | undefined;
  readonly #pods: NodePods;
  readonly #lookup: PoolLookup;
  readonly #kubevirt: KubeVirtControllerSource;
  readonly #claims: ClaimedAddresses;
  readonly #leases: PodLeases;
  readonly #replay: PendingDeleteRetry;
  readonly #server: SocketServer;
  readonly #events: EventRecorder;
  readonly #guardWatch: PeriodicTask;
  readonly #socketWatch: PeriodicTask;
  #fail: (error: unknown) => void = () => undefined;

  constructor(context: ProcessContext, config: AgentConfig, plugins: string) {
    const { informers, clock, log, metrics } = context;
    const { nodeName } = config;
    this.#context = context;
    this.#config = config;
    this.#folder = watchPluginFolder(context, config, plugins);
    const { maxStalenessMs } = config;
    this.#lookup = new PoolLookup({ ...context, adminPools: informers.get(ADMIN_POOL_WATCH), maxStalenessMs });
    this.#pods = new NodePods({ ...context, nodeName });
    const sandboxes = new Sandboxes({ folder: join(config.runDir, SANDBOXES_FOLDER), clock, log });
    const parts = { ...context, config, nodeName, pods: this.#pods, lookup: this.#lookup, sandboxes };
    this.#kubevirt = watchKubeVirt(informers, config.policiesNamespace);
    const gate = createPersistentIPsGate(config, informers);
    this.#claims = new ClaimedAddresses({ ...parts, gate, kubevirt: this.#kubevirt });
    this.#leases = new PodLeases(parts);
    const notes = new PendingDeletes({ folder: join(config.runDir, PENDING_DELETES_FOLDER), clock, log });
    const agentMetrics = createAgentMetrics(metrics);
    const dispatcher = new Dispatcher({
      verbs: this.#createVerbs(notes, sandboxes),
      pendingDeletes: notes,
      onPendingDelete: () => this.#replay.wake(),
      workers: config.requestWorkers,
      addTimeoutMs: config.addTimeoutMs,
      clock,
      log,
      metrics: agentMetrics,
    });
    this.#replay = new PendingDeleteRetry({
      ...context,
      pendingDeletes: notes,
      retryDelete: (note, signal) => dispatcher.retryDelete(note, signal),
      metrics: agentMetrics,
    });
    this.#server = new SocketServer({
      path: join(config.runDir, SOCKET_NAME),
      answer: (text, signal) => dispatcher.answer(text, signal),
      clock,
      log,
    });
    this.#events = new EventRecorder({ ...context, component: `holdfast-${NAME}`, metrics: metrics.kube });
    this.#guardWatch = this.#watchGuards(this.#events);
    this.#socketWatch = new PeriodicTask({ clock, pauseMs: SOCKET_CHECK_MS, run: () => this.#checkSocket() });
  }

  async start(): Promise<void> {
    this.#context.informers.start();
    // if another agent serves the node, this one must do nothing
    await this.#server.listen();
    this.#claims.start();
    this.#leases.start();
    this.#replay.start();
    this.#guardWatch.start();
    this.#socketWatch.start();
    await this.#folder?.start();
  }

  onFatal(fail: (error: unknown) => void): void {
    this.#fail = fail;
  }

  ready(): string | undefined {
    return this.#context.informers.ready() ?? this.#server.problem() ?? this.#folder?.problem();
  }

  notice(): string | undefined {
    return this.#kubevirt.controller().problem;
  }

  async stop(): Promise<void> {
    await this.#socketWatch.stop();
    await this.#folder?.stop();
    await this.#server.stop();
    await this.#replay.stop();
    await Promise.all([this.#claims.stop(), this.#leases.stop(), this.#guardWatch.stop()]);
    await this.#events.flush();
  }

  /** A removed folder stays mounted in the container, so only a restart, for which the runtime creates it again, lets the agent listen again. */
  #checkSocket(): void {
    const problem = this.#server.problem();
    if (problem !== undefined) this.#fail(new Error(problem));
  }

  #watchGuards(events: EventRecorder): PeriodicTask {
    const { clock, metrics } = this.#context;
    const folder = join(this.#config.runDir, GUARDS_FOLDER);
    const { nodeName } = this.#config;
    const watch = new GuardWatch({ ...this.#context, folder, nodeName, events, metrics: createGuardMetrics(metrics) });
    return new PeriodicTask({ clock, pauseMs: GUARD_PAUSE_MS, run: (signal) => watch.round(signal) });
  }

  #createVerbs(notes: PendingDeletes, sandboxes: Sandboxes): Verbs {
    const { client, clock, informers } = this.#context;
    const { multusNamespace, nodeName } = this.#config;
    const lookup = this.#lookup;
    return new Verbs({
      pods: this.#pods,
      resolver: new AttachmentResolver({ pods: this.#pods, lookup, clock, multusNamespace }),
      claims: this.#claims,
      leases: this.#leases,
      lookup,
      pendingDeletes: notes,
      sandboxes,
      guard: new PortGuard({ client, lookup, nodeName }),
      informers,
    });
  }
}

function watchPluginFolder(
  { clock, log, metrics }: ProcessContext,
  { cniBinDir: path, cniBinHostDir: hostPath = path, cniRequiredPlugins: required }: AgentConfig,
  plugins: string,
): PluginFolder | undefined {
  if (path === undefined || hostPath === undefined) return undefined;
  return new PluginFolder({
    from: plugins,
    directory: { path, hostPath },
    arch: process.arch,
    required,
    clock,
    log,
    metrics: createPluginFolderMetrics(metrics),
  });
}
