import type { VirtualMachineInstance } from '../../api/kubevirt.js';
import type { ObjectMeta, OwnerReference } from '../../api/meta.js';
import { CLAIM_REFERENCE_KEY, LAUNCHER_LABEL, LAUNCHER_LABEL_VALUE } from '../../api/names.js';
import { podInterfaceName } from '../../api/pod.js';
import { ClaimStory } from '../../bed/story/claims.js';
import { vmManifest, vmiManifest } from '../../bed/story/vms/vm.js';
import { VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES } from '../../kube/resources.js';
import { runLoad } from '../load.js';
import { type CniCluster, NAMESPACE } from './cluster.js';
import { type BenchNetwork, type PodInterface, createPod } from './interfaces.js';

const VM_NETWORK = 'data';

/** The objects of a running VM: its claim has addresses, and it has no launcher yet. */
export interface BenchVm {
  readonly name: string;
  readonly claim: string;
  /** Addresses of the claim, with prefix lengths. */
  readonly addresses: readonly string[];
  readonly vmi: VirtualMachineInstance;
}

/** Creates VMs with the objects that KubeVirt and Holdfast's controller would create, and waits for the addresses of all claims. */
export async function createVms(
  cluster: CniCluster,
  network: BenchNetwork,
  { batch, count }: { batch: string; count: number },
): Promise<BenchVm[]> {
  const { client } = cluster.plane;
  const claims = new ClaimStory(client, NAMESPACE);
  const vms: Omit<BenchVm, 'addresses'>[] = [];
  const create = async (n: number) => {
    const name = `${batch}-${String(n)}`;
    const options = { name, namespace: NAMESPACE, networks: { [VM_NETWORK]: network.nad } };
    const vm = await client.create(VIRTUAL_MACHINES, vmManifest(options));
    const { metadata, ...rest } = vmiManifest(options);
    const ownerReferences = [controllerReference('VirtualMachine', vm.metadata)];
    const vmi = await client.create(VIRTUAL_MACHINE_INSTANCES, { metadata: { ...metadata, ownerReferences }, ...rest });
    const claim = `${name}.${VM_NETWORK}`;
    await claims.createAsIpamExtensions(claim, network.pool.network, vm);
    vms.push({ name, claim, vmi });
  };
  await runLoad(create, { count, concurrency: 16 });
  const ready: BenchVm[] = [];
  // one after the other, because parallel polling would be a load, too
  for (const vm of vms) ready.push({ ...vm, addresses: await cluster.addresses.waitForIPs(vm.claim) });
  return ready;
}

/** Creates the VM's launcher, bound to one of the nodes, as virt-controller and the webhook would. */
export function createLauncher(
  { virtController, nodes }: CniCluster,
  network: BenchNetwork,
  { vm, n }: { vm: BenchVm; n: number },
): Promise<PodInterface> {
  const metadata = {
    labels: { [LAUNCHER_LABEL]: LAUNCHER_LABEL_VALUE },
    ownerReferences: [controllerReference('VirtualMachineInstance', vm.vmi.metadata)],
  };
  const element = { [CLAIM_REFERENCE_KEY]: vm.claim };
  const options = { network, interfaceName: podInterfaceName(VM_NETWORK), metadata, element };
  return createPod(virtController, `virt-launcher-${vm.name}`, nodes[n % nodes.length]!, options);
}

function controllerReference(kind: string, { name, uid = '' }: ObjectMeta): OwnerReference {
  return { apiVersion: 'kubevirt.io/v1', kind, name, uid, controller: true };
}
