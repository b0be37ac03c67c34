import { expect } from 'chai';
import { CLAIM_OWNER_NAME, CLAIM_OWNER_UID, POOL_FINALIZER, RESPONDERS_NAMESPACE } from '../../api/names.js';
import { StatusError } from '../../kube/errors.js';
import { CommandError } from '../exit-code.js';
import { ownClaim } from '../testing/installed-cluster.js';
import { livePod } from '../testing/migration-world.js';
import { EVERYTHING, PLAIN, installed, own, processPod, uninstalled } from '../testing/installed-objects.js';
import { uninstall } from './uninstall.js';

const launcher = {
  ...livePod('tenant/launcher', {
    vmi: 'vm1',
    annotations: { 'k8s.v1.cni.cncf.io/networks': '[{"name":"blue","ipam-claim-reference":"vm1.data"}]' },
  }),
  apiVersion: 'v1',
  kind: 'Pod',
};
launcher.metadata.labels = { 'kubevirt.io': 'virt-launcher' };
/** It ran before its claim took over its address, so it does not name the claim. */
const older = { ...launcher, metadata: { ...launcher.metadata, annotations: {} } };
const claimOfVm = ownClaim('tenant/vm1.late', { annotations: { [CLAIM_OWNER_NAME]: 'vm1', [CLAIM_OWNER_UID]: 'u' } });
const claimWithPod = { ...ownClaim('tenant/late'), status: { ips: ['10.0.0.9/24'], ownerPod: { name: 'launcher' } } };
const foreignClaim = ownClaim('tenant/vm1.data', { annotations: {}, uid: 'x' });
const plain = { ...livePod('tenant/web', { uid: 'gone' }), apiVersion: 'v1', kind: 'Pod' };
const ended = { ...livePod('tenant/job', { uid: 'gone', phase: 'Succeeded' }), apiVersion: 'v1', kind: 'Pod' };

describe('kubectl holdfast uninstall', () => {
  it('without --everything says what is installed, who uses it, what stays and what to run, and writes nothing', async () => {
    const cluster = installed([launcher]);
    expect(await uninstall(PLAIN, cluster.deps())).to.equal(true);
    expect(cluster.writes).to.equal(0);
    const text = cluster.printed.join('\n');
    for (const line of [
      'DaemonSet holdfast-agents/holdfast-agent',
      'VM tenant/vm1',
      'claims: 2 IPAMClaims',
      '1 pool, 1 block, 2 leases',
      'Nothing has been removed',
      '  kubectl delete -k <your overlay> --context lab',
      'kubectl holdfast uninstall --everything --context lab',
    ])
      expect(text).to.include(line);
  });

  it('without --everything names no command for processes that are gone', async () => {
    const cluster = uninstalled();
    expect(await uninstall(PLAIN, cluster.deps())).to.equal(true);
    expect(cluster.printed.join('\n')).to.include('uninstall --everything').and.not.include('kubectl delete -k');
  });
});

describe('kubectl holdfast uninstall --everything, before it removes anything,', () => {
  describe('asks', () => {
    for (const [title, answer, removes] of [
      ['and removes nothing without the word', 'yes', false],
      ['and removes nothing if the input ends', '', false],
      ['and continues after the word', ' everything ', true],
    ] as const) {
      it(title, async () => {
        const cluster = uninstalled();
        cluster.answer = answer;
        expect(await uninstall({ ...EVERYTHING, yes: false }, cluster.deps())).to.equal(removes);
        expect(cluster.asked[0]).to.include('https://lab');
        expect(cluster.writes > 0).to.equal(removes);
      });
    }

    it('and refuses if a pod has begun to use an address before the answer', async () => {
      const cluster = uninstalled();
      const ask = () => {
        cluster.add(plain);
        return Promise.resolve('everything');
      };
      expect(await uninstall({ ...EVERYTHING, yes: false }, { ...cluster.deps(), ask })).to.equal(false);
      expect(cluster.logged.join('\n')).to.include('pods use addresses of Holdfast (1): tenant/web');
      expect(cluster.writes).to.equal(0);
    });

    it('and refuses without a terminal and --yes', async () => {
      const cluster = uninstalled();
      await expectRefusal(uninstall({ ...EVERYTHING, yes: false }, cluster.deps()), /no terminal.*--yes/);
      expect(cluster.writes).to.equal(0);
    });
  });

  it('with --dry-run prints the plan, and writes nothing', async () => {
    const cluster = uninstalled();
    expect(await uninstall({ ...EVERYTHING, yes: false, dryRun: true }, cluster.deps())).to.equal(true);
    expect(cluster.writes).to.equal(0);
    const text = cluster.printed.join('\n');
    for (const line of ['claims: 2 IPAMClaims', '1 pool, 1 block, 2 leases', '1 node', 'Nothing has been removed'])
      expect(text).to.include(line);
  });

  describe('refuses while', () => {
    for (const [title, cluster, words] of [
      ['processes are installed', installed(), /DaemonSet holdfast-agents\/holdfast-agent.*kubectl delete -k/],
      [
        'a pod of a process has not ended',
        uninstalled([processPod('holdfast-agents', 'holdfast-agent-1', 'agent')]),
        /still installed \(1\): Pod holdfast-agents\/holdfast-agent-1/,
      ],
      [
        'responders run',
        uninstalled([
          { ...processPod(RESPONDERS_NAMESPACE, 'holdfast-responder-1', 'responder'), kind: 'StatefulSet' },
        ]),
        /still installed \(1\): StatefulSet holdfast-responders\/holdfast-responder-1/,
      ],
      ['pods use addresses', uninstalled([launcher, plain]), /tenant\/launcher \(VM tenant\/vm1\), tenant\/web/],
      ['a VM runs whose launcher is older than its claim', uninstalled([older, claimOfVm]), /VM tenant\/vm1/],
      ['a pod runs that the status of a claim names', uninstalled([older, claimWithPod]), /tenant\/launcher/],
      [
        'a pod uses a claim of other software that has a lease',
        uninstalled([launcher, foreignClaim]),
        /tenant\/launcher/,
      ],
    ] as const) {
      it(title, async () => {
        expect(await uninstall(EVERYTHING, cluster.deps())).to.equal(false);
        expect(cluster.writes).to.equal(0);
        expect(cluster.logged.join('\n')).to.match(words);
      });
    }

    it('processes are installed, also with --ignore-running-pods', async () => {
      const cluster = installed();
      expect(await uninstall({ ...EVERYTHING, ignoreRunningPods: true }, cluster.deps())).to.equal(false);
      expect(cluster.writes).to.equal(0);
    });
  });

  it('ignores pods that use addresses with --ignore-running-pods', async () => {
    const cluster = uninstalled([launcher, plain]);
    expect(await uninstall({ ...EVERYTHING, ignoreRunningPods: true }, cluster.deps())).to.equal(true);
    expect(cluster.names('AddressLease')).to.deep.equal([]);
    expect(cluster.has('Pod', 'tenant/launcher')).to.equal(true);
  });

  it('does not count pods that have ended, of users or of a failed helm test', async () => {
    const test = processPod('holdfast-system', 'holdfast-test', 'test');
    expect(
      await uninstall(EVERYTHING, uninstalled([ended, { ...test, status: { phase: 'Failed' } } as never]).deps()),
    ).to.equal(true);
  });
});

describe('kubectl holdfast uninstall reports', () => {
  it('rights that the user lacks, before it removes anything', async () => {
    for (const [options, cluster, words] of [
      [PLAIN, installed(), /you may not delete daemonsets\.apps, delete namespaces in the whole cluster/],
      [EVERYTHING, uninstalled(), /you may not delete customresourcedefinitions.*, patch nodes\/status.*Nothing has/],
    ] as const) {
      for (const right of [
        'delete customresourcedefinitions',
        'patch nodes/status',
        'delete daemonsets',
        'delete namespaces',
      ])
        cluster.forbidden.add(right);
      await expectRefusal(uninstall(options, cluster.deps()), words);
      expect(cluster.writes).to.equal(0);
    }
  });

  it('kinds that the user may not list', async () => {
    const cluster = installed();
    cluster.refused.add('deployments');
    await expectRefusal(uninstall(PLAIN, cluster.deps()), /you may not list deployments.* in all namespaces/);
  });

  it('an error of the API server that stays', async () => {
    const cluster = uninstalled();
    cluster.beforeWrite = ({ resource }) => {
      if (resource.plural === 'addresspools')
        throw new StatusError({ request: 'DELETE', status: 403, reason: 'Forbidden', message: 'quota of deletes' });
    };
    expect(String(await uninstall(EVERYTHING, cluster.deps()).catch((error: unknown) => error))).to.include(
      'quota of deletes',
    );
    expect(cluster.names('AddressLease'), 'leases stay while pools exist').to.have.length(2);
  });

  it('a claim in a namespace that does not exist', async () => {
    const cluster = uninstalled();
    cluster.beforeWrite = ({ verb, resource }) => {
      if (verb !== 'patch' || resource.plural !== 'ipamclaims') return;
      const details = { name: 'tenant', kind: 'namespaces' };
      throw new StatusError({ request: 'PATCH', status: 404, reason: 'NotFound', message: 'not found', details });
    };
    await expectRefusal(
      uninstall(EVERYTHING, cluster.deps()),
      /IPAMClaim tenant\/.*its namespace does not exist: kubectl create namespace tenant/,
    );
  });

  it('a finalizer of other software', async () => {
    const cluster = uninstalled([own('AddressPool', 'red', [POOL_FINALIZER, 'backup.example.com/hold'])]);
    await expectRefusal(
      uninstall(EVERYTHING, cluster.deps()),
      /AddressPool red is still there.*finalizer backup\.example\.com\/hold/,
    );
  });

  it('an object that other software creates again', async () => {
    const cluster = uninstalled();
    cluster.beforeWrite = ({ verb, resource, name }) => {
      if (verb !== 'delete' || resource.plural !== 'addressleases' || name !== 'blue.10-0-0-1') return;
      const lease = own('AddressLease', name, []);
      cluster.add({ ...lease, metadata: { ...lease.metadata, uid: 'new' } });
    };
    await expectRefusal(uninstall(EVERYTHING, cluster.deps()), /AddressLease blue\.10-0-0-1 was created again/);
  });
});

async function expectRefusal(result: Promise<unknown>, words: RegExp): Promise<void> {
  const error: unknown = await result.catch((thrown: unknown) => thrown);
  expect(error).to.be.instanceOf(CommandError);
  expect((error as CommandError).message).to.match(words);
}
