import { setTimeout as pause } from 'node:timers/promises';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { Pod } from '../../api/pod.js';
import { KUBEVIRT_NAMESPACE } from '../../bed/control-plane/kubevirt.js';
import type { BedWithHoldfast } from '../../bed/environment.js';
import { creationReview } from '../../bed/holdfast/review.js';
import { clientAs } from '../../bed/story/users/service-account.js';
import type { Story } from '../../bed/story/story.js';
import type { Client } from '../../kube/client.js';
import { Informer } from '../../kube/informers/informer.js';
import { IPAM_CLAIMS, PODS } from '../../kube/resources.js';

/** A network that only the other tenant's namespace may use, by an administrator's pool. */
export const VICTIM_NETWORK = { name: 'prod', cidr: '10.99.0.0/20' };
/** A claim without an address after this time counts as refused. */
const GIVE_UP_MS = 60_000;
const PAUSE_MS = 50;
const VM_NETWORK = 'data';

/** The latencies of a tenant, in ms. */
export interface VictimLatencies {
  readonly claims: number[];
  readonly admissions: number[];
  refused: number;
}

/** A tenant who starts VMs and cares for nothing else. */
export class Victim {
  readonly #story: Story;
  readonly #virtController: Client;
  readonly #launcher: Pod;
  readonly #claims: Informer<IPAMClaim>;
  #waiting: { readonly claim: string; readonly resolve: () => void } | undefined;
  #vms = 0;

  private constructor(story: Story, virtController: Client, launcher: Pod) {
    this.#story = story;
    this.#virtController = virtController;
    this.#launcher = launcher;
    this.#claims = new Informer(story.client, IPAM_CLAIMS, { namespace: story.namespace });
    this.#claims.onChange(({ object: { metadata, status } }) => {
      if (metadata.name === this.#waiting?.claim && status?.ips?.length === 1) this.#waiting.resolve();
    });
    this.#claims.start();
  }

  /** @param vms how many VMs the tenant has already, which an attack may wake */
  static async begin(bed: BedWithHoldfast, story: Story, vms: number): Promise<Victim> {
    const { name, cidr } = VICTIM_NETWORK;
    await story.addresses.createPool(name, { network: name, subnets: [{ cidr }], namespaces: [story.namespace] });
    await story.network('blue', { network: name, subnets: [] });
    const names = Array.from({ length: vms }, (_, n) => `old-${n}`);
    for (const vm of names) await story.createVm(vm, { [VM_NETWORK]: 'blue' }, { running: false });
    await story.runVm('running', { [VM_NETWORK]: 'blue' });
    const [launcher] = await story.launchers('running');
    const { request } = creationReview(launcher!, 'bench') as { request: { object: Pod } };
    const account = { namespace: KUBEVIRT_NAMESPACE, name: 'kubevirt-controller' };
    return new Victim(story, await clientAs(bed, account), request.object);
  }

  /** Measures one claim after the other, and one admission after the other, until the signal aborts. */
  async measure(signal: AbortSignal): Promise<VictimLatencies> {
    const found: VictimLatencies = { claims: [], admissions: [], refused: 0 };
    const repeat = async (times: number[], run: () => Promise<void>) => {
      while (!signal.aborted) {
        const began = performance.now();
        try {
          await run();
        } catch {
          found.refused++;
        }
        times.push(performance.now() - began);
        await pause(PAUSE_MS);
      }
    };
    await Promise.all([repeat(found.claims, () => this.#claim()), repeat(found.admissions, () => this.#admit())]);
    return found;
  }

  async stop(): Promise<void> {
    await Promise.all([this.#claims.stop(), this.#virtController.transport.close()]);
  }

  /** @throws {Error} if the claim of a new VM gets no address in time */
  async #claim(): Promise<void> {
    const name = `new-${this.#vms++}`;
    const late = new AbortController();
    const ready = new Promise<void>((resolve) => (this.#waiting = { claim: `${name}.${VM_NETWORK}`, resolve }));
    await this.#story.createVm(name, { [VM_NETWORK]: 'blue' }, { running: false });
    const limit = pause(GIVE_UP_MS, 'late', { signal: late.signal }).catch(() => 'ended');
    const end = await Promise.race([ready, limit]);
    late.abort();
    await this.#story.deleteVm(name, 'Background');
    if (end === 'late') throw new Error(`${name} has no address`);
  }

  /** Creates a launcher without storing it: the API server asks the webhook anyway. */
  async #admit(): Promise<void> {
    const { metadata, ...rest } = this.#launcher;
    await this.#virtController.create(PODS, { metadata: { ...metadata, name: `${metadata.name}-x` }, ...rest }, { dryRun: true }); // oxfmt-ignore
  }
}
