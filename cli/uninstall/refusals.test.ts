import { expect } from 'chai';
import { POOL_FINALIZER } from '../../api/names.js';
import { StatusError } from '../../kube/errors.js';
import { CommandError } from '../command-error.js';
import { livePod } from '../testing/migration-world.js';
import { EVERYTHING, PLAIN, installed, own, processPod } from '../testing/installed-objects.js';
import { uninstall } from './uninstall.js';

describe('kubectl holdfast uninstall, before it removes anything,', () => {
  describe('asks', () => {
    for (const [title, options, answer, removes] of [
      ['and removes nothing without the word', EVERYTHING, 'yes', false],
      ['and removes nothing if the input ends', PLAIN, '', false],
      ['for another word with --everything', EVERYTHING, 'uninstall', false],
      ['and continues after the word', EVERYTHING, ' everything ', true],
      ['and continues after its own word without --everything', PLAIN, 'uninstall', true],
    ] as const) {
      it(title, async () => {
        const cluster = installed();
        cluster.answer = answer;
        expect(await uninstall({ ...options, yes: false }, cluster.deps())).to.equal(removes);
        expect(cluster.asked[0]).to.include('https://lab');
        expect(cluster.writes > 0).to.equal(removes);
      });
    }

    it('and refuses without a terminal and --yes', async () => {
      const cluster = installed();
      await expectRefusal(uninstall({ ...EVERYTHING, yes: false }, cluster.deps()), /no terminal.*--yes/);
      expect(cluster.writes).to.equal(0);
    });
  });

  it('with --dry-run prints the plan, and writes nothing', async () => {
    const cluster = installed();
    expect(await uninstall({ ...EVERYTHING, yes: false, dryRun: true }, cluster.deps())).to.equal(true);
    expect(cluster.writes).to.equal(0);
    const text = cluster.printed.join('\n');
    for (const line of [
      'claims: 2 IPAMClaims',
      '1 pool, 1 block, 2 leases',
      '1 node',
      'DaemonSet holdfast-agents/holdfast-agent',
      'Nothing has been removed',
    ])
      expect(text).to.include(line);
  });

  describe('while pods use addresses', () => {
    const launcher = {
      ...livePod('tenant/launcher', {
        vmi: 'vm1',
        annotations: { 'k8s.v1.cni.cncf.io/networks': '[{"name":"blue","ipam-claim-reference":"vm1.data"}]' },
      }),
      apiVersion: 'v1',
      kind: 'Pod',
    };
    launcher.metadata.labels = { 'kubevirt.io': 'virt-launcher' };
    const plain = { ...livePod('tenant/web', { uid: 'gone' }), apiVersion: 'v1', kind: 'Pod' };
    const ended = { ...livePod('tenant/job', { uid: 'gone', phase: 'Succeeded' }), apiVersion: 'v1', kind: 'Pod' };

    it('refuses to remove everything, and names VMs and pods', async () => {
      const cluster = installed([launcher, plain]);
      expect(await uninstall(EVERYTHING, cluster.deps())).to.equal(false);
      expect(cluster.writes).to.equal(0);
      expect(cluster.logged.join())
        .to.include('tenant/launcher (VM tenant/vm1), tenant/web')
        .and.include('--ignore-running-pods');
    });

    it('removes everything with --ignore-running-pods', async () => {
      const cluster = installed([launcher, plain]);
      expect(await uninstall({ ...EVERYTHING, ignoreRunningPods: true }, cluster.deps())).to.equal(true);
      expect(cluster.names('AddressLease')).to.deep.equal([]);
      expect(cluster.has('Pod', 'tenant/launcher')).to.equal(true);
    });

    it('removes the workloads alone without asking about them', async () => {
      expect(await uninstall(PLAIN, installed([launcher]).deps())).to.equal(true);
    });

    it('does not count pods that have ended', async () => {
      expect(await uninstall(EVERYTHING, installed([ended]).deps())).to.equal(true);
    });
  });

  describe('reports', () => {
    it('rights that the user lacks, before it removes anything', async () => {
      const cluster = installed();
      for (const right of ['delete customresourcedefinitions', 'patch nodes/status', 'delete clusterroles'])
        cluster.forbidden.add(right);
      await expectRefusal(
        uninstall(EVERYTHING, cluster.deps()),
        /you may not delete clusterroles\.rbac.*, delete customresourcedefinitions.*, patch nodes\/status in the whole cluster.*Nothing has been removed/,
      );
      expect(cluster.writes).to.equal(0);
    });

    it('kinds that the user may not list', async () => {
      const cluster = installed();
      cluster.refused.add('secrets');
      await expectRefusal(uninstall(PLAIN, cluster.deps()), /you may not list secrets in all namespaces/);
    });

    it('an error of the API server that stays', async () => {
      const cluster = installed();
      cluster.beforeWrite = ({ resource }) => {
        if (resource.plural === 'deployments')
          throw new StatusError({ request: 'DELETE', status: 403, reason: 'Forbidden', message: 'quota of deletes' });
      };
      expect(String(await uninstall(PLAIN, cluster.deps()).catch((error: unknown) => error))).to.include(
        'quota of deletes',
      );
      expect(
        cluster.has('ValidatingAdmissionPolicy', 'holdfast-claim-guard'),
        'policies stay while processes run',
      ).to.equal(true);
    });

    it('pods that do not end', async () => {
      const cluster = installed([processPod('holdfast-agents', 'holdfast-agent-2', 'agent')]);
      cluster.onSleep = () => cluster.add(processPod('holdfast-agents', 'holdfast-agent-2', 'agent'));
      await expectRefusal(uninstall(PLAIN, cluster.deps()), /pods are still there: holdfast-agents\/holdfast-agent-2/);
      expect(cluster.has('MutatingWebhookConfiguration', 'holdfast-webhook')).to.equal(true);
    });

    it('a finalizer of other software', async () => {
      const cluster = installed([own('AddressPool', 'red', [POOL_FINALIZER, 'backup.example.com/hold'])]);
      await expectRefusal(
        uninstall(EVERYTHING, cluster.deps()),
        /AddressPool red is still there.*finalizer backup\.example\.com\/hold/,
      );
    });

    it('an object that other software creates again', async () => {
      const cluster = installed();
      cluster.beforeWrite = ({ resource, name }) => {
        if (resource.plural !== 'deployments' || name !== 'holdfast-ipam') return;
        cluster.add({
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          metadata: { namespace: 'holdfast-system', name, uid: 'new' },
        });
      };
      await expectRefusal(
        uninstall(PLAIN, cluster.deps()),
        /Deployment holdfast-system\/holdfast-ipam was created again/,
      );
    });
  });
});

async function expectRefusal(result: Promise<unknown>, words: RegExp): Promise<void> {
  const error: unknown = await result.catch((thrown: unknown) => thrown);
  expect(error).to.be.instanceOf(CommandError);
  expect((error as CommandError).message).to.match(words);
}
