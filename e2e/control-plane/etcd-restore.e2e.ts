import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import {
  CONFIG_MAPS,
  IPAM_CLAIMS,
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  VIRTUAL_MACHINES,
} from '../../kube/resources.js';
import { NAMESPACE, nad, vm } from '../../test/workload-objects.js';
import { nodeOfImage } from '../../test/image/node.js';
import { type ControlPlane, startControlPlane } from '../bed/control-plane.js';
import { createCrds, kubeVirtKind } from '../bed/crds.js';
import { createAll } from '../bed/objects.js';
import { findFreePorts } from '../bed/ports.js';
import type { Child } from '../bed/processes.js';
import { writeServiceAccountKubeconfig } from '../bed/service-accounts.js';
import { until, untilValue } from '../bed/wait.js';
import { nodeFlags } from '../holdfast/image.js';
import { readInstallation } from '../holdfast/manifests.js';
import { CURRENT_RELEASE, executableOf } from '../holdfast/release.js';

const SYSTEM = 'holdfast-system';
const INSTALLED_KINDS = /^(Namespace|CustomResourceDefinition|ConfigMap|ServiceAccount|(Cluster)?Role(Binding)?)$/;
/** More than an API server writes when it starts. */
const FORGOTTEN_WRITES = 400;

describe('Processes whose etcd is restored from a backup', function () {
  this.timeout(120_000);
  let plane: ControlPlane;

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
    const ipam = { type: 'holdfast', subnets: [{ cidr: '10.63.0.0/24' }] };
    const config = { cniVersion: '0.4.0', name: 'blue-net', type: 'bridge', allowPersistentIPs: true, ipam };
    await plane.client.create(NETWORK_ATTACHMENT_DEFINITIONS, nad('blue', config));
  });
  after(() => plane.stop());

  /** Starts a process, which starts again when it ends. */
  async function run(name: 'controller' | 'ipam'): Promise<Child> {
    const [health, metrics, validation] = await findFreePorts(3);
    const kubeconfig = await writeServiceAccountKubeconfig(plane, { namespace: SYSTEM, name: `holdfast-${name}` });
    const flags = [
      `--kubeconfig=${kubeconfig}`,
      `--health-bind-address=127.0.0.1:${String(health)}`,
      `--metrics-bind-address=127.0.0.1:${String(metrics)}`,
      ...(name === 'ipam'
        ? [`--validation-bind-address=127.0.0.1:${String(validation)}`, '--max-staleness=500ms']
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

  async function createVm(name: string): Promise<void> {
    const { spec = {} } = vm({ data: 'blue' }, { name });
    await plane.client.create(VIRTUAL_MACHINES, { metadata: { name, namespace: NAMESPACE }, spec });
  }

  function claimOf(name: string): Promise<IPAMClaim | undefined> {
    return plane.client.find(IPAM_CLAIMS, { namespace: NAMESPACE, name: `${name}.data` });
  }

  /** Waits for the addresses of a VM. */
  function addressesOf(name: string): Promise<readonly string[]> {
    return until(`${name} has addresses`, async () => {
      const { ips = [] } = (await claimOf(name))?.status ?? {};
      return ips.length > 0 && ips;
    });
  }

  it('end, start again, and allocate addresses by the restored state', async () => {
    const children = [await run('controller'), await run('ipam')];
    await createVm('vm1');
    const kept = await addressesOf('vm1');
    await plane.etcd.save();

    await createVm('vm2');
    await addressesOf('vm2');
    await plane.client.delete(VIRTUAL_MACHINES, { namespace: NAMESPACE, name: 'vm1' });
    await untilValue(
      'the claim of vm1 to be gone',
      () => claimOf('vm1'),
      (claim) => claim === undefined,
    );
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
    await createVm('vm3');
    expect(await addressesOf('vm3')).not.to.deep.equal(kept);
    expect(await addressesOf('vm1')).to.deep.equal(kept);
    await plane.client.delete(VIRTUAL_MACHINES, { namespace: NAMESPACE, name: 'vm1' });
    await untilValue(
      'the claim of vm1 to be gone',
      () => claimOf('vm1'),
      (claim) => claim === undefined,
    );
  });
});
