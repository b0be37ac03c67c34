import { chmod, copyFile, mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { expect } from 'chai';
import type { VirtualMachineInstance } from '../../api/kubevirt.js';
import { NETWORKS_ANNOTATION } from '../../api/names.js';
import type { Pod } from '../../api/pod.js';
import type { Client } from '../../kube/client.js';
import {
  ADDRESS_LEASES,
  IPAM_CLAIMS,
  KUBEVIRTS,
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  PODS,
  VIRTUAL_MACHINES,
  VIRTUAL_MACHINE_INSTANCES,
} from '../../kube/resources.js';
import { kustomizeBase } from '../../manifests/testing/render.js';
import { buildImage } from '../../test/image/build.js';
import { ImageRoot, reasonAgainstContainers } from '../../test/image/container.js';
import { readDockerfile } from '../../test/image/dockerfile.js';
import { makeLauncherPod, networksValue } from '../../test/objects/kubevirt-objects.js';
import { ROOT } from '../../test/source-files.js';
import { NAMESPACE, nad, vm, vmi } from '../../test/objects/workload-objects.js';
import { type ControlPlane, startControlPlane } from '../../bed/control-plane/control-plane.js';
import { createCrds, kubeVirtKind } from '../../bed/control-plane/crds.js';
import { type Manifest, createAll, resourceOf } from '../../bed/control-plane/objects.js';
import { clusterRoleBindingOf } from '../../bed/control-plane/service-accounts.js';
import { until } from '../../bed/processes/wait.js';
import { ImageNode, type RunningContainer } from '../../bed/holdfast/image-node.js';
import { HOLDFAST_NAMESPACE, endpointOf, withoutSelector } from '../../bed/holdfast/install.js';
import { applyManifests, readInstallation } from '../../bed/holdfast/manifests.js';
import { SimulatedCertManager } from '../../bed/holdfast/simulated-cert-manager.js';
import { serviceAccountClient } from '../../bed/story/users/service-account.js';

const ARCHITECTURE = process.arch === 'arm64' ? 'arm64' : 'amd64';
const REASON = reasonAgainstContainers();
/** Run by {@link ImageNode}, or of kinds that only cert-manager has. */
const NOT_APPLIED = /^(Deployment|DaemonSet|PodDisruptionBudget|NetworkPolicy|Issuer|Certificate)$/;
const CONFIGURATIONS = /^(Mutating|Validating)WebhookConfiguration$/;
const OVN_KUBERNETES = { namespace: 'ovn-kubernetes', name: 'ovnkube-cluster-manager' };
const KUBEVIRT = { namespace: 'kubevirt', name: 'kubevirt-controller' };
const CLI = ['/nodejs/bin/node', '/opt/holdfast/dist/kubectl-holdfast.cjs'];
const UIDS = { controller: 1000, webhook: 1000, ipam: 1000, capacity: 1000, agent: 0, all: 1000 } as const;
type Name = keyof typeof UIDS;

describe(REASON ?? 'The pods of the manifests, run from the files of the image against a real API server', () => {
  let folder: string;
  let plane: ControlPlane;
  let image: ImageRoot;
  let node: ImageNode;
  /** KubeVirt's controller and the IPAM of OVN-Kubernetes, whose part the test does. */
  let kubevirt: Client;
  let ovn: Client;
  let installed: readonly Manifest[] = [];
  const running = new Map<Name, RunningContainer>();

  before(async function () {
    if (REASON !== undefined) this.skip();
    this.timeout(15 * 60_000); // the first run builds the API server
    folder = await mkdtemp(join(tmpdir(), 'holdfast-image-'));
    const dockerfile = await readDockerfile(join(ROOT, 'Dockerfile'));
    const root = await buildImage(dockerfile, folder, ARCHITECTURE);
    image = await ImageRoot.create(root, dockerfile.images[`linux/${ARCHITECTURE}`]!);
    plane = await startControlPlane();
    node = await ImageNode.create(plane, image, join(folder, 'node'));
    await createCrds(plane.client, [
      kubeVirtKind('virtualmachines', 'VirtualMachine'),
      kubeVirtKind('virtualmachineinstances', 'VirtualMachineInstance'),
      kubeVirtKind('kubevirts', 'KubeVirt'),
    ]);
    for (const name of [NAMESPACE, KUBEVIRT.namespace, OVN_KUBERNETES.namespace])
      await plane.client.create(NAMESPACES, { metadata: { name } });
    await plane.client.create(KUBEVIRTS, { metadata: { namespace: KUBEVIRT.namespace, name: 'kubevirt' } });
    const metadata = { name: 'default', namespace: NAMESPACE };
    await createAll(plane.client, [{ apiVersion: 'v1', kind: 'ServiceAccount', metadata }]);
    kubevirt = await administrator(KUBEVIRT);
    ovn = await administrator(OVN_KUBERNETES);
  });

  after(async () => {
    for (const client of [kubevirt, ovn]) await (client as Client | undefined)?.transport.close();
    await (plane as ControlPlane | undefined)?.stop();
    if (REASON === undefined) await rm(folder, { recursive: true });
  });

  async function administrator(account: { namespace: string; name: string }): Promise<Client> {
    const binding = clusterRoleBindingOf(account, 'cluster-admin');
    await createAll(plane.client, [binding]);
    return serviceAccountClient(plane, account);
  }

  async function install(objects: readonly Manifest[]): Promise<void> {
    installed = objects;
    await applyManifests(plane.client, objects.filter(({ kind }) => !NOT_APPLIED.test(kind)).map(withoutSelector));
  }

  function workload(name: Name): Manifest {
    return installed.find(
      ({ kind, metadata }) => ['Deployment', 'DaemonSet'].includes(kind) && metadata.name === `holdfast-${name}`,
    )!;
  }

  /** Starts a pod, and leads its Services to it. */
  async function start(name: Name): Promise<RunningContainer> {
    const started = await node.start(workload(name));
    running.set(name, started);
    const { https = 0, validation = https } = started.ports;
    const ofWebhook = name === 'webhook' || name === 'all' ? [endpointOf('holdfast-webhook', https)] : [];
    const ofIpam = name === 'ipam' || name === 'all' ? [endpointOf('holdfast-ipam', validation)] : [];
    await applyManifests(plane.client, [...ofWebhook, ...ofIpam]);
    return started;
  }

  async function stopAll(): Promise<void> {
    await Promise.all([...running.values()].map(({ child }) => child.stop()));
    running.clear();
  }

  async function createVm(name: string, networks: Record<string, string>): Promise<VirtualMachineInstance> {
    const { metadata } = await plane.client.create(VIRTUAL_MACHINES, vm(networks, { name }));
    return plane.client.create(VIRTUAL_MACHINE_INSTANCES, vmi(networks, { name, vm: metadata.uid! }));
  }

  async function deleteVm(name: string): Promise<void> {
    await plane.client.delete(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name });
    await plane.client.delete(VIRTUAL_MACHINES, { namespace: NAMESPACE, name });
    await until('the claim is deleted', async () => !(await plane.client.find(IPAM_CLAIMS, claimOf(name))));
  }

  const claimOf = (name: string) => ({ namespace: NAMESPACE, name: `${name}.data` });
  const claim = (name: string) => until('a claim', () => plane.client.find(IPAM_CLAIMS, claimOf(name)));

  /** What virt-controller creates. It is not stored. */
  function admitLauncher(of: VirtualMachineInstance): Promise<Pod> {
    const spec = { containers: [{ name: 'compute', image: 'registry.example/compute' }] };
    return kubevirt.create(PODS, { ...makeLauncherPod(of), spec } as unknown as Pod, { dryRun: true });
  }

  async function expectReference(of: VirtualMachineInstance): Promise<void> {
    const { metadata } = await until('the launcher is admitted', () => admitLauncher(of));
    expect(metadata.annotations?.[NETWORKS_ANNOTATION]).to.equal(
      networksValue(of, { data: `${of.metadata.name}.data` }),
    );
  }

  /** User and root file system of a process. */
  async function expectIdentity(name: Name): Promise<void> {
    const { child } = running.get(name)!;
    const status = await readFile(`/proc/${String(child.pid)}/status`, 'utf8');
    expect(/^Uid:\t(\d+)/m.exec(status)?.[1]).to.equal(String(UIDS[name]));
    expect(/^CapEff:\t(\w+)/m.exec(status)?.[1]).to.equal('0'.repeat(16));
    const mounts = await readFile(`/proc/${String(child.pid)}/mounts`, 'utf8');
    expect(mounts).to.match(/ \/ \S+ ro[, ]/);
  }

  describe('with the variant controller-webhook-only, for OVN-Kubernetes', () => {
    after(stopAll);

    it('become ready without the kinds and the policies of pools', async () => {
      const objects = await kustomizeBase(['controller-webhook-only']);
      const statusWriters = `system:serviceaccount:${OVN_KUBERNETES.namespace}:${OVN_KUBERNETES.name}`;
      await install(
        objects.map((object) => {
          const { kind, data } = object as Manifest & { data?: object };
          return kind === 'ConfigMap' ? { ...object, data: { ...data, statusWriters } } : object;
        }),
      );
      await start('controller');
      await start('webhook');
      expect(await plane.client.list(ADDRESS_LEASES).catch(String)).to.include('404');
    });

    it('create the claim of a VM, which OVN-Kubernetes fills, refer its launcher to it, and release it', async () => {
      const config = { name: 'ovn', type: 'ovn-k8s-cni-overlay', topology: 'layer2', allowPersistentIPs: true };
      await plane.client.create(NETWORK_ATTACHMENT_DEFINITIONS, nad('ovn', { cniVersion: '1.0.0', ...config }));
      const instance = await createVm('vm1', { data: 'ovn' });
      expect((await claim('vm1')).spec.network).to.equal('ovn');
      const status = { ips: ['192.0.2.7/24'], conditions: [] };
      await ovn.patch(IPAM_CLAIMS, claimOf('vm1'), { type: 'merge', body: { status } }, { subresource: 'status' });
      await expectReference(instance);
      expect((await claim('vm1')).status?.ips).to.deep.equal(status.ips);
      await deleteVm('vm1');
    });
  });

  describe('with the default installation', () => {
    before('install it', async () => install(await readInstallation()));
    after(stopAll);

    it('install the CNI plugin on the node', async () => {
      const { status, stderr } = await node.runInit(workload('agent'));
      expect(status, stderr).to.equal(0);
      expect(await readdir(node.hostPath('opt/cni/bin'))).to.deep.equal(['holdfast']);
    });

    for (const name of ['controller', 'webhook', 'ipam', 'capacity'] as const) {
      it(`run ${name} as user ${String(UIDS[name])} until it is ready`, async () => {
        await start(name);
        await expectIdentity(name);
      });
    }

    it('run the agent as root without capabilities until it is ready', async () => {
      for (const plugin of ['multus', 'bridge']) {
        const path = join(node.hostPath('opt/cni/bin'), plugin);
        await copyFile(process.execPath, path);
        await chmod(path, 0o755);
      }
      await start('agent');
      await expectIdentity('agent');
      expect(await readdir(node.hostPath('run/holdfast'))).to.include('agent.sock');
    });

    it('serve a VM, and the kubectl plugin of the image shows its address', async () => {
      const ipam = { type: 'holdfast', subnets: [{ cidr: '192.0.2.0/24' }] };
      const config = { cniVersion: '1.0.0', name: 'blue', type: 'bridge', allowPersistentIPs: true, ipam };
      await plane.client.create(NETWORK_ATTACHMENT_DEFINITIONS, nad('blue', config));
      await expectReference(await createVm('vm2', { data: 'blue' }));
      const [address] = await until('addresses', async () => (await claim('vm2')).status?.ips);
      const mounts = [{ source: plane.kubeconfig, target: '/kubeconfig' }];
      const args = ['ips', '--kubeconfig', '/kubeconfig', '--namespace', NAMESPACE];
      // the kubeconfig is readable by its owner only
      const { stdout, stderr } = await image.run({ entrypoint: CLI, args, mounts, uid: 0 });
      expect(stdout, stderr).to.match(new RegExp(`^VM +vm2 +data +${NAMESPACE}/blue +${address!.split('/')[0]!}`, 'm'));
    });
  });

  describe('with the variant for cert-manager, which is simulated', () => {
    let certManager: SimulatedCertManager;
    let certificates: Manifest[];
    const VOLUME = 'holdfast-webhook-certificate';

    before('install it', async () => {
      const objects = await kustomizeBase(['cert-manager']);
      certificates = objects.filter(({ kind, spec }) => kind === 'Certificate' && 'dnsNames' in (spec as object));
      certManager = await SimulatedCertManager.create(plane.client);
      await install(objects);
      for (const name of ['holdfast-webhook-tls', 'holdfast-ipam-tls']) {
        const metadata = { namespace: HOLDFAST_NAMESPACE, name };
        await plane.client.delete(resourceOf({ apiVersion: 'v1', kind: 'Secret', metadata }), metadata);
      }
      for (const certificate of certificates) await certManager.issue(certificate);
      for (const object of objects.filter(({ kind }) => CONFIGURATIONS.test(kind))) await certManager.inject(object);
    });
    after(stopAll);

    it('serve with the certificates of the mounted Secrets', async () => {
      await Promise.all((['controller', 'webhook', 'ipam'] as const).map(start));
      await expectReference(await createVm('vm3', { data: 'blue' }));
      await until('addresses', async () => (await claim('vm3')).status?.ips?.length);
    });

    it('serve with the next certificate as soon as it is mounted, without a restart', async () => {
      const { ports } = running.get('webhook')!;
      const before = await servedBy(ports.https!);
      await certManager.issue(certificates.find(({ metadata }) => metadata.name === 'holdfast-webhook')!);
      await node.syncSecret(HOLDFAST_NAMESPACE, VOLUME);
      await until('the next certificate', async () => (await servedBy(ports.https!)) !== before);
      const { metadata } = await plane.client.get(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name: 'vm3' });
      await expectReference({ ...vmi({ data: 'blue' }, { name: 'vm3' }), metadata });
    });
  });

  describe('with the variant all-in-one', () => {
    after(stopAll);

    it('run one process as user 1000 until it is ready, which serves a VM', async () => {
      await install(await kustomizeBase(['all-in-one']));
      await start('all');
      await expectIdentity('all');
      await expectReference(await createVm('vm4', { data: 'blue' }));
      await until('addresses', async () => (await claim('vm4')).status?.ips?.length);
      await deleteVm('vm4');
    });
  });
});

/** The serial number of the certificate that a port presents. */
function servedBy(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().serialNumber);
      socket.destroy();
    });
    socket.once('error', reject);
  });
}
