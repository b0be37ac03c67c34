import { controllingVmi } from '../../api/pod.js';
import type { KubeletPod } from '../node/pod.js';
import type { GuestNetworks } from '../node/sandbox-networks.js';
import { hasEnded, type Vmi } from '../node/virtual-machine-instance.js';
import type { RealNode } from './real-node.js';

/** Of virt-launcher. Beside it, a sidecar writes the guest's console into its log. */
const GUEST_CONTAINER = 'compute';

/** Launcher pods on real nodes. No guest runs in them: a launcher ends when its guest would have ended or moved away. */
export class Launchers implements GuestNetworks {
  readonly #nodes: ReadonlyMap<string, RealNode>;

  constructor(nodes: readonly RealNode[]) {
    this.#nodes = new Map(nodes.map((node) => [node.name, node]));
  }

  async followGuest(vmi: Vmi, launcher: KubeletPod | undefined): Promise<void> {
    const { namespace = '' } = vmi.metadata;
    if (hasEnded(vmi) && launcher && controllingVmi(launcher))
      await this.#end(launcher.spec?.nodeName, namespace, launcher.metadata.name);
    const { completed, failed, sourceNode, sourcePod, targetNode, targetPod } = vmi.status?.migrationState ?? {};
    if (completed === true && failed !== true) await this.#end(sourceNode, namespace, sourcePod);
    if (failed === true) await this.#end(targetNode, namespace, targetPod);
  }

  interfacesOfGuest(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  detachGuest(): Promise<void> {
    return Promise.resolve();
  }

  attachGuest(): Promise<void> {
    return Promise.resolve();
  }

  /**
   * Sends SIGTERM to the container of the guest, as virt-handler asks its virt-launcher to end. kubelet ends the others: it would start them
   * again, and a container that starts at that moment may lose kubelet's SIGTERM, so that the pod stays for its whole grace period.
   */
  async #end(node = '', namespace: string, pod = ''): Promise<void> {
    const machine = this.#nodes.get(node);
    if (!machine?.isOn || pod === '') return;
    for (const container of await machine.containers('container', { namespace, name: pod }, GUEST_CONTAINER))
      await machine.killContainer(container, 'SIGTERM').catch(() => undefined); // it has ended already
  }
}
