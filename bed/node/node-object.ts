import { createHash } from 'node:crypto';
import type { KubeObject } from '../../api/meta.js';
import { kubernetesVersion } from '../build/versions.js';
import { timestamp } from './step.js';

const CPU_MODEL = 'Skylake-Server';
const MACHINES = ['q35', 'pc-q35-rhel9.6.0', 'pc-q35-9.2'];

/** The devices of virt-handler's plugins, which no guest uses here. */
export const kubeVirtDevices = {
  'devices.kubevirt.io/kvm': '2k',
  'devices.kubevirt.io/tun': '2k',
  'devices.kubevirt.io/vhost-net': '2k',
};

/** Enough for the VMs of a benchmark. */
const CAPACITY = { cpu: '1000', memory: '4Ti', 'ephemeral-storage': '10Ti', pods: '2000', ...kubeVirtDevices };

/** The Node that a kubelet registers, with the labels and annotations of virt-handler and its node-labeller. */
export function nodeObject(name: string, now: number): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: nodeLabels(name), annotations: heartbeatAnnotations(now) },
  };
}

/** virt-handler's heartbeat. After 5 minutes without it, virt-controller marks the node as not schedulable. */
export function heartbeatAnnotations(now: number): Record<string, string> {
  return { 'kubevirt.io/heartbeat': timestamp(now) };
}

/** `status` of a healthy node, or as the node lifecycle controller writes it without heartbeats. */
export function nodeStatus(name: string, isUp: boolean, now: number): object {
  const time = timestamp(now);
  const condition = (type: string, status: string, reason: string) => {
    return { type, status, reason, message: reason, lastHeartbeatTime: time, lastTransitionTime: time };
  };
  const pressures = ['MemoryPressure', 'DiskPressure', 'PIDPressure'];
  return {
    capacity: CAPACITY,
    allocatable: CAPACITY,
    conditions: [
      isUp ? condition('Ready', 'True', 'KubeletReady') : condition('Ready', 'Unknown', 'NodeStatusUnknown'),
      ...pressures.map((type) => condition(type, isUp ? 'False' : 'Unknown', isUp ? 'KubeletOk' : 'NodeStatusUnknown')),
    ],
    addresses: [
      { type: 'InternalIP', address: nodeAddress(name) },
      { type: 'Hostname', address: name },
    ],
    nodeInfo: {
      architecture: 'amd64',
      operatingSystem: 'linux',
      kubeletVersion: kubernetesVersion().version,
      kubeProxyVersion: '',
      containerRuntimeVersion: 'simulated://1',
      kernelVersion: '6',
      osImage: 'simulated',
      bootID: name,
      machineID: name,
      systemUUID: name,
    },
  };
}

/** The node's Lease in kube-node-lease. Without renewal for 50 seconds, the node lifecycle controller reports the node as lost. */
export function nodeLease(name: string, now: number): KubeObject & { spec: object } {
  const renewTime = new Date(now).toISOString().replace('Z', '000Z'); // metav1.MicroTime
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: 'kube-node-lease' },
    spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime },
  };
}

/** Derives an address of TEST-NET-1 (RFC 5737) from the name. */
export function nodeAddress(name: string): string {
  return `192.0.2.${1 + ((createHash('sha256').update(name).digest()[0] ?? 0) % 254)}`;
}

function nodeLabels(name: string): Record<string, string> {
  return {
    'kubernetes.io/hostname': name,
    'kubernetes.io/arch': 'amd64',
    'kubernetes.io/os': 'linux',
    ...kubeVirtLabels(),
  };
}

/** The labels of virt-handler and its node-labeller. */
export function kubeVirtLabels(): Record<string, string> {
  return {
    'kubevirt.io/schedulable': 'true',
    // needed on source and target of a migration by a VM with the default CPU model "host-model"
    'cpu-vendor.node.kubevirt.io/Intel': 'true',
    [`host-model-cpu.node.kubevirt.io/${CPU_MODEL}`]: 'true',
    [`cpu-model.node.kubevirt.io/${CPU_MODEL}`]: 'true',
    [`cpu-model-migration.node.kubevirt.io/${CPU_MODEL}`]: 'true',
    'cpu-timer.node.kubevirt.io/tsc-scalable': 'false',
    ...Object.fromEntries(MACHINES.map((machine) => [`machine-type.node.kubevirt.io/${machine}`, 'true'])),
  };
}
