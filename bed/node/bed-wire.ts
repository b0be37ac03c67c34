import type { Pod } from '../../api/pod.js';
import { join } from 'node:path';
import { cniArgs } from '../network/multus.js';
import type { AttachedPod, PodNetworks } from '../network/pod-networks.js';
import type { InterfaceState } from '../network/wire-events.js';
import type { WireLocation, Wire } from '../network/wire.js';

/** A direct CNI call, without Multus. */
export interface PluginCall {
  readonly verb: 'ADD' | 'DEL' | 'CHECK' | 'GC' | 'STATUS' | 'VERSION';
  /** The config on the plugin's standard input. */
  readonly config: object;
  /** Name of the binary; `holdfast` by default. */
  readonly plugin?: string;
  /** The pod for CNI_ARGS. Its sandbox is the default for container and namespace. */
  readonly pod?: Pod;
  readonly containerId?: string;
  readonly netns?: string;
  readonly interfaceName?: string;
}

/** @see https://www.cni.dev/docs/spec/#section-5-result-types */
export interface PluginResult {
  readonly exitCode: number;
  /** The plugin's output, parsed as JSON; undefined if it printed nothing. */
  readonly answer: unknown;
}

interface BedWireOptions {
  readonly wire: Wire;
  readonly networks: PodNetworks;
  readonly cniBin: string;
  /** Makes the kubelets check their sandboxes. */
  readonly resync: () => void;
}

/** Gives tests access to the network namespaces of pods, and changes sandboxes without the kubelet. */
export class BedWire {
  /** For pings, watches and hosts that are not pods. */
  readonly wire: Wire;
  readonly networks: PodNetworks;
  readonly #options: BedWireOptions;

  constructor(options: BedWireOptions) {
    this.wire = options.wire;
    this.networks = options.networks;
    this.#options = options;
  }

  /** The sandbox of a pod. @throws {Error} if it has none */
  sandboxOf(pod: Pod): AttachedPod {
    const found = this.networks.find(pod.metadata.uid ?? '');
    if (!found) throw new Error(`pod ${pod.metadata.name} has no sandbox`);
    return found;
  }

  /** The network namespace of a pod, for instance for pings. @throws {Error} if the pod has no sandbox */
  locationOf(pod: Pod): WireLocation {
    return this.sandboxOf(pod).location;
  }

  /** An interface of a pod; undefined if it has none of that name. */
  async interfaceOf(pod: Pod, name: string): Promise<InterfaceState | undefined> {
    return (await this.wire.interfaces(this.locationOf(pod))).find((one) => one.name === name);
  }

  /** The addresses of an interface, with prefix lengths and without link-local ones. */
  async addressesOf(pod: Pod, interfaceName: string): Promise<string[]> {
    const found = await this.interfaceOf(pod, interfaceName);
    return (found?.addresses ?? []).filter(({ linkLocal }) => !linkLocal).map(({ address }) => address);
  }

  /** Stops the sandbox of a running pod regularly, with CNI DEL. The kubelet creates another one. */
  async restartSandbox(pod: Pod): Promise<void> {
    await this.networks.detach(pod);
    this.#options.resync();
  }

  /**
   * Makes the kubelet create a second sandbox of a running pod, while the first one stays connected.
   * @returns calls CNI DEL for the old one and removes it
   */
  async replaceSandbox(pod: Pod): Promise<() => Promise<void>> {
    return this.#afterwards(pod, await this.networks.abandonSandbox(pod));
  }

  /**
   * Removes the sandbox of a running pod without CNI DEL. The kubelet creates another one.
   * @returns calls CNI DEL for the old one, as after the reboot of a node
   */
  async loseSandbox(pod: Pod): Promise<() => Promise<void>> {
    return this.#afterwards(pod, await this.networks.dropSandbox(pod));
  }

  /** Removes the sandboxes of all pods of a node at once. @returns calls CNI DEL for all of them */
  async reboot(pods: readonly Pod[]): Promise<() => Promise<void>> {
    const ends = await Promise.all(pods.map((pod) => this.loseSandbox(pod)));
    return async () => {
      await Promise.all(ends.map((end) => end()));
    };
  }

  /** Calls a plugin inside a node, as a runtime does. */
  async callPlugin(node: string, call: PluginCall): Promise<PluginResult> {
    const { verb, config, plugin = 'holdfast', pod, interfaceName } = call;
    const { containerId, netns } = { ...this.networks.find(pod?.metadata.uid ?? ''), ...call };
    const variables: Record<string, string | undefined> = {
      CNI_COMMAND: verb,
      CNI_PATH: this.#options.cniBin,
      CNI_CONTAINERID: containerId,
      CNI_NETNS: netns,
      CNI_IFNAME: interfaceName,
      CNI_ARGS: pod && cniArgs(pod, containerId ?? ''),
    };
    const env = Object.fromEntries(Object.entries(variables).flatMap(([key, value]) => (value ? [[key, value]] : [])));
    const command = { command: join(this.#options.cniBin, plugin), env, stdin: JSON.stringify(config) };
    const { exitCode, stdout } = await this.wire.run(`node/${node}`, command);
    return { exitCode, answer: stdout.trim() === '' ? undefined : JSON.parse(stdout) };
  }

  #afterwards(pod: Pod, old: AttachedPod | undefined): () => Promise<void> {
    this.#options.resync();
    return async () => {
      if (old) await this.networks.deleteSandbox(pod, old);
    };
  }
}
