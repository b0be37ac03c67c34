import type { VirtualMachine } from '../../../api/kubevirt.js';
import type { KubeObject } from '../../../api/meta.js';
import type { Client } from '../../../kube/client.js';
import type { Resource } from '../../../kube/resource.js';
import { VIRTUAL_MACHINES } from '../../../kube/resources.js';
import { untilValue } from '../../processes/wait.js';

interface ConditionedObject extends KubeObject {
  spec: object;
  status?: { phase?: string; readyToUse?: boolean; complete?: boolean };
}

/** KubeVirt rejects changes of the run strategy while a snapshot is in progress. */
interface LockableVm extends VirtualMachine {
  status?: VirtualMachine['status'] & { snapshotInProgress?: string };
}

const CLONES = kind('clone.kubevirt.io', 'virtualmachineclones', 'VirtualMachineClone');
const SNAPSHOTS = kind('snapshot.kubevirt.io', 'virtualmachinesnapshots', 'VirtualMachineSnapshot');
const RESTORES = kind('snapshot.kubevirt.io', 'virtualmachinerestores', 'VirtualMachineRestore');

function kind(group: string, plural: string, name: string): Resource<ConditionedObject> {
  return { group, version: 'v1beta1', plural, kind: name, namespaced: true };
}

/** Copies VMs of one namespace by KubeVirt's own controllers. */
export class VmCopies {
  readonly #client: Client;
  readonly #namespace: string;

  constructor(client: Client, namespace: string) {
    this.#client = client;
    this.#namespace = namespace;
  }

  /** Clones a VM, and waits until the clone exists. KubeVirt creates it stopped. */
  async clone(source: string, target: string): Promise<void> {
    const name = `clone-to-${target}`;
    const spec = { source: vmReference(source), target: vmReference(target) };
    await this.#create(CLONES, name, spec);
    await this.#waitFor(CLONES, name, ({ status }) => status?.phase === 'Succeeded');
  }

  /** Takes a snapshot of a VM, and waits until it is ready to use and the VM may change again. */
  async snapshot(vm: string, name: string): Promise<void> {
    await this.#create(SNAPSHOTS, name, { source: vmReference(vm) });
    await this.#waitFor(SNAPSHOTS, name, ({ status }) => status?.readyToUse === true);
    await untilValue(
      `VM ${vm} to be unlocked`,
      () => this.#client.get<LockableVm>(VIRTUAL_MACHINES, { namespace: this.#namespace, name: vm }),
      ({ status }) => status?.snapshotInProgress === undefined,
    );
  }

  /** Restores a snapshot to a VM, which must be stopped if it exists, and waits until that is done. */
  async restore(snapshot: string, target: string): Promise<void> {
    const name = `${snapshot}-to-${target}`;
    await this.#create(RESTORES, name, { target: vmReference(target), virtualMachineSnapshotName: snapshot });
    await this.#waitFor(RESTORES, name, ({ status }) => status?.complete === true);
  }

  async #create(resource: Resource<ConditionedObject>, name: string, spec: object): Promise<void> {
    await this.#client.create(resource, { metadata: { namespace: this.#namespace, name }, spec });
  }

  async #waitFor(
    resource: Resource<ConditionedObject>,
    name: string,
    isDone: (object: ConditionedObject) => boolean,
  ): Promise<void> {
    const ref = { namespace: this.#namespace, name };
    await untilValue(`${resource.kind} ${name} to be done`, () => this.#client.get(resource, ref), isDone);
  }
}

function vmReference(name: string) {
  return { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name };
}
