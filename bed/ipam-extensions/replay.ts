import jsonpatch, { type Operation, type ReplaceOperation } from 'fast-json-patch';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { type VirtualMachine, type VirtualMachineInstance, secondaryNetworks } from '../../api/kubevirt.js';
import { isBeingDeleted, joinKey, objectKey, splitKey } from '../../api/meta.js';
import { CLAIM_VM_LABEL } from '../../api/names.js';
import { parseNetworkConfig } from '../../api/networks/network-attachment.js';
import { networkSelectionsOf } from '../../api/networks/network-selection.js';
import type { Pod } from '../../api/pod.js';
import { ipamExtensionsClaimName } from '../../api/vm-claims.js';
import { Client } from '../../kube/client.js';
import { systemClock } from '../../kube/clock.js';
import { ControllerLoop } from '../../kube/controller-loop.js';
import { loadCredentials } from '../../kube/transport/credentials.js';
import { isAlreadyExists } from '../../kube/errors.js';
import { Informer } from '../../kube/informers/informer.js';
import { silentLogger } from '../../kube/log.js';
import {
  IPAM_CLAIMS,
  NETWORK_ATTACHMENT_DEFINITIONS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
} from '../../kube/resources.js';
import { Transport } from '../../kube/transport/transport.js';
import { WorkQueue } from '../../kube/workqueue.js';
import type { Bed } from '../bed.js';
import { IPAM_EXTENSIONS_ACCOUNT } from './installation.js';
import { PatchServer } from './patch-server.js';
import { type WriteTemplates, fill, readTemplates } from './recording.js';

/** Plays the recorded writes of kubevirt/ipam-extensions for all workloads, with its service account. */
export class Replay {
  readonly #client: Client;
  readonly #templates: WriteTemplates;
  readonly #vms: Informer<VirtualMachine>;
  readonly #vmis: Informer<VirtualMachineInstance>;
  readonly #claims: Informer<IPAMClaim>;
  readonly #queue = new WorkQueue({ clock: systemClock, random: Math.random });
  readonly #loop: ControllerLoop;
  /** VMs whose removal is to be handled, by key. Their VMIs may remain. */
  readonly #removedVms = new Set<string>();
  #webhook: PatchServer | undefined;

  private constructor(client: Client, templates: WriteTemplates) {
    this.#client = client;
    this.#templates = templates;
    this.#vms = new Informer(client, VIRTUAL_MACHINES);
    this.#vmis = new Informer(client, VIRTUAL_MACHINE_INSTANCES);
    this.#claims = new Informer(client, IPAM_CLAIMS);
    this.#loop = new ControllerLoop({
      name: 'workloads',
      queue: this.#queue,
      workers: 2,
      sync: (key) => this.#sync(key),
      log: silentLogger,
      clock: systemClock,
    });
  }

  static async start(bed: Bed): Promise<Replay> {
    const { namespace, name } = IPAM_EXTENSIONS_ACCOUNT;
    const kubeconfig = await bed.serviceAccountKubeconfig(namespace, name);
    const client = new Client(new Transport(await loadCredentials({ kubeconfig })));
    const replay = new Replay(client, await readTemplates());
    const informers = [replay.#vms, replay.#vmis, replay.#claims];
    for (const informer of informers) informer.start();
    await Promise.all(informers.map((informer) => informer.synced()));
    replay.#vms.onChange(({ type, object }) => {
      if (type === 'removed') replay.#removedVms.add(objectKey(object));
    });
    for (const informer of [replay.#vms, replay.#vmis]) {
      informer.onChange(({ object }) => replay.#queue.add(objectKey(object)));
    }
    // a claim may be created before its workload is known to be gone
    replay.#claims.onChange(({ object: { metadata } }) => {
      replay.#queue.add(joinKey(metadata.namespace, metadata.labels?.[CLAIM_VM_LABEL] ?? ''));
    });
    replay.#loop.start();
    replay.#webhook = await PatchServer.open(bed, (pod, vmi) => replay.#patchLauncher(pod, vmi));
    return replay;
  }

  get webhookUrl(): string {
    return this.#webhook?.url ?? '';
  }

  async stop(): Promise<void> {
    await this.#webhook?.close();
    await Promise.all([this.#vms.stop(), this.#vmis.stop(), this.#claims.stop()]);
    await this.#loop.stop();
    await this.#client.transport.close();
  }

  async #sync(key: string): Promise<void> {
    const [vm, vmi] = [this.#vms.cache.get(key), this.#vmis.cache.get(key)];
    if (vm === undefined && this.#removedVms.has(key)) {
      await this.#release(key);
      this.#removedVms.delete(key);
    }
    if (this.#isOver(vm, vmi)) await this.#release(key);
    else if (vmi !== undefined && !isBeingDeleted(vmi)) await this.#create(vm, vmi);
  }

  #isOver(vm: VirtualMachine | undefined, vmi: VirtualMachineInstance | undefined): boolean {
    if (vmi !== undefined) return false;
    return vm === undefined || isBeingDeleted(vm);
  }

  async #create(vm: VirtualMachine | undefined, vmi: VirtualMachineInstance): Promise<void> {
    const { namespace = '', name } = vmi.metadata;
    const owner = vm ?? vmi;
    for (const { network, nad } of await this.#networksOf(vmi)) {
      const claim = ipamExtensionsClaimName(name, network);
      if (this.#claims.cache.get(joinKey(namespace, claim)) !== undefined) continue;
      const template = this.#templates.creation[vm === undefined ? 'VirtualMachineInstance' : 'VirtualMachine'];
      const values = { claim, namespace, name, uid: owner.metadata.uid ?? '', network: nad.cniNetwork };
      try {
        await this.#client.create(IPAM_CLAIMS, fill(template, values) as IPAMClaim);
      } catch (error) {
        if (!isAlreadyExists(error)) throw error;
      }
    }
  }

  async #release(key: string): Promise<void> {
    const { namespace, name } = splitKey(key);
    const claims = this.#claims.cache.list().filter(({ metadata }) => {
      return metadata.namespace === namespace && metadata.labels?.[CLAIM_VM_LABEL] === name;
    });
    for (const claim of claims) {
      if (claim.metadata.finalizers === undefined) continue;
      const change = fill(this.#templates.release, {}) as Operation[];
      await this.#client.replace(IPAM_CLAIMS, jsonpatch.applyPatch(structuredClone(claim), change).newDocument);
    }
  }

  /** The networks of a VMI whose NAD allows persistent addresses. */
  async #networksOf(vmi: VirtualMachineInstance) {
    const networks = secondaryNetworks(vmi.spec, vmi.metadata.namespace ?? '');
    const found = await Promise.all(
      networks.map(async ({ name, nad }) => {
        const object = await this.#client.find(NETWORK_ATTACHMENT_DEFINITIONS, nad);
        const config = object && parseNetworkConfig(object);
        const isPersistent = config?.ok === true && config.network.allowPersistentIPs;
        return isPersistent ? [{ network: name, nad: { ...nad, cniNetwork: config.network.name } }] : [];
      }),
    );
    return found.flat();
  }

  /** The last network of a NAD counts for all of its elements. */
  async #patchLauncher(pod: Pod, vmiName: string): Promise<ReplaceOperation<string>[]> {
    const namespace = pod.metadata.namespace ?? '';
    const vmi = await this.#client.find(VIRTUAL_MACHINE_INSTANCES, { namespace, name: vmiName });
    if (vmi === undefined) throw new Error(`VMI ${vmiName} does not exist`);
    const networks = new Map(
      (await this.#networksOf(vmi)).map(({ network, nad }) => [joinKey(nad.namespace, nad.name), network]),
    );
    const filled = networkSelectionsOf(pod).map((selection) => {
      const network = networks.get(joinKey(selection.nad.namespace, selection.nad.name));
      if (network === undefined) return undefined;
      const claim = ipamExtensionsClaimName(vmiName, network);
      const values = { claim, namespace, nad: selection.nad.name, interface: selection.interface ?? '' };
      return fill(this.#templates.patch, values) as ReplaceOperation<string>;
    });
    const [first] = filled;
    if (first === undefined || filled.includes(undefined)) return [];
    const elements = filled.flatMap((operation) => JSON.parse(operation?.value ?? '[]') as object[]);
    return [{ ...first, value: JSON.stringify(elements) }];
  }
}
