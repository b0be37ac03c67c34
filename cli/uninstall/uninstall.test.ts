import { expect } from 'chai';
import type { KubeObject } from '../../api/meta.js';
import { CLAIM_FINALIZER } from '../../api/names.js';
import { StatusError, TransportError } from '../../kube/errors.js';
import { InstalledCluster, ownClaim } from '../testing/installed-cluster.js';
import { ProcessKilled } from '../testing/memory-cluster.js';
import { DATA, EVERYTHING, FOREIGN, KINDS, MANIFESTS, NODE, PLAIN, installed } from '../testing/installed-objects.js';
import { uninstall } from './uninstall.js';

/** What has to be true after each write. */
function expectSafe(cluster: InstalledCluster): void {
  const has = (kind: string, name: string) => cluster.has(kind, name);
  const agentsRun = cluster.names('Pod').some((name) => name.includes('holdfast-agent-'));
  const processesRun = cluster.names('Pod').some((name) => name.includes('holdfast-system/'));
  const isWebhookConfigured = has('MutatingWebhookConfiguration', 'holdfast-webhook');
  if (isWebhookConfigured) {
    expect(has('Deployment', 'holdfast-system/holdfast-webhook'), 'who serves the webhook').to.equal(true);
  } else expect(agentsRun, 'agents that allocate addresses without the webhook').to.equal(false);
  if (has('ValidatingAdmissionPolicyBinding', 'holdfast-claim-guard')) {
    expect(has('ConfigMap', 'holdfast-system/holdfast-policies'), 'parameters without which it denies').to.equal(true);
  } else expect(processesRun, 'processes that run without policies').to.equal(false);
  const isDataComplete = DATA.every(({ kind = '', metadata }) => {
    const { namespace, name } = metadata;
    return has(kind, namespace === undefined ? name : `${namespace}/${name}`);
  });
  if (!isDataComplete) {
    expect(agentsRun || processesRun, 'processes that would write the data again').to.equal(false);
    expect(has('ValidatingAdmissionPolicyBinding', 'holdfast-pool-claim-status'), 'a policy without its kind').to.equal(
      false,
    );
  }
  if (cluster.names('AddressLease').length < 2) expect(cluster.names('AddressPool')).to.deep.equal([]);
  expect(cluster.names()).to.include.members(
    FOREIGN.map(
      ({ kind = '', metadata }) =>
        `${kind} ${metadata.namespace === undefined ? '' : `${metadata.namespace}/`}${metadata.name}`,
    ),
  );
}

const FOREIGN_NAMES = [
  'ConfigMap tenant/holdfast',
  'CustomResourceDefinition ipamclaims.k8s.cni.cncf.io',
  'IPAMClaim tenant/of-others',
  'Namespace tenant',
  'NetworkAttachmentDefinition tenant/blue',
  'Node node-1',
  'Service tenant/climbing',
];
const DATA_NAMES = [
  'AddressBlock blue.0',
  'AddressLease blue.10-0-0-1',
  'AddressLease blue.10-0-0-2',
  'AddressPool blue.tenant',
  'CustomResourceDefinition addressblocks.ipam.holdfast.dev',
  'CustomResourceDefinition addressleases.ipam.holdfast.dev',
  'CustomResourceDefinition addresspools.ipam.holdfast.dev',
  'ValidatingAdmissionPolicy holdfast-configmap-informer',
  'ValidatingAdmissionPolicyBinding holdfast-configmap-informer',
  'IPAMClaim tenant/vm1.data',
  'IPAMClaim tenant/vm2.data',
];

describe('kubectl holdfast uninstall', () => {
  for (const [title, options, left] of [
    ['removes the workloads and keeps kinds and data', PLAIN, [...FOREIGN_NAMES, ...DATA_NAMES]],
    ['with --everything removes all of Holdfast, and nothing of other software', EVERYTHING, FOREIGN_NAMES],
  ] as const) {
    it(title, async () => {
      const cluster = installed();
      cluster.afterWrite = () => expectSafe(cluster);
      expect(await uninstall(options, cluster.deps())).to.equal(true);
      expect(cluster.names()).to.deep.equal([...left].sort());
      const writes = cluster.writes;
      expect(await uninstall(options, cluster.deps()), 'a second time').to.equal(true);
      expect(cluster.writes - writes, 'writes of the second time').to.equal(0);
      expect(cluster.printed.at(-1)).to.equal('There is nothing to remove on https://lab.');
    });

    it(`${title}, although it is killed after each write`, async () => {
      const cluster = installed();
      cluster.afterWrite = () => expectSafe(cluster);
      let end: unknown;
      do {
        cluster.killAfter = cluster.writes + 1;
        end = await uninstall(options, cluster.deps()).catch((error: unknown) => error);
        if (end !== true) expect(end).to.be.instanceOf(ProcessKilled);
      } while (end !== true);
      expect(cluster.names()).to.deep.equal([...left].sort());
    });
  }

  it('removes the extended resources of nodes, and nothing else of their status', async () => {
    const cluster = installed();
    let node: KubeObject | undefined;
    await uninstall(EVERYTHING, cluster.deps());
    await cluster
      .deps()
      .client.listAs(
        { group: '', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false },
        (each) => (node = each),
      );
    expect(node).to.deep.include({ status: { capacity: { cpu: '4' }, allocatable: {} } });
  });

  it('works after kubectl delete has left kinds, pools and claims stuck by their finalizers', async () => {
    const cluster = new InstalledCluster([...KINDS, ...FOREIGN, ...DATA, NODE]);
    const { client } = cluster.deps();
    const crds = {
      group: 'apiextensions.k8s.io',
      version: 'v1',
      plural: 'customresourcedefinitions',
      kind: 'CustomResourceDefinition',
      namespaced: false,
    };
    await client.delete(crds, { name: 'addresspools.ipam.holdfast.dev' });
    await client.delete(crds, { name: 'addressleases.ipam.holdfast.dev' });
    expect(cluster.names('AddressPool')).to.deep.equal(['AddressPool blue.tenant']);
    expect(await uninstall(EVERYTHING, cluster.deps())).to.equal(true);
    expect(cluster.names()).to.deep.equal(FOREIGN_NAMES);
  });

  it('keeps a namespace in which other software runs pods', async () => {
    const cluster = installed([
      { apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'holdfast-system', name: 'debug' } },
    ]);
    await uninstall(PLAIN, cluster.deps());
    expect(cluster.names('Namespace')).to.deep.equal(['Namespace holdfast-system', 'Namespace tenant']);
    expect(cluster.names('ServiceAccount')).to.deep.equal([]);
    expect(cluster.printed.join('\n')).to.include('Namespace holdfast-system: it contains Pod debug');
  });

  it('retries while the API server is busy', async () => {
    const cluster = installed();
    let busy = 3;
    cluster.beforeWrite = () => {
      if (busy-- > 0)
        throw new StatusError({ request: 'DELETE', status: 429, reason: 'TooManyRequests', message: 'later' });
    };
    expect(await uninstall(EVERYTHING, cluster.deps())).to.equal(true);
    expect(cluster.names()).to.deep.equal(FOREIGN_NAMES);
  });

  it('continues when the API server has restarted', async () => {
    const cluster = installed();
    let refused = 0;
    const restart = () => {
      // away for three requests in ten
      if (cluster.writes > 0 && refused++ % 10 < 3) throw new TransportError('unsent', 'connect ECONNREFUSED');
    };
    cluster.beforeList = restart;
    cluster.beforeWrite = restart;
    expect(await uninstall(EVERYTHING, cluster.deps())).to.equal(true);
    expect(refused).to.be.greaterThan(30);
    expect(cluster.names()).to.deep.equal(FOREIGN_NAMES);
  });

  for (const half of [0, 1]) {
    it(`removes an installation of which only every second object exists, beginning with ${half}`, async () => {
      const objects = MANIFESTS.filter((_, index) => index % 2 === half);
      const cluster = new InstalledCluster([...objects, ...FOREIGN]);
      expect(await uninstall(EVERYTHING, cluster.deps())).to.equal(true);
      expect(cluster.names()).to.deep.equal(FOREIGN_NAMES.filter((name) => name !== 'Node node-1'));
    });
  }

  it('removes a claim that changes meanwhile', async () => {
    const cluster = installed();
    let isChanged = false;
    cluster.beforeWrite = ({ verb, name }) => {
      if (isChanged || verb !== 'patch' || name !== 'vm1.data') return;
      isChanged = true;
      cluster.add(ownClaim('tenant/vm1.data', { finalizers: [CLAIM_FINALIZER] }));
    };
    await uninstall(EVERYTHING, cluster.deps());
    expect(cluster.names('IPAMClaim')).to.deep.equal(['IPAMClaim tenant/of-others']);
  });
});
