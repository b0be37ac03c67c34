import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { cpSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { stringify } from 'yaml';
import type { Pod } from '../../api/pod.js';
import { API_SERVER_ADDRESSES } from '../control-plane/certificates.js';
import type { ObjectRef } from '../../kube/resource.js';
import { type Child, type Processes, capture } from '../processes/processes.js';
import { joinSwitch, nodeAddresses, plugIn, unplug } from './cluster-network.js';
import { isMultusThick, PAUSE_IMAGE } from './images/images.js';
import { cgroupPrefix, REMOVE_CGROUP } from './isolation.js';
import type { NodePrograms } from './images/node-programs.js';
import { REGISTRY_PORT } from './images/registry.js';

type NodeService = 'kubelet' | 'containerd';

const INIT = join(import.meta.dirname, 'node-init.sh');

export interface RealNodeOptions {
  readonly name: string;
  /** From 1; it decides its addresses. */
  readonly number: number;
  readonly processes: Processes;
  readonly programs: NodePrograms;
  /** Its disk. */
  readonly folder: string;
  /** The node's own kubeconfig: the user system:node:NAME. */
  readonly kubeconfig: string;
  /** PEM of the CA of clients of kubelet. */
  readonly clientCa: string;
}

/** A node with kubelet, containerd and runc, in namespaces of its own. Only its kernel is the machine's. */
export class RealNode {
  readonly name: string;
  readonly #options: RealNodeOptions;
  readonly #cgroup: string;
  readonly #bridges = new Set<string>();
  #machine: Child | undefined;

  constructor(options: RealNodeOptions) {
    this.#options = options;
    this.name = options.name;
    this.#cgroup = `${cgroupPrefix()}-${options.name}`;
  }

  get number(): number {
    return this.#options.number;
  }

  get isOn(): boolean {
    return this.#machine?.running ?? false;
  }

  /** Installs what an administrator installs on a new machine. */
  async install(): Promise<void> {
    const { number, programs, kubeconfig, clientCa } = this.#options;
    await this.#write('etc/containerd/config.toml', CONTAINERD_CONFIG);
    await this.#write('etc/containerd/certs.d/_default/hosts.toml', REGISTRY);
    await this.#write('etc/kubernetes/kubelet.yaml', stringify(kubeletConfig(`/${this.#cgroup}`)));
    await this.#write('etc/kubernetes/kubelet.kubeconfig', await readFile(kubeconfig, 'utf8'));
    await this.#write('etc/kubernetes/ca.crt', clientCa);
    await mkdir(this.disk('etc/kubernetes/manifests'));
    const { file, config } = podNetwork(nodeAddresses(number).pods);
    await this.#write(`etc/cni/net.d/${file}`, JSON.stringify(config));
    await mkdir(this.disk('opt/cni/bin'), { recursive: true });
    for (const plugin of ['bridge', 'host-local', 'loopback', 'macvlan', 'static', 'tuning'])
      cpSync(join(programs.plugins, plugin), this.disk('opt/cni/bin', plugin), { dereference: true });
  }

  /** Switches the machine on. It is not Ready yet. */
  async boot(): Promise<void> {
    const { number, processes, programs, folder } = this.#options;
    await plugIn(this.name, number);
    for (const bridge of this.#bridges) await joinSwitch(this.name, number, bridge);
    const namespaces = [
      '--mount',
      '--uts',
      '--pid',
      '--fork',
      '--kill-child',
      '--mount-proc',
      '--propagation',
      'private',
    ];
    const { kubelet, runtime } = programs;
    this.#machine = processes.start({
      name: this.name,
      command: 'nsenter',
      args: [
        `--net=/run/netns/${this.name}`,
        ...['unshare', ...namespaces],
        ...['sh', INIT, folder, this.name, this.#cgroup, kubelet, runtime],
      ],
    });
  }

  /** Makes a bridge that is connected with those of this name on other nodes, also after a reboot. */
  async connect(bridge: string): Promise<void> {
    if (this.#bridges.has(bridge)) return;
    this.#bridges.add(bridge);
    await joinSwitch(this.name, this.#options.number, bridge);
  }

  /** Cuts the power: all processes are killed, containers too, and /run is lost. The disk stays. */
  async powerOff(): Promise<void> {
    await this.#machine?.kill();
    this.#machine = undefined;
    await unplug(this.name);
    await capture('sh', ['-euc', REMOVE_CGROUPS, 'sh', this.#cgroup]);
  }

  /** Runs a command on the node, as root. @returns its standard output */
  async run(...command: readonly string[]): Promise<string> {
    const pid = String(this.#machine?.pid);
    const init = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim();
    const { runtime } = this.#options.programs;
    const folders = ['/usr/bin', '/usr/sbin', '/bin'].map((folder) => `${runtime}${folder}`);
    const path = [...folders, '/usr/sbin', '/usr/bin', '/sbin', '/bin'].join(':');
    const entered = ['nsenter', `--target=${init}`, '--mount', '--uts', '--pid', '--net', 'env', `PATH=${path}`];
    const [first = '', ...rest] = [...entered, ...command];
    return capture(first, rest);
  }

  /** Runs a command of this machine in the network namespace of a running pod. @returns its standard output */
  async runInPod(pod: Pod, ...command: readonly string[]): Promise<string> {
    return this.run('nsenter', `--target=${await this.processOf(pod)}`, '--net', ...command);
  }

  /** The process of a running pod's first container, by its number on the node. */
  async processOf(pod: Pod): Promise<string> {
    const id = containerIdOf(pod);
    const tasks = await this.run('ctr', '--namespace=k8s.io', 'tasks', 'list');
    const [, pid] = new RegExp(`^${id}\\s+(\\d+)`, 'm').exec(tasks) ?? [];
    if (id === '' || pid === undefined)
      throw new Error(`pod ${pod.metadata.name} has no running container on ${this.name}`);
    return pid;
  }

  /** Pulls and unpacks an image before a pod needs it. */
  async prefetch(image: string): Promise<void> {
    const hosts = '--hosts-dir=/etc/containerd/certs.d';
    await this.run('ctr', '--namespace=k8s.io', 'images', 'pull', hosts, image);
  }

  /** The IDs of containerd's containers, by default of all pods. @param except the name of one that is left out */
  async containers(kind: 'sandbox' | 'container', pod?: ObjectRef, except?: string): Promise<string[]> {
    const labels = Object.entries({
      'io.cri-containerd.kind': kind,
      ...(pod && { 'io.kubernetes.pod.namespace': pod.namespace, 'io.kubernetes.pod.name': pod.name }),
    });
    const filters = labels.map(([key, value]) => `labels."${key}"==${value ?? ''}`);
    if (except !== undefined) filters.push(`labels."io.kubernetes.container.name"!=${except}`);
    const filter = filters.join(',');
    const ids = await this.run('ctr', '--namespace=k8s.io', 'containers', 'list', '--quiet', filter);
    return ids.split('\n').filter(Boolean);
  }

  /** Signals the first process of a container that runs. */
  async killContainer(id: string, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await this.run('ctr', '--namespace=k8s.io', 'tasks', 'kill', `--signal=${signal}`, id);
  }

  /** Kills a service, which is started again. */
  async killService(name: NodeService): Promise<void> {
    // Its process may have ended, and the next one not have begun.
    await this.run('sh', '-c', `until kill -KILL $(cat /run/${name}.pid) 2> /dev/null; do sleep 0.1; done`);
  }

  /** Kills a service, which stays away until {@link startService}. */
  async stopService(name: NodeService): Promise<void> {
    await this.run('touch', `/run/${name}.stopped`);
    await this.killService(name);
  }

  async startService(name: NodeService): Promise<void> {
    await this.run('rm', `/run/${name}.stopped`);
  }

  /** Writes a file on the running node. */
  async writeFile(path: string, content: string): Promise<void> {
    await this.run('sh', '-euc', 'mkdir -p "$(dirname "$1")"; printf %s "$2" > "$1"', 'sh', path, content);
  }

  /** The path on this machine of a file on the node's disk. A running node may not notice changes of its `/etc`. */
  disk(...path: readonly string[]): string {
    return join(this.#options.folder, ...path);
  }

  async #write(path: string, content: string): Promise<void> {
    await mkdir(dirname(this.disk(path)), { recursive: true });
    await writeFile(this.disk(path), content, { mode: 0o600 });
  }
}

/** containerd's ID of a pod's first container; empty if there is none. */
export function containerIdOf({ status }: Pod): string {
  const { containerStatuses: [first] = [] } = status as { containerStatuses?: { containerID?: string }[] };
  return first?.containerID?.replace('containerd://', '') ?? '';
}

/** If a cgroup is left, the next kubelet starts no pod for 3 s for each of its containers. */
const REMOVE_CGROUPS = `${REMOVE_CGROUP}
for folder in /sys/fs/cgroup/$1 /sys/fs/cgroup/*/$1; do remove_cgroup "$folder" 100; done`;

/** restrict_oom_score_adj: without CAP_SYS_RESOURCE nobody may lower it. */
const CONTAINERD_CONFIG = `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE_IMAGE}"
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = "/etc/containerd/certs.d"
`;

/** All hosts are looked up there: https://github.com/containerd/containerd/blob/v1.6.20/docs/hosts.md. */
const REGISTRY = `[host."http://${API_SERVER_ADDRESSES[0]}:${String(REGISTRY_PORT)}"]
  capabilities = ["pull", "resolve"]
`;

/** https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1 */
function kubeletConfig(cgroupRoot: string): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: '/etc/kubernetes/ca.crt' },
    },
    authorization: { mode: 'Webhook' },
    cgroupDriver: 'cgroupfs',
    cgroupRoot,
    failCgroupV1: false,
    containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
    staticPodPath: '/etc/kubernetes/manifests',
    volumePluginDir: '/var/lib/kubelet/volume-plugins',
    clusterDomain: 'cluster.local',
    // nothing answers there
    clusterDNS: ['10.96.0.10'],
    resolvConf: '',
    failSwapOn: false,
    protectKernelDefaults: true,
    // the disk is the machine's, and may be full for other reasons
    evictionHard: { 'memory.available': '100Mi' },
    imageGCHighThresholdPercent: 100,
    serializeImagePulls: false,
    nodeStatusUpdateFrequency: '5s',
    syncFrequency: '10s',
  };
}

/** In the file that most clusters have. Multus 4.2.2 with a daemon loses keys of plugins that such a list names. */
function podNetwork(subnet: string): { file: string; config: object } {
  const ipam = { type: 'host-local', ranges: [[{ subnet }]] };
  const plugin = { type: 'bridge', bridge: 'cni0', isGateway: true, isDefaultGateway: true, ipam };
  const network = { cniVersion: '1.0.0', name: 'pods' };
  if (isMultusThick) return { file: '10-pods.conf', config: { ...network, ...plugin } };
  return { file: '10-pods.conflist', config: { ...network, plugins: [plugin] } };
}
