import { type VirtualMachineInstance, controllingVm, secondaryNetworks } from '../../../../api/kubevirt.js';
import { isBeingDeleted, objectKey } from '../../../../api/meta.js';
import { type Pod, podInterfaceName } from '../../../../api/pod.js';
import { NAMESPACE, vmReference } from '../../../../test/objects/workload-objects.js';
import { Launchers, statusOf } from './launchers.js';
import { plug, setAbsent, unplug, withoutAbsent } from './spec-edits.js';
import type { SimulatedVm, ClaimsWorld } from './world.js';

export const VM_FINALIZER = 'kubevirt.io/virtualMachineControllerFinalize';
export const VMI_FINALIZER = 'kubevirt.io/foregroundDeleteVirtualMachine';
const MAX_LAUNCHERS = 2;

/** Steps that happen by themselves if there is something to do. */
export const KUBEVIRT_STEPS = [
  'createVmi',
  'adopt',
  'endVmi',
  'finishVm',
  'syncNetworks',
  'createLauncher',
  'deleteLauncher',
  'finishVmi',
  'regenerate',
  'reportInterfaces',
  'dropAbsent',
  'endLauncher',
  'attach',
  'detach',
  'finishMigration',
] as const;
export type KubeVirtStep = (typeof KUBEVIRT_STEPS)[number];

/** KubeVirt for all VMs of a model world. Each step does at most one thing, and returns whether it did. */
export class KubeVirt {
  readonly launchers: Launchers;
  readonly steps: Readonly<Record<KubeVirtStep, () => boolean>>;
  readonly #world: ClaimsWorld;

  constructor(world: ClaimsWorld) {
    this.#world = world;
    const launchers = new Launchers(world);
    this.launchers = launchers;
    this.steps = {
      createVmi: () => this.#vms((vm) => this.#createVmi(vm)),
      adopt: () => this.#vms((vm) => this.#adopt(vm)),
      endVmi: () => this.#vms((vm) => this.#endVmi(vm)),
      finishVm: () => this.#vms((vm) => this.#finishVm(vm)),
      syncNetworks: () => this.#vms((vm) => this.#syncNetworks(vm)),
      createLauncher: () => this.#living((vmi) => launchers.of(vmi).length === 0 && this.#launch(vmi)),
      deleteLauncher: () => this.#vmis((vmi) => isBeingDeleted(vmi) && this.#deleteLauncher(vmi)),
      finishVmi: () => this.#vmis((vmi) => this.#finishVmi(vmi)),
      regenerate: () => this.#living((vmi) => launchers.regenerate(vmi)),
      reportInterfaces: () => this.#vmis((vmi) => this.#reportInterfaces(vmi)),
      dropAbsent: () => this.#living((vmi) => this.#dropAbsent(vmi)),
      endLauncher: () => this.#pods((pod) => isBeingDeleted(pod) && launchers.remove(pod)),
      attach: () => this.#pods((pod) => launchers.attach(pod)),
      detach: () => this.#pods((pod) => launchers.detach(pod)),
      finishMigration: () => this.#vmis((vmi) => this.#endMigration(vmi, 0, 'Succeeded')),
    };
  }

  /** Starts a live migration if a single launcher runs. */
  migrate(): boolean {
    return this.#living((vmi) => {
      const [only, ...others] = this.launchers.of(vmi);
      return only?.status?.phase === 'Running' && others.length === 0 && this.#launch(vmi);
    });
  }

  failMigration(): boolean {
    return this.#vmis((vmi) => this.#endMigration(vmi, 1, 'Failed'));
  }

  /** Ends a launcher without KubeVirt, as the loss of a node does. */
  killLauncher(): boolean {
    const [pod] = this.launchers.running();
    return pod !== undefined && this.launchers.setPhase(pod, 'Failed');
  }

  /** Removes the finalizers of a VMI, as an administrator might: it is gone while its launcher runs. */
  forceDeleteVmi(): boolean {
    return this.#vmis((vmi) => isBeingDeleted(vmi) && this.#dropVmiFinalizers(vmi));
  }

  hasRunningLauncher(vmi: VirtualMachineInstance): boolean {
    return this.launchers.of(vmi).some(({ status }) => status?.phase === 'Running');
  }

  #vms(step: (vm: SimulatedVm) => boolean): boolean {
    return this.#world.list('vms').some(step);
  }

  #vmis(step: (vmi: VirtualMachineInstance) => boolean): boolean {
    return this.#world.list('vmis').some(step);
  }

  #living(step: (vmi: VirtualMachineInstance) => boolean): boolean {
    return this.#vmis((vmi) => !isBeingDeleted(vmi) && vmi.status?.phase !== 'Failed' && step(vmi));
  }

  #pods(step: (pod: Pod) => boolean): boolean {
    return this.#world.list('launchers').some(step);
  }

  #vmiOf(vm: SimulatedVm): VirtualMachineInstance | undefined {
    const vmi = this.#world.get('vmis', objectKey(vm));
    return vmi !== undefined && controllingVm(vmi)?.uid === vm.metadata.uid ? vmi : undefined;
  }

  #createVmi(vm: SimulatedVm): boolean {
    if (isBeingDeleted(vm) || !vm.running || this.#world.get('vmis', objectKey(vm)) !== undefined) return false;
    const { name, namespace = '', uid = '' } = vm.metadata;
    const finalizers = [VM_FINALIZER, VMI_FINALIZER];
    this.#world.create('vmis', {
      metadata: { name, namespace, ownerReferences: [vmReference(uid, name)], finalizers },
      spec: withoutAbsent(vm.spec?.template?.spec ?? {}),
    });
    return true;
  }

  #adopt(vm: SimulatedVm): boolean {
    const vmi = this.#world.get('vmis', objectKey(vm));
    if (isBeingDeleted(vm) || vmi === undefined || isBeingDeleted(vmi)) return false;
    if ((vmi.metadata.ownerReferences ?? []).length > 0) return false;
    this.#world.update('vmis', objectKey(vmi), ({ metadata }) => {
      metadata.ownerReferences = [vmReference(vm.metadata.uid ?? '', metadata.name)];
      metadata.finalizers = [VM_FINALIZER, VMI_FINALIZER];
    });
    return true;
  }

  #endVmi(vm: SimulatedVm): boolean {
    const vmi = this.#vmiOf(vm);
    const orphaning = vm.metadata.finalizers?.includes('orphan') ?? false;
    const ends = isBeingDeleted(vm) ? !orphaning : !vm.running || vmi?.status?.phase === 'Failed';
    if (vmi === undefined || isBeingDeleted(vmi) || !ends) return false;
    this.#world.delete('vmis', objectKey(vmi));
    return true;
  }

  #finishVm(vm: SimulatedVm): boolean {
    const finalizers = vm.metadata.finalizers ?? [];
    const waits = finalizers.includes('orphan') || this.#vmiOf(vm) !== undefined;
    if (!isBeingDeleted(vm) || !finalizers.includes(VM_FINALIZER) || waits) return false;
    this.#world.dropFinalizers('vms', objectKey(vm), VM_FINALIZER);
    return true;
  }

  /** Hotplug, unplug and a live change of the NAD. An interface that is only removed from the VM stays until a restart. */
  #syncNetworks(vm: SimulatedVm): boolean {
    const vmi = this.#vmiOf(vm);
    if (vmi === undefined || isBeingDeleted(vmi) || isBeingDeleted(vm)) return false;
    const before = this.#world.version;
    const wanted = secondaryNetworks(vm.spec?.template?.spec, NAMESPACE);
    this.#world.update('vmis', objectKey(vmi), (copy) => {
      const spec = (copy.spec ??= {});
      for (const { name, nad, isUnplugRequested } of wanted) {
        const known = spec.networks?.find((network) => network.name === name);
        if (known?.multus !== undefined) {
          known.multus.networkName = nad.name;
          setAbsent(spec, name, isUnplugRequested);
        } else if (!isUnplugRequested) plug(spec, name, nad.name);
      }
    });
    return this.#world.version !== before;
  }

  #launch(vmi: VirtualMachineInstance): boolean {
    return this.launchers.of(vmi).length < MAX_LAUNCHERS && this.launchers.create(vmi);
  }

  #deleteLauncher(vmi: VirtualMachineInstance): boolean {
    const pod = this.launchers.of(vmi).find((launcher) => !isBeingDeleted(launcher));
    if (pod === undefined) return false;
    this.#world.delete('launchers', objectKey(pod));
    return true;
  }

  #finishVmi(vmi: VirtualMachineInstance): boolean {
    return isBeingDeleted(vmi) && this.launchers.of(vmi).length === 0 && this.#dropVmiFinalizers(vmi);
  }

  #dropVmiFinalizers(vmi: VirtualMachineInstance): boolean {
    const before = this.#world.version;
    this.#world.dropFinalizers('vmis', objectKey(vmi), VM_FINALIZER, VMI_FINALIZER);
    return this.#world.version !== before;
  }

  #reportInterfaces(vmi: VirtualMachineInstance): boolean {
    const pods = this.#world
      .list('launchers')
      .filter((pod) => pod.metadata.ownerReferences?.[0]?.uid === vmi.metadata.uid);
    const attached = this.launchers
      .of(vmi)
      .slice(0, 1)
      .flatMap((pod) => statusOf(pod).map((entry) => entry.interface));
    const failed = pods.length > 0 && this.launchers.of(vmi).length === 0;
    const before = this.#world.version;
    this.#world.update('vmis', objectKey(vmi), (copy) => {
      const interfaces = secondaryNetworks(copy.spec, NAMESPACE)
        .map(({ name }) => ({ name, podInterfaceName: podInterfaceName(name) }))
        .filter((entry) => attached.includes(entry.podInterfaceName));
      copy.status = { interfaces, ...(failed && { phase: 'Failed' }) };
    });
    return this.#world.version !== before;
  }

  /** Removes an unplugged interface from the VMI's spec, and from the VM's if it is absent there as well. */
  #dropAbsent(vmi: VirtualMachineInstance): boolean {
    const reported = (vmi.status?.interfaces ?? []).map(({ name }) => name);
    const attached = this.launchers.of(vmi).flatMap((pod) => statusOf(pod).map((entry) => entry.interface));
    const names = absentOf(vmi.spec).filter(
      (name) => !reported.includes(name) && !attached.includes(podInterfaceName(name)),
    );
    if (names.length === 0) return false;
    this.#world.update('vmis', objectKey(vmi), (copy) => unplug(copy.spec ?? {}, names));
    const vm = this.#world.get('vms', objectKey(vmi));
    if (vm === undefined) return true;
    const both = absentOf(vm.spec?.template?.spec).filter((name) => names.includes(name));
    this.#world.update('vms', objectKey(vm), (copy) => unplug(copy.spec?.template?.spec ?? {}, both));
    return true;
  }

  /** Ends the launcher at a position: the source of a migration that succeeded, the target of one that failed. */
  #endMigration(vmi: VirtualMachineInstance, position: number, phase: string): boolean {
    const launchers = this.launchers.of(vmi);
    const pod = launchers[position];
    if (launchers.length < 2 || pod === undefined || launchers[1]?.status?.phase !== 'Running') return false;
    return this.launchers.setPhase(pod, phase);
  }
}

function absentOf(spec: VirtualMachineInstance['spec']): string[] {
  return secondaryNetworks(spec, NAMESPACE)
    .filter(({ isUnplugRequested }) => isUnplugRequested)
    .map(({ name }) => name);
}
