import { join } from 'node:path';
import type { KubeObject } from '../../api/meta.js';
import { containerdArgs, formatCniArgs } from '../../test/container-runtimes.js';
import { Semaphore } from './semaphore.js';
import type { CommandResult, Wire } from './wire.js';

/** The sandbox that the runtime creates for a pod before it calls CNI. */
export interface Sandbox {
  /** 64 hexadecimal digits. */
  readonly containerId: string;
  /** A path that CNI takes as CNI_NETNS. */
  readonly netns: string;
}

/** A CNI result (version 1.0.0 of the specification, §5), of the pod's own network. */
export interface CniResult {
  readonly cniVersion: string;
  readonly interfaces?: readonly { readonly name: string; readonly mac?: string; readonly sandbox?: string }[];
  readonly ips?: readonly { readonly address: string; readonly gateway?: string; readonly interface?: number }[];
}

/** Names of interfaces that a hotplug has changed. */
export interface InterfaceChanges {
  readonly attached: readonly string[];
  readonly detached: readonly string[];
}

/** The error of a CNI plugin. */
export class CniError extends Error {
  override readonly name = 'CniError';
  /** Error code of the CNI specification (§5.2); 999 if the plugin returned none. */
  readonly code: number;

  constructor(verb: string, code: number, message: string) {
    super(`CNI ${verb} failed with ${code}: ${message}`);
    this.code = code;
  }
}

/** Returns CNI_ARGS for the sandbox of a pod. */
export type RuntimeArgs = (pod: KubeObject, containerId: string) => string;

export interface MultusOptions {
  readonly wire: Wire;
  readonly node: string;
  /** The node's folder. */
  readonly dir: string;
  /** Subnet of the pod network on this node, for instance 10.244.1.0/24. */
  readonly podSubnet: string;
  /** The folder of all CNI plugins. */
  readonly cniBin: string;
  /** The kubeconfig of Multus. */
  readonly kubeconfig: string;
  readonly logDir: string;
  /** CNI_ARGS of the runtime; those of containerd by default. */
  readonly argsOf?: RuntimeArgs | undefined;
  /** Number of plugins that may run at once on this node. It is limited because Multus waits only 2.5 s for the API server. */
  readonly concurrency: number;
}

/** Multus on one node, called as by a container runtime. Its state is in the node's `/var/lib/cni`. */
export class Multus {
  readonly #options: MultusOptions;
  readonly #config: string;
  readonly #slots: Semaphore;

  constructor(options: MultusOptions) {
    this.#options = options;
    this.#config = JSON.stringify(multusConfig(options));
    this.#slots = new Semaphore(options.concurrency);
  }

  /** Attaches all networks and writes network-status. @throws {CniError} after which DEL must be called */
  async add(pod: KubeObject, sandbox: Sandbox): Promise<CniResult> {
    return parse('ADD', await this.#call('ADD', pod, sandbox)) as CniResult;
  }

  /** Detaches all networks. Idempotent. @throws {CniError} */
  async del(pod: KubeObject, sandbox: Sandbox): Promise<void> {
    parse('DEL', await this.#call('DEL', pod, sandbox));
  }

  /** Checks the pod network only, as Multus does. @throws {CniError} if it has changed since ADD */
  async check(pod: KubeObject, sandbox: Sandbox): Promise<void> {
    parse('CHECK', await this.#call('CHECK', pod, sandbox));
  }

  /**
   * Adapts the interfaces and network-status of a running pod to its networks annotation, as the dynamic networks controller
   * does. An error with one interface does not stop the work on the others.
   * @throws {CniError}
   */
  async hotplug(pod: KubeObject, sandbox: Sandbox): Promise<InterfaceChanges> {
    return parse('hotplug', await this.#call('hotplug', pod, sandbox)) as InterfaceChanges;
  }

  #call(verb: string, pod: KubeObject, sandbox: Sandbox): Promise<CommandResult> {
    const { wire, node, cniBin, logDir, argsOf = cniArgs } = this.#options;
    const command = join(wire.binaries, verb === 'hotplug' ? 'hotplug' : 'multus');
    const { containerId, netns } = sandbox;
    const env = {
      CNI_COMMAND: verb,
      CNI_CONTAINERID: containerId,
      CNI_NETNS: netns,
      CNI_IFNAME: 'eth0',
      CNI_ARGS: argsOf(pod, containerId),
      CNI_PATH: cniBin,
      PATH: process.env.PATH ?? '',
      // Each call leaves a log of klog there, besides Multus' own.
      TMPDIR: logDir,
    };
    return this.#slots.run(() => wire.run(`node/${node}`, { command, env, stdin: this.#config }));
  }
}

/** Uses `delegates` because CHECK does nothing with `clusterNetwork`. */
function multusConfig({ node, dir, podSubnet, cniBin, kubeconfig, logDir }: MultusOptions): object {
  const ipam = { type: 'host-local', ranges: [[{ subnet: podSubnet }]] };
  const podNetwork = { type: 'bridge', bridge: 'cni0', isGateway: true, isDefaultGateway: true, ipam };
  return {
    cniVersion: '1.0.0',
    name: 'multus-cni-network',
    type: 'multus',
    kubeconfig,
    binDir: cniBin,
    confDir: join(dir, 'net.d'),
    logFile: join(logDir, `multus-${node}.log`),
    logLevel: 'verbose',
    logToStderr: false,
    delegates: [{ cniVersion: '1.0.0', name: 'cluster-net', plugins: [podNetwork] }],
  };
}

/** CNI_ARGS of containerd. */
export function cniArgs({ metadata }: KubeObject, containerId: string): string {
  const { namespace = '', name, uid = '' } = metadata;
  return formatCniArgs(containerdArgs({ namespace, name, uid, containerId }));
}

/**
 * CNI_ARGS of which delegates see what they see below Multus' daemon: no value that differs from Multus' own. The release that upgrades begin with
 * refuses containerd's IgnoreUnknown=1 beside Multus' true.
 */
export function argsWithoutIgnoreUnknown({ metadata }: KubeObject, containerId: string): string {
  const { namespace = '', name, uid = '' } = metadata;
  const pairs = containerdArgs({ namespace, name, uid, containerId });
  return formatCniArgs(pairs.filter(([key]) => key !== 'IgnoreUnknown'));
}

/** Ignores standard error, which contains the log of client-go. */
function parse(verb: string, { exitCode, stdout, stderr }: CommandResult): unknown {
  if (exitCode === 0) return stdout.trim() === '' ? {} : JSON.parse(stdout);
  let failure: { code?: number; msg?: string; details?: string };
  try {
    failure = JSON.parse(stdout) as typeof failure;
  } catch {
    failure = { msg: `exit code ${exitCode}, ${stdout}${stderr}`.slice(-2_000) };
  }
  const words = [failure.msg, failure.details].filter((text) => text !== undefined && text !== '');
  throw new CniError(verb, failure.code ?? 999, words.join('; '));
}
