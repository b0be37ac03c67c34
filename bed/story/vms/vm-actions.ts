import type { VirtualMachine, VirtualMachineInstance, VmiInterfaceStatus } from '../../../api/kubevirt.js';
import { REQUESTED_ADDRESSES_ANNOTATION } from '../../../api/names.js';
import { type Pod, isTerminal, networkStatuses, podInterfaceName } from '../../../api/pod.js';
import type { Client } from '../../../kube/client.js';
import { isConflict } from '../../../kube/errors.js';
import { PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../../../kube/resources.js';
import { until, untilValue } from '../../processes/wait.js';
import { references } from '../claims.js';
import * as vm from './vm.js';

type NadByNetwork = Readonly<Record<string, string>>;
type VmExtras = Omit<vm.VmOptions, 'name' | 'namespace' | 'networks'>;

/** The actions of a user on the VMs of one namespace, and waits for their effects. */
export class VmActions {
  readonly client: Client;
  readonly namespace: string;

  constructor(client: Client, namespace: string) {
    this.client = client;
    this.namespace = namespace;
  }

  ref(name: string): { namespace: string; name: string } {
    return { namespace: this.namespace, name };
  }

  createVm(name: string, networks: NadByNetwork, extras: VmExtras = {}): Promise<VirtualMachine> {
    return this.client.create(
      VIRTUAL_MACHINES,
      vm.vmManifest({ name, namespace: this.namespace, networks, ...extras }),
    );
  }

  /** Creates a VM and waits until it runs. */
  async runVm(name: string, networks: NadByNetwork, extras?: VmExtras): Promise<VirtualMachineInstance> {
    await this.createVm(name, networks, extras);
    return this.waitRunning(name);
  }

  createVmi(name: string, networks: NadByNetwork): Promise<VirtualMachineInstance> {
    const manifest = vm.vmiManifest({ name, namespace: this.namespace, networks });
    return this.client.create(VIRTUAL_MACHINE_INSTANCES, manifest);
  }

  waitRunning(name: string): Promise<VirtualMachineInstance> {
    return vm.waitRunning(this.client, this.ref(name));
  }

  async start(name: string): Promise<VirtualMachineInstance> {
    await this.requestStart(name);
    return this.waitRunning(name);
  }

  /** Starts a VM and does not wait until it runs. */
  requestStart(name: string): Promise<void> {
    return vm.callSubresource(this.client, this.ref(name), 'start');
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
    return this.change(name, ({ spec }) => {
      spec.template.spec.networks.push(vm.secondaryNetwork(network, nad));
      spec.template.spec.domain.devices.interfaces.push({ name: network, bridge: {} });
    });
  }

  /** Asks KubeVirt to unplug an interface of a running VM. */
  unplugInterface(name: string, network: string): Promise<void> {
    return this.change(name, ({ spec }) => {
      for (const one of spec.template.spec.domain.devices.interfaces) if (one.name === network) one.state = 'absent';
    });
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

  /** Removes a network and its interface from a VM's template without unplugging it. */
  removeFromSpec(name: string, network: string): Promise<void> {
    return this.change(name, ({ spec }) => {
      const { networks, domain } = spec.template.spec;
      spec.template.spec.networks = networks.filter((one) => one.name !== network);
      domain.devices.interfaces = domain.devices.interfaces.filter((one) => one.name !== network);
    });
  }

  /** Renames a network and its interface in a VM's template. */
  renameNetwork(name: string, from: string, to: string): Promise<void> {
    return this.change(name, ({ spec }) => {
      const { networks, domain } = spec.template.spec;
      for (const one of [...networks, ...domain.devices.interfaces]) if (one.name === from) one.name = to;
    });
  }

  /** Requests addresses in the VM's template: network in the VM → addresses. */
  requestAddresses(name: string, addresses: Readonly<Record<string, readonly string[]>>): Promise<void> {
    const requested = { [REQUESTED_ADDRESSES_ANNOTATION]: JSON.stringify(addresses) };
    return this.change(name, ({ spec: { template } }) => {
      template.metadata = { ...template.metadata, annotations: { ...template.metadata?.annotations, ...requested } };
    });
  }

  /** Writes the MAC address of an interface into a VM's template. */
  setMacAddress(name: string, network: string, mac: string): Promise<void> {
    return this.change(name, ({ spec }) => {
      for (const one of spec.template.spec.domain.devices.interfaces) if (one.name === network) one.macAddress = mac;
    });
  }

  /** Connects an interface of a VM's template to another NAD. */
  swapNetwork(name: string, network: string, nad: string): Promise<void> {
    return this.change(name, ({ spec }) => {
      for (const one of spec.template.spec.networks) if (one.name === network) one.multus = { networkName: nad };
    });
  }

  /** Reads a VM, changes it, and writes it back. Retries if another writer was faster. */
  async change(name: string, change: (vm: vm.ChangeableVm) => void): Promise<void> {
    await until(`VM ${name} is changed`, async () => {
      const found = await this.client.get(VIRTUAL_MACHINES, this.ref(name));
      change(found as vm.ChangeableVm);
      try {
        await this.client.replace(VIRTUAL_MACHINES, found);
        return true;
      } catch (error) {
        if (isConflict(error)) return false;
        throw error;
      }
    });
  }

  /** The guest's MAC address on a network of its VM, as KubeVirt reports it. */
  async guestMac(name: string, network: string): Promise<string> {
    const reported = ({ status }: VirtualMachineInstance) => {
      const interfaces: (VmiInterfaceStatus & { mac?: string })[] = status?.interfaces ?? [];
      return interfaces.find((one) => one.name === network)?.mac;
    };
    const says = `to say which MAC address ${network} has`;
    return reported(await vm.waitForVmi(this.client, this.ref(name), says, (vmi) => !!reported(vmi)))!;
  }

  async setVmiFinalizer(name: string, finalizer: string, present: boolean): Promise<void> {
    const vmi = await this.client.get(VIRTUAL_MACHINE_INSTANCES, this.ref(name));
    const others = (vmi.metadata.finalizers ?? []).filter((one) => one !== finalizer);
    const body = { metadata: { finalizers: present ? [...others, finalizer] : others } };
    await this.client.patch(VIRTUAL_MACHINE_INSTANCES, this.ref(name), { type: 'merge', body });
  }

  #vmi(name: string): Promise<VirtualMachineInstance | undefined> {
    return this.client.find(VIRTUAL_MACHINE_INSTANCES, this.ref(name));
  }
}
