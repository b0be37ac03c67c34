import { expect } from 'chai';
import type { KubeObject } from '../../api/meta.js';
import { CLAIM_FINALIZER, RESPONDERS_NAMESPACE } from '../../api/names.js';
import { StatusError, TransportError } from '../../kube/errors.js';
import { clusterResource } from '../../kube/resource.js';
import { NODES } from '../../kube/resources.js';
import { type InstalledCluster, ownClaim } from '../testing/installed-cluster.js';
import { ProcessKilled } from '../testing/memory-cluster.js';
import { EVERYTHING, uninstalled } from '../testing/installed-objects.js';
import { KEPT_POLICY } from './plan.js';
import { uninstall } from './uninstall.js';

/** What has to be true after each write. */
function expectSafe(cluster: InstalledCluster): void {
  if (cluster.names('AddressLease').length < 2) expect(cluster.names('AddressPool')).to.deep.equal([]);
  const kinds = cluster.names('CustomResourceDefinition').filter((name) => name.endsWith('.ipam.holdfast.dev'));
  const policies = cluster.names().filter((name) => name.endsWith(` ${KEPT_POLICY.name}`));
  if (kinds.length > 0) expect(policies, 'the policy that stays with the kinds').to.have.length(2);
  expect(cluster.names()).to.include.members(FOREIGN_NAMES);
}

const RESPONDER_CLAIM = `${RESPONDERS_NAMESPACE}/holdfast-responder-0a1b2c3d-0`;
const FOREIGN_NAMES = [
  'ConfigMap tenant/holdfast',
  'CustomResourceDefinition ipamclaims.k8s.cni.cncf.io',
  'IPAMClaim tenant/of-others',
  'Namespace tenant',
  'NetworkAttachmentDefinition tenant/blue',
  'Node node-1',
  'Service tenant/climbing',
];

describe('kubectl holdfast uninstall --everything', () => {
  it('removes all that a tool leaves of Holdfast, and nothing of other software', async () => {
    const cluster = uninstalled([ownClaim(RESPONDER_CLAIM, { annotations: {}, finalizers: [] })]);
    cluster.afterWrite = () => expectSafe(cluster);
    expect(await uninstall(EVERYTHING, cluster.deps())).to.equal(true);
    expect(cluster.names()).to.deep.equal(FOREIGN_NAMES);
    const writes = cluster.writes;
    expect(await uninstall(EVERYTHING, cluster.deps()), 'a second time').to.equal(true);
    expect(cluster.writes - writes, 'writes of the second time').to.equal(0);
    expect(cluster.printed.at(-1)).to.equal('There is nothing to remove on https://lab.');
  });

  it('removes all of it, although it is killed after each write', async () => {
    const cluster = uninstalled();
    cluster.afterWrite = () => expectSafe(cluster);
    let end: unknown;
    do {
      cluster.killAfter = cluster.writes + 1;
      end = await uninstall(EVERYTHING, cluster.deps()).catch((error: unknown) => error);
      if (end !== true) expect(end).to.be.instanceOf(ProcessKilled);
    } while (end !== true);
    expect(cluster.names()).to.deep.equal(FOREIGN_NAMES);
  });

  it('removes the extended resources of nodes, and nothing else of their status', async () => {
    const cluster = uninstalled();
    let node: KubeObject | undefined;
    await uninstall(EVERYTHING, cluster.deps());
    await cluster.deps().client.listAs(NODES, (each) => (node = each));
    expect(node).to.deep.include({ status: { capacity: { cpu: '4' }, allocatable: {} } });
  });

  it('works after kubectl delete has left kinds, pools and claims stuck by their finalizers', async () => {
    const cluster = uninstalled();
    const { client } = cluster.deps();
    const crds = clusterResource('apiextensions.k8s.io/v1', 'customresourcedefinitions', 'CustomResourceDefinition');
    await client.delete(crds, { name: 'addresspools.ipam.holdfast.dev' });
    await client.delete(crds, { name: 'addressleases.ipam.holdfast.dev' });
    expect(cluster.names('AddressPool')).to.deep.equal(['AddressPool blue.tenant']);
    expect(await uninstall(EVERYTHING, cluster.deps())).to.equal(true);
    expect(cluster.names()).to.deep.equal(FOREIGN_NAMES);
  });

  for (const [title, status, reason, message] of [
    ['is busy', 429, 'TooManyRequests', 'later'],
    [
      'still evaluates a policy that is gone',
      422,
      'Invalid',
      "ipamclaims.k8s.cni.cncf.io \"vm1.data\" is forbidden: ValidatingAdmissionPolicy 'holdfast-claim-guard' with binding 'holdfast-claim-guard' denied request: only Holdfast sets and removes the finalizer",
    ],
  ] as const) {
    it(`retries while the API server ${title}`, async () => {
      const cluster = uninstalled();
      let refused = 0;
      cluster.beforeWrite = () => {
        if (refused++ < 3) throw new StatusError({ request: 'PATCH', status, reason, message });
      };
      expect(await uninstall(EVERYTHING, cluster.deps())).to.equal(true);
      expect(cluster.names()).to.deep.equal(FOREIGN_NAMES);
    });
  }

  it('continues when the API server has restarted', async () => {
    const cluster = uninstalled();
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

  it('removes a claim that changes meanwhile', async () => {
    const cluster = uninstalled();
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
