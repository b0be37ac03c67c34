import type { KubeletPod } from './pod.js';
import { uidOf } from './pod.js';
import { hasEnded, type Vmi } from './vmi/virtual-machine-instance.js';

/** As the kernel has it by default. */
const ANSWER_ARP = 'for file in /proc/sys/net/ipv4/conf/*/arp_ignore; do echo 0 > "$file"; done';

/**
 * ARP for guests whose addresses the kernel of the launcher has. virt-handler hands an interface over to the guest, which answers whatever
 * the NAD's `tuning` says about the launcher; here the launcher begins to answer when its guest runs in it.
 */
export class ArpAnswers {
  /** Runs a script in the network namespace of a pod. */
  readonly #run: (launcher: KubeletPod, script: string) => Promise<unknown>;
  /** The launcher that answers, and its interfaces, by UID of the VMI. */
  readonly #answering = new Map<string, string>();

  constructor(run: (launcher: KubeletPod, script: string) => Promise<unknown>) {
    this.#run = run;
  }

  async follow(vmi: Vmi, launcher: KubeletPod | undefined): Promise<void> {
    const { uid = '' } = vmi.metadata;
    if (hasEnded(vmi)) this.#answering.delete(uid);
    if (!launcher || vmi.status?.phase !== 'Running') return;
    const interfaces = (vmi.status.interfaces ?? []).map(({ name }) => name);
    const answering = [uidOf(launcher), ...interfaces].join(' ');
    if (this.#answering.get(uid) === answering) return;
    await this.#run(launcher, ANSWER_ARP);
    this.#answering.set(uid, answering);
  }
}
