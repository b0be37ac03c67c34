import type { KubeObject } from '../../../api/meta.js';
import type { Client } from '../../../kube/client.js';
import type { Random } from '../../../kube/clock.js';
import type { CniResult, Multus, InterfaceChanges, Sandbox } from './multus.js';
import { segmentsOf } from './segments.js';
import type { WireLocation, Wire } from './wire.js';

/** A pod with its networks. */
export interface AttachedPod extends Sandbox {
  readonly node: string;
  /** What the wire knows the pod as: for pings, watches and the guest's part. */
  readonly location: WireLocation;
  /** Of the pod's own network; the others are in network-status. */
  readonly result: CniResult;
}

type BoundPod = KubeObject & { spec?: { nodeName?: string } };

interface PodNetworksOptions {
  readonly wire: Wire;
  /** For reading networks. */
  readonly client: Client;
  /** By node. */
  readonly multus: ReadonlyMap<string, Multus>;
  readonly random: Random;
}

/**
 * The networks of all pods of a bed: what kubelet and containerd do with CNI. Calls for one pod (by its UID) follow each
 * other, whoever makes them; calls for different pods run at once. All are idempotent: call them again after a failure, and
 * whenever you no longer know what was done.
 */
export class PodNetworks {
  readonly #options: PodNetworksOptions;
  readonly #attached = new Map<string, AttachedPod>();
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(options: PodNetworksOptions) {
    this.#options = options;
  }

  /** Undefined for a pod that has no networks, or not yet. */
  find(uid: string): AttachedPod | undefined {
    return this.#attached.get(uid);
  }

  /** By UID of the pod. */
  all(): ReadonlyMap<string, AttachedPod> {
    return this.#attached;
  }

  /**
   * Makes a sandbox and has Multus attach all networks, which also writes network-status. For a pod that has its networks,
   * nothing: a second ADD in a living sandbox would destroy it.
   * @param pod bound to a node of the bed
   * @throws {CniError} after which nothing is left: the next call tries again in a new sandbox
   */
  attach(pod: BoundPod): Promise<AttachedPod> {
    return this.#inTurn(pod, async (uid) => {
      const before = this.#attached.get(uid);
      if (before) return before;
      const node = pod.spec?.nodeName ?? '';
      const multus = this.#multusOn(node);
      const containerId = this.#newContainerId();
      await this.#joinSegments(node, pod);
      const sandbox = { containerId, netns: await this.#options.wire.addPod(node, containerId) };
      try {
        const result = await multus.add(pod, sandbox);
        const attached: AttachedPod = { ...sandbox, node, location: `pod/${containerId}`, result };
        this.#attached.set(uid, attached);
        return attached;
      } catch (error) {
        await this.#remove(multus, pod, sandbox);
        throw error;
      }
    });
  }

  /**
   * Has Multus detach all networks and removes the sandbox. For a pod without networks, nothing.
   * @throws {CniError} the sandbox stays then, as with a real runtime: call again
   */
  detach(pod: KubeObject): Promise<void> {
    return this.#inTurn(pod, async (uid) => {
      const attached = this.#attached.get(uid);
      if (!attached) return;
      await this.deleteSandbox(pod, attached);
      this.#attached.delete(uid);
    });
  }

  /**
   * Removes the sandbox without a word to any plugin, as when a node loses its power.
   * @returns what `end` takes, for a CNI DEL that comes afterwards
   */
  dropSandbox(pod: KubeObject): Promise<AttachedPod | undefined> {
    return this.#inTurn(pod, async (uid) => {
      const attached = this.#attached.get(uid);
      if (attached) await this.#options.wire.removePod(attached.containerId);
      this.#attached.delete(uid);
      return attached;
    });
  }

  /** Leaves the sandbox as it is and forgets it: the next `attach` makes another one beside it. @returns what `end` takes */
  abandonSandbox(pod: KubeObject): Promise<AttachedPod | undefined> {
    return this.#inTurn(pod, (uid) => {
      const attached = this.#attached.get(uid);
      this.#attached.delete(uid);
      return Promise.resolve(attached);
    });
  }

  /** CNI DEL for a sandbox that was dropped or abandoned, and its removal. Idempotent. @throws {CniError} */
  async deleteSandbox(pod: KubeObject, sandbox: AttachedPod): Promise<void> {
    await this.#multusOn(sandbox.node).del(pod, sandbox);
    await this.#options.wire.removePod(sandbox.containerId);
  }

  /**
   * Makes the interfaces and network-status of a living pod follow its networks annotation. Reads the pod itself.
   * @returns what changed; nothing for a pod without networks
   * @throws {CniError} when something could not be done; the rest is done
   */
  hotplug(pod: KubeObject): Promise<InterfaceChanges> {
    return this.#inTurn(pod, async (uid) => {
      const attached = this.#attached.get(uid);
      if (!attached) return { attached: [], detached: [] };
      await this.#joinSegments(attached.node, pod);
      return this.#multusOn(attached.node).hotplug(pod, attached);
    });
  }

  /** CNI CHECK of the pod's own network. @throws {CniError} */
  check(pod: KubeObject): Promise<void> {
    return this.#inTurn(pod, async (uid) => {
      const attached = this.#attached.get(uid);
      if (!attached) throw new Error(`pod ${pod.metadata.name} has no networks`);
      await this.#multusOn(attached.node).check(pod, attached);
    });
  }

  async #remove(multus: Multus, pod: KubeObject, sandbox: Sandbox): Promise<void> {
    try {
      await multus.del(pod, sandbox);
    } catch {
      // the reason for the failure of ADD says more
    }
    await this.#options.wire.removePod(sandbox.containerId);
  }

  async #joinSegments(node: string, pod: KubeObject): Promise<void> {
    const segments = await segmentsOf(this.#options.client, pod);
    await Promise.all(segments.map(({ name, as }) => this.#options.wire.join(node, name, as)));
  }

  #multusOn(node: string): Multus {
    const multus = this.#options.multus.get(node);
    if (!multus) throw new Error(`there is no node "${node}" on the wire`);
    return multus;
  }

  #newContainerId(): string {
    const digit = () => Math.floor(this.#options.random() * 16).toString(16);
    return Array.from({ length: 64 }, digit).join('');
  }

  async #inTurn<T>(pod: KubeObject, act: (uid: string) => Promise<T>): Promise<T> {
    const { uid = '' } = pod.metadata;
    const turn = (this.#turns.get(uid) ?? Promise.resolve()).then(() => act(uid));
    const settled = turn.then(
      () => undefined,
      () => undefined,
    );
    this.#turns.set(uid, settled);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(uid) === settled) this.#turns.delete(uid);
    }
  }
}
