import type { KubeObject } from '../../../api/meta.js';
import type { Client } from '../../../kube/client.js';
import type { Resource } from '../../../kube/resource.js';
import { VIRTUAL_MACHINES } from '../../../kube/resources.js';
import { vmManifest } from './vm.js';

interface SpecObject extends KubeObject {
  spec: object;
}

const POOLS = kind('pool.kubevirt.io', 'virtualmachinepools', 'VirtualMachinePool');
const INSTANCETYPES = kind('instancetype.kubevirt.io', 'virtualmachineinstancetypes', 'VirtualMachineInstancetype');
const PREFERENCES = kind('instancetype.kubevirt.io', 'virtualmachinepreferences', 'VirtualMachinePreference');

function kind(group: string, plural: string, name: string): Resource<SpecObject> {
  return { group, version: 'v1beta1', plural, kind: name, namespaced: true };
}

type Networks = Readonly<Record<string, string>>;

/** Creates the objects of one namespace from which KubeVirt makes VMs. */
export class VmTemplates {
  readonly #client: Client;
  readonly #namespace: string;

  constructor(client: Client, namespace: string) {
    this.#client = client;
    this.#namespace = namespace;
  }

  /** Creates a VirtualMachinePool. Its VMs are `<name>-0`, `<name>-1` … */
  async createPool(name: string, networks: Networks, replicas: number): Promise<void> {
    const { spec } = vmManifest({ name, namespace: this.#namespace, networks });
    const labels = { pool: name };
    await this.#create(POOLS, name, {
      replicas,
      selector: { matchLabels: labels },
      virtualMachineTemplate: { metadata: { labels }, spec },
    });
  }

  async scalePool(name: string, replicas: number): Promise<void> {
    const patch = { type: 'merge', body: { spec: { replicas } } } as const;
    await this.#client.patch(POOLS, { namespace: this.#namespace, name }, patch);
  }

  async createInstancetype(name: string): Promise<void> {
    await this.#create(INSTANCETYPES, name, { cpu: { guest: 1 }, memory: { guest: '64Mi' } });
  }

  async createPreference(name: string): Promise<void> {
    await this.#create(PREFERENCES, name, { devices: { preferredInterfaceModel: 'virtio' } });
  }

  /** Creates a VM whose CPU, memory and device models come from an instance type and a preference. */
  async createTypedVm(
    name: string,
    networks: Networks,
    { instancetype, preference }: { instancetype: string; preference: string },
  ): Promise<void> {
    const vm = vmManifest({ name, namespace: this.#namespace, networks });
    const spec = {
      ...vm.spec,
      instancetype: { kind: 'VirtualMachineInstancetype', name: instancetype },
      preference: { kind: 'VirtualMachinePreference', name: preference },
    };
    const domain = spec.template?.spec?.domain as { resources?: object };
    delete domain.resources; // the instance type has them, and KubeVirt rejects a VM that has both
    await this.#client.create(VIRTUAL_MACHINES, { ...vm, spec });
  }

  async #create(resource: Resource<SpecObject>, name: string, spec: object): Promise<void> {
    await this.#client.create(resource, { metadata: { namespace: this.#namespace, name }, spec });
  }
}
