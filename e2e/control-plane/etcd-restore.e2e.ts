import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { NETWORK_STATUS_ANNOTATION, REQUESTED_ADDRESSES_ANNOTATION } from '../../api/names.js';
import { type Pod, podInterfaceName } from '../../api/pod.js';
import {
  ADDRESS_LEASES,
  CONFIG_MAPS,
  IPAM_CLAIMS,
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  PODS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
} from '../../kube/resources.js';
import { bareAddress } from '../../test/bare-address.js';
import { NAMESPACE, launcher, nad, vmi, vmiSpec } from '../../test/objects/workload-objects.js';
import { nodeOfImage } from '../../test/image/node.js';
import { type ControlPlane, startControlPlane } from '../../bed/control-plane/control-plane.js';
import { createCrds, kubeVirtKind } from '../../bed/control-plane/crds.js';
import { createAll } from '../../bed/control-plane/objects.js';
import { findFreePorts } from '../../bed/processes/ports.js';
import type { Child } from '../../bed/processes/processes.js';
import { SERVICE_ACCOUNTS, writeServiceAccountKubeconfig } from '../../bed/control-plane/service-accounts.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import { nodeFlags } from '../../bed/holdfast/image.js';
import { readInstallation } from '../../bed/holdfast/manifests.js';
import { CURRENT_RELEASE, executableOf } from '../../bed/holdfast/release.js';
import { waitForEvent } from '../../bed/story/events.js';

const SYSTEM = 'holdfast-system';
const INSTALLED_KINDS = /^(Namespace|CustomResourceDefinition|ConfigMap|ServiceAccount|(Cluster)?Role(Binding)?)$/;
/** More than an API server writes when it starts. */
const FORGOTTEN_WRITES = 400;

describe('Processes whose etcd is restored from a backup', () => {
  let plane: ControlPlane;
  let ipamMetricsUrl: string;

  before(async function () {
    this.timeout(15 * 60_000); // the first run builds the API server
    plane = await startControlPlane();
    const kinds = [
      ['virtualmachines', 'VirtualMachine'],
      ['virtualmachineinstances', 'VirtualMachineInstance'],
      ['kubevirts', 'KubeVirt'],
    ] as const;
    await createCrds(
      plane.client,
      kinds.map(([plural, kind]) => kubeVirtKind(plural, kind)),
    );
    await createAll(
      plane.client,
      (await readInstallation()).filter(({ kind }) => INSTALLED_KINDS.test(kind)),
    );
    await plane.client.create(NAMESPACES, { metadata: { name: NAMESPACE } });
    await plane.client.create(SERVICE_ACCOUNTS, { metadata: { namespace: NAMESPACE, name: 'default' } }); // for pods
    const ipam = { type: 'holdfast', subnets: [{ cidr: '10.63.0.0/24' }] };
    const config = { cniVersion: '0.4.0', name: 'blue-net', type: 'bridge', allowPersistentIPs: true, ipam };
    await plane.client.create(NETWORK_ATTACHMENT_DEFINITIONS, nad('blue', config));
  });
  after(() => plane.stop());

  /** Starts a process, which starts again when it ends. */
  async function run(name: 'controller' | 'ipam'): Promise<Child> {
    const [health, metrics, validation] = await findFreePorts(3);
    const kubeconfig = await writeServiceAccountKubeconfig(plane, { namespace: SYSTEM, name: `holdfast-${name}` });
    if (name === 'ipam') ipamMetricsUrl = `http://127.0.0.1:${String(metrics)}/metrics`;
    const flags = [
      `--kubeconfig=${kubeconfig}`,
      `--health-bind-address=127.0.0.1:${String(health)}`,
      `--metrics-bind-address=127.0.0.1:${String(metrics)}`,
      ...(name === 'ipam'
        ? [`--validation-bind-address=127.0.0.1:${String(validation)}`, '--max-staleness=500ms', '--collect-after=2s']
        : []),
    ];
    const options = {
      name: `holdfast-${name}`,
      command: await nodeOfImage(),
      args: [...(await nodeFlags()), executableOf(CURRENT_RELEASE), name, ...flags],
      env: { HOLDFAST_METRICS_SECURE: 'false' },
    };
    const child = plane.processes.start(options);
    plane.processes.keepRunning(child, options);
    return child;
  }

  async function createVm(name: string, requests?: Record<string, readonly string[]>): Promise<string> {
    const annotations = { [REQUESTED_ADDRESSES_ANNOTATION]: JSON.stringify(requests ?? {}) };
    const spec = { template: { ...(requests && { metadata: { annotations } }), spec: vmiSpec({ data: 'blue' }) } };
    const { metadata } = await plane.client.create(VIRTUAL_MACHINES, {
      metadata: { name, namespace: NAMESPACE },
      spec,
    });
    return metadata.uid ?? '';
  }

  function claimOf(name: string, network = 'data'): Promise<IPAMClaim | undefined> {
    return plane.client.find(IPAM_CLAIMS, { namespace: NAMESPACE, name: `${name}.${network}` });
  }

  /** Waits for the addresses of a VM. */
  function addressesOf(name: string, network = 'data'): Promise<readonly string[]> {
    return until(`${name} has addresses`, async () => {
      const { ips = [] } = (await claimOf(name, network))?.status ?? {};
      return ips.length > 0 && ips;
    });
  }

  /** Creates VMI and launcher of a VM, as KubeVirt does. */
  async function startVm(name: string, uid: string): Promise<void> {
    const { metadata, spec } = vmi({ data: 'blue' }, { name, vm: uid });
    const { uid: _vmi, ...rest } = metadata;
    const created = await plane.client.create(VIRTUAL_MACHINE_INSTANCES, { metadata: rest, spec } as never);
    const pod = launcher([{ nad: 'blue', network: 'data' }], {
      name: `${name}-launcher`,
      vmi: created.metadata.uid ?? '',
      vmiName: name,
    });
    const { uid: _pod, ...podMetadata } = pod.metadata;
    const containers = [{ name: 'compute', image: 'registry.example/compute' }];
    await plane.client.create(PODS, { metadata: podMetadata, spec: { containers } } as Pod);
    const body = { status: pod.status };
    await plane.client.patch(PODS, podMetadata, { type: 'merge', body }, { subresource: 'status' });
  }

  /** Reports the interfaces of a launcher, as Multus on its node does. */
  async function report(name: string, ips: Record<string, readonly string[]>): Promise<void> {
    const statuses = Object.entries(ips).map(([network, addresses]) => {
      return { name: `${NAMESPACE}/blue`, interface: podInterfaceName(network), ips: addresses.map(bareAddress) };
    });
    const body = { metadata: { annotations: { [NETWORK_STATUS_ANNOTATION]: JSON.stringify(statuses) } } };
    await plane.client.patch(PODS, { namespace: NAMESPACE, name: `${name}-launcher` }, { type: 'merge', body });
  }

  async function waitClaimGone(name: string): Promise<void> {
    await untilValue(
      `the claim of ${name} to be gone`,
      () => claimOf(name),
      (claim) => claim === undefined,
    );
  }

  it('end, start again, allocate addresses by the restored state, and report a running VM whose lease was lost', async () => {
    const children = [await run('controller'), await run('ipam')];
    await createVm('vm1');
    const kept = await addressesOf('vm1');
    const running = await createVm('running');
    const saved = await addressesOf('running');
    await startVm('running', running);
    await plane.etcd.save();

    await createVm('vm2');
    await addressesOf('vm2');
    const body = { spec: { template: { spec: vmiSpec({ data: 'blue', more: 'blue' }) } } };
    await plane.client.patch(VIRTUAL_MACHINES, { namespace: NAMESPACE, name: 'running' }, { type: 'merge', body });
    const plugged = await addressesOf('running', 'more');
    await plane.client.delete(VIRTUAL_MACHINES, { namespace: NAMESPACE, name: 'vm1' });
    await waitClaimGone('vm1');
    const metadata = { namespace: NAMESPACE, name: 'counter' };
    await plane.client.create(CONFIG_MAPS, { metadata });
    for (let count = 0; count < FORGOTTEN_WRITES; count++) {
      await plane.client.patch(CONFIG_MAPS, metadata, { type: 'merge', body: { data: { count: String(count) } } });
    }

    await plane.apiServer.kill();
    await plane.etcd.goBack();
    await plane.apiServer.start();
    for (const child of children) {
      await child.exited;
      expect(() => child.assertRunning()).to.throw(/ended with code 1;/);
      expect(await readFile(child.logFile, 'utf8')).to.include('a restore of etcd from a backup');
    }
    expect(await claimOf('vm2')).to.equal(undefined);
    expect(await claimOf('running', 'more')).to.equal(undefined);
    const [address = ''] = plugged.map(bareAddress);
    const leased = (await plane.client.list(ADDRESS_LEASES)).items.map(({ spec }) => spec.address);
    expect(leased).to.include.members(saved.map(bareAddress)).and.not.to.include(address);

    await createVm('vm3', { data: [address] });
    expect(await addressesOf('vm3')).to.deep.equal(plugged);
    expect(await addressesOf('vm1')).to.deep.equal(kept);
    await report('running', { data: saved, more: plugged });
    const about = { namespace: NAMESPACE, name: 'running' };
    const { message } = await waitForEvent(plane.client, about, 'AddressNotLeased');
    expect(message).to.include(`has address ${address} of AddressPool`).and.to.include('leased to another workload');
    await until('the metric to count it', async () =>
      /^holdfast_ipam_unleased_addresses 1$/m.test(await (await fetch(ipamMetricsUrl)).text()),
    );
    await plane.client.delete(VIRTUAL_MACHINES, { namespace: NAMESPACE, name: 'vm1' });
    await waitClaimGone('vm1');
  });
});
