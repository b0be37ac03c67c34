import { randomBytes } from 'node:crypto';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../../api/kubevirt.js';
import { isTerminal, type Pod } from '../../api/pod.js';
import { networkStatuses } from '../../api/network-status.js';
import { podInterfaceName } from '../../api/pod-interface.js';
import type { Client } from '../../kube/client.js';
import {
  KUBEVIRTS,
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  PODS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
} from '../../kube/resources.js';
import type { Environment } from '../environment.js';
import { AddressStory } from './addresses.js';
import { claimNames, ClaimStory, references, waitForClaims } from './claims.js';
import { type StoryEvent, waitForEvent } from './events.js';
import { removeNamespaces } from './cleanup.js';
import { MigrationStory } from './migrations.js';
import { type NetworkOptions, putNetwork } from './networks.js';
import { Tenant } from './tenant.js';
import * as vm from './vm.js';
import { SERVICE_ACCOUNTS } from '../bed/service-accounts.js';
import { until, untilValue } from '../bed/wait.js';

type NadByNetwork = Readonly<Record<string, string>>;
type VmExtras = Pick<vm.VmOptions, 'running' | 'evictionStrategy' | 'macs' | 'annotations'>;

/** The namespace of one test, with the actions of a user in it. Runs on any cluster. */
export class Story {
  readonly namespace: string;
  readonly client: Client;
  readonly claims: ClaimStory;
  readonly migrations: MigrationStory;
  readonly addresses: AddressStory;
  readonly #environment: Environment;
  readonly #otherNamespaces: string[] = [];
  #tenant: Tenant | undefined;

  private constructor(environment: Environment, namespace: string) {
    this.#environment = environment;
    this.client = environment.client;
    this.namespace = namespace;
    this.claims = new ClaimStory(this.client, namespace);
    this.migrations = new MigrationStory(this.client, namespace);
    this.addresses = new AddressStory(environment, namespace);
  }

  static async begin(environment: Environment, namespace = randomName()): Promise<Story> {
    await createNamespace(environment.client, namespace);
    return new Story(environment, namespace);
  }

  /** Deletes all objects that were created. */
  async end(): Promise<void> {
    await this.#tenant?.close();
    await removeNamespaces(this.client, [this.namespace, ...this.#otherNamespaces]);
    await this.addresses.end();
  }

  async otherNamespace(): Promise<string> {
    const name = `${this.namespace}-other`;
    this.#otherNamespaces.push(name);
    await createNamespace(this.client, name);
    return name;
  }

  async labelNamespace(labels: Record<string, string | null>): Promise<void> {
    await this.client.patch(NAMESPACES, { name: this.namespace }, { type: 'merge', body: { metadata: { labels } } });
  }

  async tenant(): Promise<Tenant> {
    this.#tenant ??= await Tenant.create(this.#environment, this.namespace);
    return this.#tenant;
  }

  async network(name: string, options: NetworkOptions = {}): Promise<void> {
    await putNetwork(this.client, name, { namespace: this.namespace, ...options });
  }

  async removeNetwork(name: string): Promise<void> {
    await this.client.delete(NETWORK_ATTACHMENT_DEFINITIONS, this.ref(name));
  }

  createVm(name: string, networks: NadByNetwork, extras: VmExtras = {}): Promise<VirtualMachine> {
    return this.client.create(
      VIRTUAL_MACHINES,
      vm.vmManifest({ name, namespace: this.namespace, networks, ...extras }),
    );
  }

  createVmi(name: string, networks: NadByNetwork): Promise<VirtualMachineInstance> {
    const manifest = vm.vmiManifest({ name, namespace: this.namespace, networks });
    return this.client.create(VIRTUAL_MACHINE_INSTANCES, manifest);
  }

  waitRunning(name: string): Promise<VirtualMachineInstance> {
    return vm.waitRunning(this.client, this.ref(name));
  }

  async start(name: string): Promise<VirtualMachineInstance> {
    await vm.callSubresource(this.client, this.ref(name), 'start');
    return this.waitRunning(name);
  }

  async stop(name: string): Promise<void> {
    await vm.callSubresource(this.client, this.ref(name), 'stop');
    await until(`VMI ${name} to be gone`, async () => (await this.#vmi(name)) === undefined, { timeoutMs: 60_000 });
  }

  /** Restarts a VM and waits for the new VMI. */
  async restart(name: string): Promise<VirtualMachineInstance> {
    const before = await this.waitRunning(name);
    await vm.callSubresource(this.client, this.ref(name), 'restart');
    return this.waitReplaced(name, before);
  }

  /** Waits until a VMI with another UID than `before` runs. */
  waitReplaced(name: string, before: VirtualMachineInstance): Promise<VirtualMachineInstance> {
    const isOther = (vmi: VirtualMachineInstance) =>
      vmi.metadata.uid !== before.metadata.uid && vmi.status?.phase === 'Running';
    return vm.waitForVmi(this.client, this.ref(name), 'to be replaced and run', isOther);
  }

  async deleteVm(name: string, propagationPolicy: vm.DeletionPropagation): Promise<void> {
    await this.client.delete(VIRTUAL_MACHINES, this.ref(name), { propagationPolicy });
  }

  async deleteVmi(name: string, propagationPolicy: vm.DeletionPropagation = 'Background'): Promise<void> {
    await this.client.delete(VIRTUAL_MACHINE_INSTANCES, this.ref(name), { propagationPolicy });
  }

  /** Waits until VM, VMI and launchers are gone. */
  waitGone(name: string): Promise<void> {
    return vm.waitGone(this.client, this.ref(name));
  }

  async waitVmObjectGone(name: string): Promise<void> {
    const isGone = async () => (await this.client.find(VIRTUAL_MACHINES, this.ref(name))) === undefined;
    await until(`VM object ${name} to be gone`, isGone, { timeoutMs: 60_000 });
  }

  /** Waits until KubeVirt has deleted the launcher, which may still terminate. */
  async waitBeingDeleted(name: string): Promise<void> {
    await until(`the launcher of ${name} to be terminating`, async () =>
      (await this.launchers(name)).some((pod) => pod.metadata.deletionTimestamp !== undefined),
    );
  }

  launchers(name: string): Promise<Pod[]> {
    return vm.launchers(this.client, this.ref(name));
  }

  async waitLaunchersGone(name: string): Promise<void> {
    await until(`the launchers of ${name} to be gone`, async () => (await this.launchers(name)).length === 0, {
      timeoutMs: 60_000,
    });
  }

  /** The claims that each running launcher references, by interface. */
  async references(name: string): Promise<Record<string, string>[]> {
    return (await this.launchers(name)).map(references);
  }

  /** Deletes the launcher while the guest runs. */
  async killLauncher(name: string): Promise<void> {
    const [pod] = await this.launchers(name);
    if (pod === undefined) throw new Error(`${name} has no launcher`);
    await this.client.delete(PODS, this.ref(pod.metadata.name));
  }

  plugInterface(name: string, network: string, nad: string): Promise<void> {
    return vm.addInterface(this.client, this.ref(name), { name: network, nad });
  }

  unplugInterface(name: string, network: string): Promise<void> {
    return vm.removeInterface(this.client, this.ref(name), network);
  }

  /** Waits until the guest has the interface. */
  async waitAttached(name: string, network: string): Promise<void> {
    const has = (vmi: VirtualMachineInstance) =>
      vmi.status?.interfaces?.some((one) => one.name === network && one.infoSource?.includes('multus-status')) === true;
    await vm.waitForVmi(this.client, this.ref(name), `to have ${network}`, has);
  }

  /** Waits until KubeVirt has removed the interface from VMI and VM. */
  async waitDetached(name: string, network: string): Promise<void> {
    await untilValue(
      `${network} to be gone from VM ${name}`,
      () => this.client.get(VIRTUAL_MACHINES, this.ref(name)),
      ({ spec }) => spec?.template?.spec?.networks?.every((one) => one.name !== network) === true,
    );
  }

  /** Waits until no running launcher has the interface in its networks annotation. */
  async waitElementGone(name: string, network: string): Promise<void> {
    const asked = (pod: Pod) =>
      pod.metadata.annotations?.['k8s.v1.cni.cncf.io/networks']?.includes(podInterfaceName(network));
    await until(`the element of ${network} to be gone`, async () => !(await this.launchers(name)).some(asked));
    const [pod] = await this.launchers(name);
    if (pod === undefined || isTerminal(pod)) throw new Error(`${name} has no launcher`);
    if (!networkStatuses(pod).some((status) => status.interface === podInterfaceName(network))) {
      throw new Error(`${network} is missing in network-status too, so a hotplug controller is active`);
    }
  }

  removeFromSpec(name: string, network: string): Promise<void> {
    return vm.removeFromSpec(this.client, this.ref(name), network);
  }

  requestAddresses(name: string, addresses: Readonly<Record<string, readonly string[]>>): Promise<void> {
    return vm.requestAddresses(this.client, this.ref(name), addresses);
  }

  swapNetwork(name: string, network: string, nad: string): Promise<void> {
    return vm.swapNetwork(this.client, this.ref(name), network, nad);
  }

  async setVmiFinalizer(name: string, finalizer: string, present: boolean): Promise<void> {
    const vmi = await this.client.get(VIRTUAL_MACHINE_INSTANCES, this.ref(name));
    const others = (vmi.metadata.finalizers ?? []).filter((one) => one !== finalizer);
    const body = { metadata: { finalizers: present ? [...others, finalizer] : others } };
    await this.client.patch(VIRTUAL_MACHINE_INSTANCES, this.ref(name), { type: 'merge', body });
  }

  claimNames(): Promise<string[]> {
    return claimNames(this.client, this.namespace);
  }

  waitForClaims(names: readonly string[]): Promise<void> {
    return waitForClaims(this.client, this.namespace, names);
  }

  waitForClaim(name: string): Promise<IPAMClaim> {
    return this.claims.get(name);
  }

  /** Waits for an event about the VM or VMI of this name. */
  waitForEvent(name: string, reason: string, words?: RegExp): Promise<StoryEvent> {
    return waitForEvent(this.client, this.ref(name), reason, words);
  }

  /**
   * Waits until the controller has handled all earlier events: creates another VM, waits for its claim, deletes the VM, and waits
   * until the claim is gone.
   */
  async waitControllerIdle(): Promise<void> {
    await this.network('canary');
    await this.createVm('canary', { canary: 'canary' }, { running: false });
    await this.waitForClaim('canary.canary');
    await this.deleteVm('canary', 'Background');
    await this.claims.waitGone('canary.canary');
  }

  /**
   * Migrates a VM and waits for the end.
   * @param meanwhile runs while both launchers exist
   */
  async migrate(name: string, end: 'Succeeded' | 'Failed', meanwhile?: () => Promise<void>): Promise<void> {
    const migration = await this.migrations.start(name);
    await meanwhile?.();
    const phase = await this.migrations.waitEnded(migration);
    if (phase !== end) throw new Error(`migration ${migration} of ${name} ended as ${phase}, not as ${end}`);
    await this.migrations.waitForOneLauncher(name);
  }

  /** Whether KubeVirt has the feature gate. */
  async hasFeatureGate(gate: string): Promise<boolean> {
    const { items } = await this.client.list(KUBEVIRTS);
    return items.some((one) => one.spec?.configuration?.developerConfiguration?.featureGates?.includes(gate));
  }

  ref(name: string): { namespace: string; name: string } {
    return { namespace: this.namespace, name };
  }

  #vmi(name: string): Promise<VirtualMachineInstance | undefined> {
    return this.client.find(VIRTUAL_MACHINE_INSTANCES, this.ref(name));
  }
}

function randomName(): string {
  return `story-${randomBytes(4).toString('hex')}`;
}

/** Creates a namespace and waits for its service account: before that the API server rejects pods. */
async function createNamespace(client: Client, name: string): Promise<void> {
  await client.create(NAMESPACES, { metadata: { name } });
  const account = { namespace: name, name: 'default' };
  // Kubernetes' controllers reconnect late after the API server was down
  await until('the namespace to have its service account', () => client.find(SERVICE_ACCOUNTS, account), {
    timeoutMs: 90_000,
  });
}
