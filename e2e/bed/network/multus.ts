import { join } from 'node:path';
import type { KubeObject } from '../../../api/meta.js';
import { Semaphore } from './semaphore.js';
import type { CommandResult, Wire } from './wire.js';

/** What the runtime made for a pod before it asks for networks. */
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

/** Names of interfaces. */
export interface InterfaceChanges {
  readonly attached: readonly string[];
  readonly detached: readonly string[];
}

/** A plugin said no. */
export class CniError extends Error {
  override readonly name = 'CniError';
  /** §5.2 of the specification; 999 where the plugin gave none. */
  readonly code: number;

  constructor(verb: string, code: number, message: string) {
    super(`CNI ${verb} failed with ${code}: ${message}`);
    this.code = code;
  }
}

export interface MultusOptions {
  readonly wire: Wire;
  readonly node: string;
  /** The node's folder. */
  readonly dir: string;
  /** Of the pods' own network on this node, for instance 10.244.1.0/24. */
  readonly podSubnet: string;
  /** The folder of all CNI plugins. */
  readonly cniBin: string;
  /** The one that Multus uses. */
  readonly kubeconfig: string;
  readonly logDir: string;
  /** How many plugins may run at once on this node: Multus gives up on the API server after 2.5 s, busy machine or not. */
  readonly concurrency: number;
}

/** Multus on one node, called as the container runtime calls it. What it keeps is in the node's `/var/lib/cni`. */
export class Multus {
  readonly #options: MultusOptions;
  readonly #config: string;
  readonly #slots: Semaphore;

  constructor(options: MultusOptions) {
    this.#options = options;
    this.#config = JSON.stringify(multusConfig(options));
    this.#slots = new Semaphore(options.concurrency);
  }

  /** Attaches all networks and writes network-status. @throws {CniError} a DEL must follow then */
  async add(pod: KubeObject, sandbox: Sandbox): Promise<CniResult> {
    return parse('ADD', await this.#call('ADD', pod, sandbox)) as CniResult;
  }

  /** Detaches whatever is attached. Idempotent. @throws {CniError} */
  async del(pod: KubeObject, sandbox: Sandbox): Promise<void> {
    parse('DEL', await this.#call('DEL', pod, sandbox));
  }

  /** Looks at the pod's own network: Multus does not look at the others. @throws {CniError} where it is not as it was made */
  async check(pod: KubeObject, sandbox: Sandbox): Promise<void> {
    parse('CHECK', await this.#call('CHECK', pod, sandbox));
  }

  /**
   * Makes the interfaces of a living pod follow its networks annotation, and network-status follow them, as the dynamic
   * networks controller does. What can be done is done even when something else fails.
   * @throws {CniError}
   */
  async hotplug(pod: KubeObject, sandbox: Sandbox): Promise<InterfaceChanges> {
    return parse('hotplug', await this.#call('hotplug', pod, sandbox)) as InterfaceChanges;
  }

  #call(verb: string, pod: KubeObject, sandbox: Sandbox): Promise<CommandResult> {
    const { wire, node, cniBin } = this.#options;
    const command = join(wire.binaries, verb === 'hotplug' ? 'hotplug' : 'multus');
    const env = { CNI_COMMAND: verb, CNI_IFNAME: 'eth0', CNI_PATH: cniBin, PATH: process.env.PATH ?? '' };
    const { containerId, netns } = sandbox;
    const call = {
      command,
      env: { ...env, CNI_CONTAINERID: containerId, CNI_NETNS: netns, CNI_ARGS: cniArgs(pod, containerId) },
      stdin: this.#config,
    };
    return this.#slots.run(() => wire.run(`node/${node}`, call));
  }
}

/** `delegates` and not `clusterNetwork`: with that, CHECK looks at nothing. */
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

/** CNI_ARGS as containerd gives them, in its order. */
export function cniArgs(pod: KubeObject, containerId: string): string {
  const { namespace = '', name, uid = '' } = pod.metadata;
  const args = {
    IgnoreUnknown: 'true',
    K8S_POD_NAMESPACE: namespace,
    K8S_POD_NAME: name,
    K8S_POD_INFRA_CONTAINER_ID: containerId,
    K8S_POD_UID: uid,
  };
  return Object.entries(args)
    .map(([key, value]) => `${key}=${value}`)
    .join(';');
}

/** Standard error is no part of it: it holds what client-go logs. */
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
