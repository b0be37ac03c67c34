import { isBeingDeleted } from '../../api/meta.js';
import { controllingVmi } from '../../api/pod.js';
import { ArpAnswers } from '../node/arp-answers.js';
import type { KubeletPod } from '../node/pod.js';
import type { GuestNetworks } from '../node/sandbox-networks.js';
import { hasEnded, type Vmi } from '../node/vmi/virtual-machine-instance.js';
import type { RealNode } from './real-node.js';

/** Its sidecar, a restartable init container, which writes the guest's console into a log. */
const SIDECAR = 'guest-console-log';

/**
 * QEMU announces a guest that begins to run, so that bridges and neighbours find it at its new port. Without that, they send its frames to the
 * source of a migration until it sends something itself.
 */
const ANNOUNCE = `
ip -4 -oneline address show | while read -r _ interface _ address _; do
  [ "$interface" = lo ] || busybox arping -q -U -c 1 -I "$interface" "\${address%/*}"
done`;

/** No guest runs at the source after a migration. If its kernel still answered, bridges would learn the old port again. */
const SILENCE = `
ip -oneline link show | while IFS=': @' read -r _ interface _; do
  case "$interface" in lo | eth0) ;; *) ip link set "$interface" down ;; esac
done`;

/** Launcher pods on real nodes. No guest runs in them: a launcher ends when its guest would have ended or moved away. */
export class Launchers implements GuestNetworks {
  readonly #nodes: ReadonlyMap<string, RealNode>;
  readonly #answers = new ArpAnswers((launcher, script) => this.#runIn(launcher, script + ANNOUNCE));

  constructor(nodes: readonly RealNode[]) {
    this.#nodes = new Map(nodes.map((node) => [node.name, node]));
  }

  async followGuest(vmi: Vmi, launcher: KubeletPod | undefined): Promise<void> {
    await this.#answers.follow(vmi, launcher);
    await this.endWithGuest(vmi, launcher);
  }

  /**
   * Ends a launcher whose guest has ended or moved away. Those of a VMI that is being deleted are left to virt-controller and kubelet. Two that
   * end a launcher may meet: kubelet then cancels its first request to stop the sidecar, and containerd sends no second SIGTERM (its source says
   * "Skipping the sending of signal"). The pod would stay for its 60 s.
   */
  async endWithGuest(vmi: Vmi, launcher: KubeletPod | undefined): Promise<void> {
    if (isBeingDeleted(vmi)) return;
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

  async detachGuest(launcher: KubeletPod, { status }: Vmi): Promise<void> {
    const { completed, sourcePod } = status?.migrationState ?? {};
    if (completed !== true || launcher.metadata.name !== sourcePod) return;
    await this.#runIn(launcher, SILENCE).catch(() => undefined); // its containers have ended
  }

  attachGuest(): Promise<void> {
    return Promise.resolve();
  }

  async #runIn(pod: KubeletPod, script: string): Promise<void> {
    const node = this.#nodes.get(pod.spec?.nodeName ?? '');
    if (node?.isOn === true) await node.runInPod(pod, 'sh', '-ec', script);
  }

  /**
   * Sends SIGTERM to the containers of a launcher, as virt-handler asks its virt-launcher to end. kubelet ends the sidecar: it would start that
   * again, and a container that starts at that moment may lose kubelet's SIGTERM, so that the pod stays for its whole grace period.
   */
  async #end(node = '', namespace: string, pod = ''): Promise<void> {
    const machine = this.#nodes.get(node);
    if (!machine?.isOn || pod === '') return;
    for (const container of await machine.containers('container', { namespace, name: pod }, SIDECAR))
      await machine.killContainer(container, 'SIGTERM').catch(() => undefined); // it has ended already
  }
}
