import { join } from 'node:path';
import { expect } from 'chai';
import { type Manifest, createAll, readManifests } from '../../bed/control-plane/objects.js';
import { MANIFESTS } from '../../bed/holdfast/manifests.js';
import { until } from '../../bed/processes/wait.js';
import type { Client } from '../../kube/client.js';
import { CONFIG_MAPS, IPAM_CLAIMS, NAMESPACES } from '../../kube/resources.js';
import { type Account, attributesOf, can } from './access-reviews.js';
import { ServerState } from './server-state.js';
import { EMPTY_SERVER } from './shared-server.js';

const USER: Account = { namespace: 'default', name: 'somebody' };
const KEPT = { namespace: 'kept', name: 'kept' };
const LOST = { namespace: 'kept', name: 'lost' };
const CLAIM = { namespace: 'new', name: 'claim' };

function object(kind: string, metadata: object, more: object = {}): Manifest {
  return { apiVersion: 'v1', kind, metadata, ...more } as Manifest;
}

describe('a kube-apiserver that suites share', function () {
  let client: Client;
  this.timeout(60_000);

  describe('while the first suite uses it', function () {
    EMPTY_SERVER.use(this, (plane) => void ({ client } = plane));

    it('returns to a former state: what was created is deleted, and what was changed or deleted is as before', async () => {
      await createAll(client, [
        object('Namespace', { name: 'kept' }),
        ...[KEPT, LOST].map((metadata) => object('ConfigMap', metadata, { data: { a: '1' } })),
      ]);
      const former = await ServerState.read(client);
      await client.patch(CONFIG_MAPS, KEPT, { type: 'merge', body: { data: { a: '2', b: '2' } } });
      await client.delete(CONFIG_MAPS, LOST);
      const crds = await readManifests(join(MANIFESTS, 'crds', 'ipamclaims.yaml'));
      await createAll(client, [object('Namespace', { name: 'new' }), ...crds]);
      const metadata = { ...CLAIM, finalizers: ['example.com/a'] };
      const claim = { metadata, spec: { network: 'blue', interface: 'net1' } };
      await until('claims are served', () => client.create(IPAM_CLAIMS, claim));

      const deleted = await former.restore(client);
      expect([...deleted].sort()).to.deep.equal(['CustomResourceDefinition', 'IPAMClaim', 'Namespace']);
      for (const ref of [KEPT, LOST])
        expect(await client.get(CONFIG_MAPS, ref))
          .to.have.property('data')
          .that.deep.equals({ a: '1' });
      expect(await client.find(IPAM_CLAIMS, CLAIM)).to.equal(undefined);
      expect(await client.find(NAMESPACES, { name: 'new' })).to.equal(undefined);
      expect([...(await former.restore(client))]).to.deep.equal([]);
    });

    it('grants the rights that a suite binds', async () => {
      const binding = object('ClusterRoleBinding', { name: 'of-the-first-suite' });
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:aggregate-to-view' };
      const subjects = [{ kind: 'ServiceAccount', ...USER }];
      await createAll(client, [{ ...binding, apiVersion: `${roleRef.apiGroup}/v1`, roleRef, subjects }]);
      await until('the binding is in force', () => can(client, USER, attributesOf('pods.', 'list')));
    });
  });

  describe('when the next suite begins', function () {
    EMPTY_SERVER.use(this, () => undefined);

    it('has no objects and grants no rights of the suite before', async () => {
      expect(await can(client, USER, attributesOf('pods.', 'list'))).to.equal(false);
      for (const name of ['kept', 'new']) expect(await client.find(NAMESPACES, { name }), name).to.equal(undefined);
    });
  });
});
