import type { KubeObject } from '../../api/meta.js';
import type { Client } from '../../kube/client.js';
import type { Random } from '../../kube/clock.js';
import type { CniResult, Multus, InterfaceChanges, Sandbox } from './multus.js';
import { segmentsOf } from './segments.js';
import type { WireLocation, Wire } from './wire.js';

/** A pod with its networks. */
export interface AttachedPod extends Sandbox {
  readonly node: string;
  /** The pod's network namespace. */
  readonly location: WireLocation;
  /** The result for the pod network; those of the other networks are in network-status. */
  readonly result: CniResult;
}

type BoundPod = KubeObject & { spec?: { nodeName?: string } };

interface PodNetworksOptions {
  readonly wire: Wire;
  /** Reads NADs. */
  readonly client: Client;
  /** By node name. */
  readonly multus: ReadonlyMap<string, Multus>;
  readonly random: Random;
}

/**
 * The networks of all pods of a bed, as managed by kubelet and containerd. Calls for one pod (by UID) run one after the other,
 * calls for different pods in parallel. All calls are idempotent and can be repeated after a failure.
 */
export class PodNetworks {
  readonly #options: PodNetworksOptions;
  readonly #attached = new Map<string, AttachedPod>();
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(options: PodNetworksOptions) {
    this.#options = options;
  }

  /** Undefined if the pod has no networks yet. */
  find(uid: string): AttachedPod | undefined {
    return this.#attached.get(uid);
  }

  /** By UID of the pod. */
  all(): ReadonlyMap<string, AttachedPod> {
    return this.#attached;
  }

  /**
   * Creates a sandbox and calls Multus, which attaches all networks and writes network-status. Does nothing if the pod has its
   * networks, because a second ADD would destroy the sandbox.
   * @param pod bound to a node of the bed
   * @throws {CniError} after the sandbox was removed; the next call creates another one
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
   * Calls Multus to detach all networks, and removes the sandbox. Does nothing for a pod without networks.
   * @throws {CniError} the sandbox stays then, as with a real runtime, and the call has to be repeated
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
   * Removes the sandbox without calling a plugin, as in a power failure.
   * @returns the argument of `deleteSandbox`, for a later CNI DEL
   */
  dropSandbox(pod: KubeObject): Promise<AttachedPod | undefined> {
    return this.#inTurn(pod, async (uid) => {
      const attached = this.#attached.get(uid);
      if (attached) await this.#options.wire.removePod(attached.containerId);
      this.#attached.delete(uid);
      return attached;
    });
  }

  /** Forgets the sandbox without removing it. The next `attach` creates another one. @returns the argument of `deleteSandbox` */
  abandonSandbox(pod: KubeObject): Promise<AttachedPod | undefined> {
    return this.#inTurn(pod, (uid) => {
      const attached = this.#attached.get(uid);
      this.#attached.delete(uid);
      return Promise.resolve(attached);
    });
  }

  /** Calls CNI DEL for a sandbox that was dropped or abandoned, and removes it. Idempotent. @throws {CniError} */
  async deleteSandbox(pod: KubeObject, sandbox: AttachedPod): Promise<void> {
    await this.#multusOn(sandbox.node).del(pod, sandbox);
    await this.#options.wire.removePod(sandbox.containerId);
  }

  /**
   * Adapts the interfaces and network-status of a running pod to its networks annotation, which it reads live.
   * @returns the changed interfaces; none for a pod without networks
   * @throws {CniError} if one change failed; the others are done
   */
  hotplug(pod: KubeObject): Promise<InterfaceChanges> {
    return this.#inTurn(pod, async (uid) => {
      const attached = this.#attached.get(uid);
      if (!attached) return { attached: [], detached: [] };
      await this.#joinSegments(attached.node, pod);
      return this.#multusOn(attached.node).hotplug(pod, attached);
    });
  }

  /** Calls CNI CHECK for the pod network. @throws {CniError} */
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
      // the error of ADD is more useful
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
