import { join } from 'node:path';
import { expect } from 'chai';
import { KEPT_POLICY } from '../cli/uninstall/plan.js';
import type { ControlPlane } from '../bed/control-plane/control-plane.js';
import { type Manifest, createAll, readManifests, resourceOf } from '../bed/control-plane/objects.js';
import { capture } from '../bed/processes/processes.js';
import { until } from '../bed/processes/wait.js';
import { MANIFESTS } from '../bed/holdfast/manifests.js';
import { RESPONDERS_NAMESPACE } from '../api/names.js';
import { messageOf } from '../kube/errors.js';
import { ADDRESS_LEASES, ADDRESS_POOLS, IPAM_CLAIMS, NAMESPACES } from '../kube/resources.js';
import { goTool } from '../test/go-tools.js';
import { leaseOf } from '../test/objects/lease-objects.js';
import { FOREIGN_KINDS } from './testing/foreign-kinds.js';
import { VARIANTS, copyChart, keyOf, helmTemplate, kustomizeBase, withValues } from './testing/render.js';
import { endDeletion } from './testing/server-state.js';
import { EMPTY_SERVER } from './testing/shared-server.js';

const RELEASE_NAMESPACE = 'ops';

describe('On a kube-apiserver', function () {
  this.timeout(120_000);
  let plane: ControlPlane;

  EMPTY_SERVER.use(this, async (started) => {
    plane = started;
    await Promise.all([goTool('helm'), goTool('kustomize')]);
    await createAll(plane.client, FOREIGN_KINDS);
  });

  async function tryOut(object: Manifest): Promise<void> {
    const { name, namespace } = object.metadata;
    const patch = { type: 'apply', object, fieldManager: 'holdfast-install', force: true } as const;
    await plane.client.patch(resourceOf(object), { name, namespace }, patch, { dryRun: true });
  }

  it('all objects of all variants are accepted with all their fields', async () => {
    const rendered = Object.values(VARIANTS).flatMap(({ components, values }) => [
      kustomizeBase(components),
      helmTemplate(values),
    ]);
    const objects = new Map((await Promise.all(rendered)).flat().map((object) => [JSON.stringify(object), object]));
    await createAll(plane.client, ['holdfast-system', 'holdfast-agents', RESPONDERS_NAMESPACE].map(namespaceOf));
    // the API server refuses a pod without its account
    await createAll(plane.client, [TEST_ACCOUNT]);
    for (const kind of ['SecurityContextConstraints', 'Certificate', 'ServiceMonitor', 'PrometheusRule'])
      await until(`${kind} is served`, () => tryOut(objectOf(kind)).then(() => true));
    for (const object of objects.values()) await tryOut(object).catch((error: unknown) => fail(object, error));
    // the releases below create it
    await plane.client.delete(NAMESPACES, { name: RESPONDERS_NAMESPACE });
    await endDeletion(plane.client, RESPONDERS_NAMESPACE);

    function objectOf(kind: string): Manifest {
      return [...objects.values()].find((object) => object.kind === kind)!;
    }
  });

  describe('a Helm release in a namespace of any name', () => {
    let chart = '';

    before(async () => {
      chart = join(plane.workDir, 'chart');
      await copyChart(chart);
    });

    async function helm(verb: string, release: string, ...more: string[]): Promise<string> {
      const access = ['--kubeconfig', plane.kubeconfig, '--namespace', RELEASE_NAMESPACE];
      return capture(await goTool('helm'), [verb, release, ...more, ...access]);
    }
    const install = (release: string, values: object, ...flags: string[]) =>
      withValues(values, (file) => helm('install', release, chart, '--create-namespace', '--values', file, ...flags));
    const uninstall = async (release: string) => {
      await helm('uninstall', release);
      await endDeletion(plane.client, RESPONDERS_NAMESPACE);
    };
    const agentsIn = (namespace: string) => ({ agent: { namespace }, image: { registry: 'registry.example.com' } });
    const deployment = (name: string) => ({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace: RELEASE_NAMESPACE },
    });
    const find = (object: Manifest) =>
      plane.client.find(resourceOf(object), { name: object.metadata.name, namespace: object.metadata.namespace });

    it('installs, upgrades and uninstalls, and keeps the kinds with pools, leases and claims', async () => {
      await install('holdfast', agentsIn('agents-1'));
      expect(await find(deployment('holdfast-controller'))).not.to.equal(undefined);
      await createState();

      await withValues({ ...agentsIn('agents-1'), controller: { replicas: 3 } }, (file) =>
        helm('upgrade', 'holdfast', chart, '--values', file),
      );
      expect(await find(deployment('holdfast-controller'))).to.have.nested.property('spec.replicas', 3);

      await uninstall('holdfast');
      expect(await find(deployment('holdfast-controller'))).to.equal(undefined);
      await expectState();
    });

    it('is reinstalled under its name, by a flag under another one, and leaves an existing CRD of claims unchanged', async () => {
      const [claimCrd] = await readManifests(join(MANIFESTS, 'crds', 'ipamclaims.yaml'));
      const theirs = { 'example.com/of-another-ipam': 'true' };
      await plane.client.patch(resourceOf(claimCrd!), claimCrd!.metadata, {
        type: 'merge',
        body: { metadata: { annotations: theirs } },
      });
      // Without a controller-manager the first namespace of the agents is never deleted.
      await install('holdfast', agentsIn('agents-2'));
      await expectState();
      await uninstall('holdfast');

      const refused = await install('other', agentsIn('agents-3')).catch(messageOf);
      expect(refused).to.include('addresspools.ipam.holdfast.dev').and.to.include('release-name');
      await install('other', agentsIn('agents-3'), '--take-ownership');
      await uninstall('other');
      await expectState();
      expect((await find(claimCrd!))?.metadata.annotations).to.include(theirs);
    });

    /** One pool, lease and claim. Without ipam, its webhook would reject the pool. */
    async function createState(): Promise<void> {
      const webhook = { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingWebhookConfiguration' };
      await plane.client.delete(resourceOf({ ...webhook, metadata: { name: 'holdfast-ipam' } }), {
        name: 'holdfast-ipam',
      });
      const spec = { network: 'blue', subnets: [{ cidr: '10.0.0.0/24' }] };
      await until('the pool is created', () =>
        plane.client.create(ADDRESS_POOLS, { metadata: { name: 'blue' }, spec }),
      );
      const { metadata, spec: leaseSpec } = leaseOf('10.0.0.1', 1);
      const { name, labels } = metadata;
      await plane.client.create(ADDRESS_LEASES, { metadata: { name, labels: labels! }, spec: leaseSpec });
      const claim = {
        metadata: { name: 'vm1.blue', namespace: 'default' },
        spec: { network: 'blue', interface: 'net1' },
      };
      await until('the claim is created', () => plane.client.create(IPAM_CLAIMS, claim));
    }

    async function expectState(): Promise<void> {
      for (const kind of [ADDRESS_POOLS, ADDRESS_LEASES, IPAM_CLAIMS]) {
        const { items } = await plane.client.list<never>(kind as never);
        expect(items, kind.plural).to.have.lengthOf(1);
      }
      for (const kind of KEPT_POLICY.kinds) await plane.client.get(kind, { name: KEPT_POLICY.name });
    }
  });
});

const TEST_ACCOUNT: Manifest = {
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name: 'holdfast-test', namespace: 'holdfast-system' },
};

function namespaceOf(name: string): Manifest {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
}

function fail(object: Manifest, error: unknown): never {
  throw new Error(`${keyOf(object)}: ${messageOf(error)}`, { cause: error });
}
