import { type IPAMClaim, claimName } from '../../api/ipam-claim.js';
import { type VirtualMachine, type VirtualMachineInstance, secondaryNetworks } from '../../api/kubevirt.js';
import { LAUNCHER_LABEL, LAUNCHER_LABEL_VALUE, NETWORKS_ANNOTATION } from '../../api/names.js';
import type { NetworkAttachmentDefinition } from '../../api/networks/network-attachment.js';
import { podInterfaceName } from '../../api/pod.js';
import { NAMESPACE, type Networks, claim, nad, vm, vmReference, vmi, vmiReference } from './workload-objects.js';

/** Complete VMs and launcher pods for tests. The UIDs of VM and VMI are derived from their name. */
export { NAMESPACE };

/** The VM of {@link makeVmi}, with the fields that the webhook reads. */
export function makeVm(name: string): VirtualMachine {
  return vm({}, { name, uid: `${name}-vm-uid` });
}

/** @param given.vm UID of its VM; null: it has none */
export function makeVmi(name: string, networks: Networks, given: { vm?: string | null } = {}): VirtualMachineInstance {
  const { vm: owner = `${name}-vm-uid` } = given;
  return vmi(networks, { name, uid: `${name}-vmi-uid`, vm: owner });
}

/** The value of the networks annotation, as KubeVirt writes it. */
export function networksValue(vmi: VirtualMachineInstance, references: Readonly<Record<string, string>> = {}): string {
  return JSON.stringify(
    secondaryNetworks(vmi.spec, NAMESPACE).map(({ name, nad }) => ({
      name: nad.name,
      namespace: nad.namespace,
      interface: podInterfaceName(name),
      ...(references[name] === undefined ? {} : { 'ipam-claim-reference': references[name] }),
    })),
  );
}

export function makeNad(
  name: string,
  options: { network?: string; persistent?: boolean; config?: string } = {},
): NetworkAttachmentDefinition {
  const { network = name, persistent = true } = options;
  const config = { cniVersion: '1.0.0', name: network, type: 'bridge', allowPersistentIPs: persistent };
  return nad(name, options.config ?? config);
}

export interface ClaimOptions {
  name?: string;
  /** The CNI network. */
  network?: string;
  nad?: string;
  /** null if the claim never had an owner. */
  ownerUid?: string | null;
  /** Whether the garbage collector has removed the owner reference. */
  orphaned?: boolean;
  terminating?: boolean;
}

/** A claim like those of the controller, or one without an owner. */
export function makeClaim(vm: string, vmNetwork: string, options: ClaimOptions = {}): IPAMClaim {
  const { name = claimName(vm, vmNetwork), network = 'blue', ownerUid = `${vm}-vm-uid`, terminating = false } = options;
  if (ownerUid === null) {
    return claim({ name, network, owner: null, vmNetwork: null, nad: null, deleting: terminating });
  }
  const owner = options.orphaned ? null : vmReference(ownerUid, vm);
  const remembers = { name: vm, uid: ownerUid };
  const { nad: nadKey = `${NAMESPACE}/blue` } = options;
  return claim({ name, network, owner, recordedOwner: remembers, vmNetwork, nad: nadKey, deleting: terminating });
}

/** A complete, untyped pod of the API server. */
export type RawPod = Record<string, unknown> & {
  metadata: { annotations: Record<string, string>; labels: Record<string, string>; [key: string]: unknown };
};

/** The launcher pod of a VMI as virt-controller creates it: without a name, about 9 KB. */
export function makeLauncherPod(vmi: VirtualMachineInstance, networks: string = networksValue(vmi)): RawPod {
  const { name, uid = '' } = vmi.metadata;
  const mounts = 'private public sockets ephemeral-disks container-disks hotplug-disks libvirt-runtime'.split(' ');
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      generateName: `virt-launcher-${name}-`,
      namespace: NAMESPACE,
      labels: {
        [LAUNCHER_LABEL]: LAUNCHER_LABEL_VALUE,
        'kubevirt.io/created-by': uid,
        'vm.kubevirt.io/name': name,
        'vmi.kubevirt.io/id': name,
      },
      annotations: {
        [NETWORKS_ANNOTATION]: networks,
        'kubevirt.io/domain': name,
        'kubevirt.io/migrationTransportUnix': 'true',
        'kubevirt.io/pci-topology-version': 'v3',
        'kubevirt.io/vm-generation': '1',
        'kubectl.kubernetes.io/default-container': 'compute',
        'descheduler.alpha.kubernetes.io/request-evict-only': '',
        'pre.hook.backup.velero.io/command': `["/usr/bin/virt-freezer","--freeze","--name","${name}","--namespace","${NAMESPACE}"]`,
        'post.hook.backup.velero.io/command': `["/usr/bin/virt-freezer","--unfreeze","--name","${name}","--namespace","${NAMESPACE}"]`,
      },
      ownerReferences: [vmiReference(uid, name)],
    },
    spec: {
      restartPolicy: 'Never',
      serviceAccountName: 'default',
      terminationGracePeriodSeconds: 60,
      nodeSelector: {
        'kubernetes.io/arch': 'amd64',
        'kubevirt.io/schedulable': 'true',
        'machine-type.node.kubevirt.io/q35': 'true',
      },
      readinessGates: [{ conditionType: 'kubevirt.io/virtual-machine-unpaused' }],
      volumes: mounts.map((volume) => ({ name: volume, emptyDir: {} })),
      containers: ['compute', 'volumerootdisk'].map((container) => makeContainer(container, name, mounts)),
      initContainers: ['guest-console-log', 'container-disk-binary'].map((container) =>
        makeContainer(container, name, mounts),
      ),
      'unknown.example/field': { kept: [1, 'two', null] },
    },
  };
}

function makeContainer(container: string, vm: string, mounts: readonly string[]): object {
  return {
    name: container,
    image:
      'registry.example/kubevirt/virt-launcher@sha256:386928a748f3c4343249d55a0377566cd3684ee5745385ffc247e5d62d50451e',
    imagePullPolicy: 'IfNotPresent',
    command: ['/usr/bin/virt-launcher-monitor', '--qemu-timeout', '293s', '--name', vm, '--namespace', NAMESPACE],
    args: ['--kubevirt-share-dir', '/var/run/kubevirt', '--container-disk-dir', '/var/run/kubevirt/container-disks'],
    env: ['XDG_CACHE_HOME', 'XDG_CONFIG_HOME', 'XDG_RUNTIME_DIR'].map((name) => ({
      name,
      value: '/var/run/kubevirt-private',
    })),
    resources: {
      limits: { 'devices.kubevirt.io/kvm': '1', 'devices.kubevirt.io/tun': '1', 'devices.kubevirt.io/vhost-net': '1' },
      requests: { cpu: '100m', 'ephemeral-storage': '50M', memory: '405760Ki' },
    },
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { add: ['NET_BIND_SERVICE'], drop: ['ALL'] },
      runAsGroup: 107,
      runAsNonRoot: true,
      runAsUser: 107,
    },
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'FallbackToLogsOnError',
    volumeMounts: mounts.map((name) => ({
      name,
      mountPath: `/var/run/kubevirt/${name}`,
      mountPropagation: 'HostToContainer',
    })),
  };
}
