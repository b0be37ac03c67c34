import { expect } from 'chai';
import { DEPLOYED, Installation } from '../testing/installation.js';

/** Not stored, but created. */
const REVIEWS = ['subjectaccessreviews', 'tokenreviews'];
const WRITE_VERBS = ['create', 'update', 'patch', 'delete', 'deletecollection', '*'];

describe('the roles of the manifests', () => {
  let shipped: Installation;

  before(async () => {
    shipped = await Installation.read();
  });

  for (const process of DEPLOYED) {
    describe(`of the ${process} process`, () => {
      const name = `holdfast-${process}`;

      it('run it under its own identity', () => {
        expect(shipped.template(name).spec.serviceAccountName).to.equal(name);
        shipped.find('ServiceAccount', name);
        for (const kind of ['ClusterRoleBinding', 'RoleBinding']) {
          const { roleRef, subjects } = shipped.find(kind, name);
          expect(roleRef).to.include({ kind: kind.replace('Binding', ''), name });
          expect(subjects).to.deep.equal([{ kind: 'ServiceAccount', name, namespace: 'holdfast-system' }]);
        }
      });

      it('grant no rights by wildcard', () => {
        for (const { apiGroups = [], resources = [], nonResourceURLs = [], verbs } of shipped.rulesOf(process)) {
          const words = [...apiGroups, ...resources, ...nonResourceURLs, ...verbs];
          expect(words.filter((word) => word.includes('*'))).to.deep.equal([]);
        }
      });

      it('grant Secrets and Leases in its own namespace only, by name where RBAC can', () => {
        const { rules: everywhere } = shipped.find('ClusterRole', name);
        const { rules: here } = shipped.find('Role', name);
        const granted = everywhere.flatMap(({ resources }) => resources);
        expect(granted).not.to.include('leases');
        // the policy network-data limits these to one type
        const secrets = everywhere.filter(({ resources }) => resources?.includes('secrets')).map(({ verbs }) => verbs);
        expect(secrets).to.deep.equal(process === 'guest' ? [['create', 'patch']] : []);
        // the name of its own pod, whose image responders get, is not known
        const named = here.filter(({ resources, verbs }) => `${resources?.join()} ${verbs.join()}` !== 'pods get');
        for (const { verbs, resourceNames } of named) {
          if (!verbs.includes('create')) expect(resourceNames).to.have.length(1);
          else expect(verbs).to.deep.equal(['create']);
        }
      });
    });
  }

  const written: Record<string, string[]> = {
    webhook: ['mutatingwebhookconfigurations', 'secrets', ...REVIEWS],
    capacity: ['leases', 'nodes/status', ...REVIEWS],
    guest: ['addressleases', 'events', 'ipamclaims/status', 'leases', 'secrets', ...REVIEWS],
    controller: [
      ...['events', 'ipamclaims', 'leases', ...REVIEWS],
      ...['virtualmachineinstances/finalizers', 'virtualmachines/finalizers'],
    ],
    ipam: [
      'addressblocks',
      'addressblocks/status',
      'addressleases',
      'addresspools',
      'addresspools/status',
      'configmaps',
      'events',
      'ipamclaims/status',
      'leases',
      'secrets',
      ...REVIEWS,
      'validatingwebhookconfigurations',
    ],
  };
  for (const [process, resources] of Object.entries(written)) {
    it(`allow the ${process} to write ${resources.join(', ')}, and nothing else`, () => {
      const rules = shipped.rulesOf(process).filter(({ verbs }) => verbs.some((verb) => WRITE_VERBS.includes(verb)));
      expect([...new Set(rules.flatMap((rule) => rule.resources))].sort()).to.deep.equal(resources);
    });
  }

  it('add only read access to the aggregated roles of users', () => {
    const aggregated = shipped.objects.filter(({ metadata }) =>
      Object.keys(metadata.labels ?? {}).some((label) => label.startsWith('rbac.authorization.k8s.io/aggregate-to-')),
    );
    expect(aggregated).not.to.be.empty;
    const verbs = aggregated.flatMap(({ rules }) => rules.flatMap((rule) => rule.verbs));
    expect([...new Set(verbs)].sort()).to.deep.equal(['get', 'list', 'watch']);
  });
});
