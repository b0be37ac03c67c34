import type { VirtualMachine, VirtualMachineInstance, VmDhcpOptions, VmNetwork } from '../../../api/kubevirt.js';
import type { KubeObject } from '../../../api/meta.js';
import { controllingVmi, isTerminal, type Pod } from '../../../api/pod.js';
import type { Client, DeleteOptions } from '../../../kube/client.js';
import { messageOf } from '../../../kube/errors.js';
import { PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../../../kube/resources.js';
import { untilValue } from '../../processes/wait.js';

export interface VmOptions {
  name: string;
  namespace: string;
  /** Secondary networks: name in the VM → NAD (`[namespace/]name`). */
  networks: Readonly<Record<string, string>>;
  /** MAC addresses by the network's name in the VM. */
  macs?: Readonly<Record<string, string>>;
  /** Options of DHCPv4 by the network's name in the VM. */
  dhcpOptions?: Readonly<Record<string, VmDhcpOptions>>;
  hostname?: string;
  /** True by default: runStrategy Always. */
  running?: boolean;
  evictionStrategy?: 'LiveMigrate' | 'None';
  /** Annotations of the VM's template. */
  annotations?: Readonly<Record<string, string>>;
  /** The Secret that `networkDataSecretRef` of a cloud-init volume names. */
  networkData?: {
    secret: string;
    source?: 'cloudInitNoCloud' | 'cloudInitConfigDrive';
    /** True by default. */
    hasUserData?: boolean;
  };
}

export type DeletionPropagation = NonNullable<DeleteOptions['propagationPolicy']>;

/** A small VM with a pod network and the secondary networks by bridge binding. */
export function vmManifest(options: VmOptions): VirtualMachine {
  const { name, namespace, running = true } = options;
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace },
    spec: { runStrategy: running ? 'Always' : 'Halted', template: template(options) },
  } as VirtualMachine;
}

/** A VMI without a VM. */
export function vmiManifest(options: VmOptions): VirtualMachineInstance {
  const { name, namespace } = options;
  const { spec } = template(options);
  return { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', metadata: { name, namespace }, spec };
}

function template(options: VmOptions) {
  const { networks, macs = {}, dhcpOptions = {}, hostname, evictionStrategy, annotations = {}, networkData } = options;
  const names = Object.keys(networks);
  const cloudInit = networkData && {
    name: 'cloudinit',
    [networkData.source ?? 'cloudInitNoCloud']: {
      ...(networkData.hasUserData !== false && { userData: '#cloud-config' }),
      networkDataSecretRef: { name: networkData.secret },
    },
  };
  return {
    metadata: { annotations },
    spec: {
      terminationGracePeriodSeconds: 30,
      ...(evictionStrategy === undefined ? {} : { evictionStrategy }),
      ...(hostname !== undefined && { hostname }),
      domain: {
        devices: {
          disks: ['root', ...(cloudInit ? ['cloudinit'] : [])].map((name) => ({ name, disk: { bus: 'virtio' } })),
          interfaces: [
            { name: 'default', masquerade: {}, ...(macs.default ? { macAddress: macs.default } : {}) },
            ...names.map((name) => ({
              name,
              bridge: {},
              ...(macs[name] ? { macAddress: macs[name] } : {}),
              ...(dhcpOptions[name] && { dhcpOptions: dhcpOptions[name] }),
            })),
          ],
        },
        resources: { requests: { memory: '64Mi' } },
      },
      networks: [{ name: 'default', pod: {} }, ...names.map((name) => secondaryNetwork(name, networks[name] ?? ''))],
      volumes: [
        { name: 'root', containerDisk: { image: 'quay.io/kubevirt/cirros-container-disk-demo:v1.8.0' } },
        ...(cloudInit ? [cloudInit] : []),
      ],
    },
  };
}

export function secondaryNetwork(name: string, networkName: string): VmNetwork {
  return { name, multus: { networkName } };
}

/** PUT to one of KubeVirt's subresources, as virtctl does. */
export async function callSubresource(
  client: Client,
  ref: { namespace: string; name: string },
  verb: 'start' | 'stop' | 'restart',
): Promise<void> {
  const path = `/apis/subresources.kubevirt.io/v1/namespaces/${ref.namespace}/virtualmachines/${ref.name}/${verb}`;
  await client.transport.request({ method: 'PUT', path, body: {}, accept: '*/*' });
}

/** Waits until a VMI of this name runs. */
export function waitRunning(client: Client, ref: { namespace: string; name: string }): Promise<VirtualMachineInstance> {
  return waitForVmi(client, ref, 'to run', (vmi) => vmi.status?.phase === 'Running' && !vmi.metadata.deletionTimestamp);
}

/** Waits until the VMI exists and is as described. The error says how VM, VMI and launchers are. */
export async function waitForVmi(
  client: Client,
  ref: { namespace: string; name: string },
  description: string,
  isRight: (vmi: VirtualMachineInstance) => boolean,
): Promise<VirtualMachineInstance> {
  try {
    const vmi = await untilValue(
      `VMI ${ref.name} ${description}`,
      () => client.find(VIRTUAL_MACHINE_INSTANCES, ref),
      (found) => found !== undefined && isRight(found),
      { timeoutMs: 60_000 },
    );
    return vmi!;
  } catch (error) {
    throw new Error(`${JSON.stringify(await partsOf(client, ref))}: ${messageOf(error)}`, { cause: error });
  }
}

/** The launcher pods of a VM that have not ended, oldest first. */
export async function launchers(client: Client, ref: { namespace: string; name: string }): Promise<Pod[]> {
  const { items } = await client.list(PODS, { namespace: ref.namespace, labelSelector: 'kubevirt.io=virt-launcher' });
  return items
    .filter((pod) => controllingVmi(pod)?.name === ref.name && !isTerminal(pod))
    .sort((a, b) => (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? ''));
}

/**
 * Waits until VM, VMI and launchers are gone. The error says what is left, and what holds it.
 * @param timeoutMs by default more than the 60 s after which kubelet kills a launcher that does not end
 */
export async function waitGone(
  client: Client,
  ref: { namespace: string; name: string },
  timeoutMs = 100_000,
): Promise<void> {
  await untilValue(
    `VM ${ref.name} to be gone`,
    () => partsOf(client, ref),
    (left) => left.length === 0,
    { timeoutMs },
  );
}

/** What there is of a VM, and what its parts wait for. */
export async function partsOf(client: Client, ref: { namespace: string; name: string }): Promise<object[]> {
  const [vm, vmi, pods] = await Promise.all([
    client.find(VIRTUAL_MACHINES, ref),
    client.find(VIRTUAL_MACHINE_INSTANCES, ref),
    launchers(client, ref),
  ]);
  return [...partOf('VM', vm), ...partOf('VMI', vmi), ...pods.flatMap((pod) => partOf('pod', pod))];
}

function partOf(kind: string, object: (KubeObject & { status?: unknown }) | undefined): object[] {
  if (object === undefined) return [];
  const { name, deletionTimestamp, finalizers } = object.metadata;
  const { phase, conditions: all = [], containerStatuses } = (object.status ?? {}) as PartStatus;
  const conditions = all
    .filter(({ status, message }) => status !== 'True' || message)
    .map(({ type, status, reason, message }) => [type, status, reason, message].join(' '));
  const containers = containerStatuses?.map((one) => `${one.name} ${Object.keys(one.state ?? {}).join()}`);
  return [{ kind, name, deletionTimestamp, finalizers, phase, conditions, containers }];
}

interface PartStatus {
  readonly phase?: string;
  readonly conditions?: readonly { type: string; status: string; reason?: string; message?: string }[];
  readonly containerStatuses?: readonly Container[];
}

interface Container {
  readonly name: string;
  readonly state?: object;
}

/** A VM from `vmManifest`, with the lists that tests edit. */
export interface ChangeableVm extends VirtualMachine {
  spec: {
    template: {
      metadata?: { annotations?: Record<string, string> };
      spec: {
        networks: VmNetwork[];
        domain: { devices: { interfaces: { name: string; bridge?: object; state?: string; macAddress?: string }[] } };
      };
    };
  };
}
