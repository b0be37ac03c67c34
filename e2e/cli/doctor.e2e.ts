import { ExitCode } from '../../cli/exit-code.js';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { POLICY_NAMES } from '../../cli/doctor/check-admission.js';
import type { Finding } from '../../cli/doctor/finding.js';
import type { Status } from '../../cli/status.js';
import { RESPONDERS_NAMESPACE } from '../../api/names.js';
import { NETWORK_ATTACHMENT_DEFINITIONS } from '../../kube/resources.js';
import { ApiProxy } from '../../bed/faults/api-proxy.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import { environment } from '../../bed/story/hooks.js';
import { describeOnBed } from '../../bed/story/describe.js';
import { bridgeOf } from '../../bed/story/networks.js';
import { KubectlPlugin } from '../../bed/story/kubectl/kubectl-plugin.js';
import { namespaceUser } from '../../bed/story/users/namespace-user.js';
import { writeUserKubeconfig } from '../../bed/story/users/user-kubeconfig.js';

const MISSING = 'holdfast-controller';
const CALLS_IPAM = { check: 'webhooks', object: 'WebhookConfiguration holdfast-ipam' };

describeOnBed('kubectl holdfast', (story, bed) => {
  async function ask(command: string): Promise<{ exitCode: number | undefined; answer: unknown }> {
    const { exitCode, stdout, stderr } = await new KubectlPlugin(bed().kubeconfig, [command, '-o', 'json']).result;
    expect(stderr).to.equal('');
    return { exitCode, answer: JSON.parse(stdout) as unknown };
  }

  async function webhookProblem(): Promise<Finding | undefined> {
    const { exitCode, answer } = await ask('doctor');
    const { findings } = answer as { findings: Finding[] };
    // processes of the bed run outside of the cluster, without workloads
    expect(exitCode).to.equal(3);
    expect(findings.map(({ object }) => object)).to.include(MISSING);
    return findings.find(({ check, object }) => check === CALLS_IPAM.check && object === CALLS_IPAM.object);
  }

  it('finds a webhook that the API server cannot call, and no longer finds it when its process is back', async () => {
    // an answer may be late on a busy machine, and an earlier story may just have started ipam
    const untilFound = () => until('the webhook to answer', async () => (await webhookProblem()) === undefined);
    await untilFound();
    const status = await untilValue(
      'the status of a webhook that answers',
      async () => (await ask('status')).answer as Status,
      ({ webhooks }) => webhooks.find(({ name }) => name === 'holdfast-ipam')?.answers === true,
    );
    expect(status.policies).to.deep.equal({ present: POLICY_NAMES.length, expected: POLICY_NAMES.length });
    await bed().ipam.kill();
    try {
      const problem = await webhookProblem();
      expect(problem?.severity).to.equal('error');
      expect(problem?.problem).to.include('failed calling webhook');
    } finally {
      await bed().ipam.start();
    }
    await untilFound();
  });

  it('waits until a VM of its user has its addresses, and at most as long as the user says', async () => {
    const account = story().ref('owner');
    const owner = await namespaceUser(environment(), account, 'view');
    await owner.transport.close();
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-owner-'));
    const proxy = await ApiProxy.open(bed());
    try {
      const kubeconfig = join(folder, 'kubeconfig');
      await writeUserKubeconfig(kubeconfig, environment(), account);
      await story().createVm('vm1', { data: 'late' }, { running: false });
      await story().waitForEvent('vm1', 'NetworkAttachmentNotFound');
      const run = (...args: string[]) => new KubectlPlugin(kubeconfig, args).result;
      const began = performance.now();
      const late = await run('doctor', '--wait', '--wait-duration', '3s');
      expect(late.exitCode, late.stdout).to.equal(ExitCode.unhealthy);
      expect(late.stdout).to.include(`${account.namespace}/late does not exist`);
      expect(late.stderr).to.equal('timed out after 3 s with 1 error\n');
      expect(performance.now() - began).to.be.at.least(3_000);

      const path = await proxy.kubeconfig(kubeconfig);
      const waiting = Promise.all(['doctor', 'status'].map((name) => new KubectlPlugin(path, [name, '--wait']).result));
      const reads = () => proxy.requests.filter((what) => what.includes('/ipamclaims')).length;
      await until('both to have found that there is no claim', () => Promise.resolve(reads() >= 2));
      await story().addresses.createNetwork('late', ['10.78.1.0/24']);
      for (const { exitCode, stdout } of await waiting) expect(exitCode, stdout).to.equal(ExitCode.done);
      expect(reads()).to.be.at.least(4);
    } finally {
      await proxy.close();
      await rm(folder, { recursive: true });
    }
  });

  it('finds a pool whose responders cannot be attached, and one that has none', async () => {
    const network = `${story().namespace}-flat`;
    const subnets = [{ cidr: '10.78.0.0/24' }];
    await story().addresses.createPool(network, { network, subnets, guest: { dhcp: {}, attachment: network } });
    const problem = async () => {
      const { findings } = (await ask('doctor')).answer as { findings: Finding[] };
      return findings.find(({ check, object }) => check === 'responders' && object === `AddressPool ${network}`);
    };
    expect((await problem())?.problem).to.include(`${RESPONDERS_NAMESPACE}/${network}, which spec.guest.attachment`);
    const config = { cniVersion: '1.0.0', name: network, type: 'bridge', bridge: bridgeOf(network) };
    const nad = { namespace: RESPONDERS_NAMESPACE, name: network };
    await story().client.create(NETWORK_ATTACHMENT_DEFINITIONS, {
      metadata: nad,
      spec: { config: JSON.stringify(config) },
    });
    // the bed runs no process that makes responders
    expect((await problem())?.problem).to.include('no StatefulSet');
    await story().client.delete(NETWORK_ATTACHMENT_DEFINITIONS, nad);
  });

  it('has exit code 4 for a user who may read nothing, whose rights and groups an administrator takes', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-nobody-'));
    try {
      const as = ['--as', 'nobody', '--as-group', 'nobodies'];
      const run = (...args: string[]) => new KubectlPlugin(bed().kubeconfig, [...args, ...as]).result;
      const results = await Promise.all([
        run('status'),
        // without the rights to see an end, it does not wait
        run('doctor', '--wait'),
        run('bundle', '--output-file', join(folder, 'bundle.tar.gz')),
      ]);
      const [status, doctor] = results;
      expect(results.map(({ exitCode }) => exitCode)).to.deep.equal(results.map(() => ExitCode.unchecked));
      for (const { stdout } of [status, doctor])
        expect(stdout)
          .to.match(/^NOT CHECKED user "nobody" may not list /m)
          .and.match(/\nnothing could be checked: you may read none of it\n$/);
      const { exitCode, stdout } = await run('doctor', '--as-group', 'system:masters');
      expect(exitCode, stdout).to.equal(ExitCode.unhealthy);
      expect(stdout).to.include(MISSING).and.not.include('NOT CHECKED');
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('names what it may not read for a user with the role view in one namespace, and shows the rest', async () => {
    const account = story().ref('viewer');
    const viewer = await namespaceUser(environment(), account, 'view');
    await viewer.transport.close();
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-viewer-'));
    try {
      const kubeconfig = join(folder, 'kubeconfig');
      const archive = join(folder, 'bundle.tar.gz');
      await writeUserKubeconfig(kubeconfig, environment(), account);
      await story().createVm('vm1', { data: 'nowhere' }, { running: false });
      await story().waitForEvent('vm1', 'NetworkAttachmentNotFound');
      const run = (...args: string[]) => new KubectlPlugin(kubeconfig, args).result;
      const results = await Promise.all([
        run('status'),
        run('doctor'),
        run('bundle', '-n', account.namespace, '--output-file', archive),
      ]);
      const [status, doctor, bundle] = results;
      const refused = `user "system:serviceaccount:${account.namespace}:viewer" may not list `;
      expect(results.map(({ exitCode }) => exitCode)).to.deep.equal([ExitCode.unhealthy, ExitCode.unhealthy, 0]);
      for (const { stdout } of [status, doctor])
        expect(stdout.match(/^NOT CHECKED .*$/gm)).to.have.lengthOf(1, 'one line about what the user may not read');
      for (const { stdout } of [status, doctor])
        expect(stdout)
          .to.include(`NOT CHECKED ${refused}`)
          .and.include(`ERROR VirtualMachine ${account.namespace}/vm1`)
          .and.include(`${account.namespace}/nowhere does not exist: create it, or correct networkName`);
      expect(bundle.stderr).to.include(`REFUSED  addressleases: ${refused}addressleases.ipam.holdfast.dev`);
      expect(bundle.stderr).not.to.include('MISSING').and.not.to.include(`ipamclaims in ${account.namespace}`);
      expect((await stat(archive)).size).to.be.greaterThan(0);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
