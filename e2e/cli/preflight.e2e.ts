import { expect } from 'chai';
import type { CheckReport } from '../../cli/doctor/check-report.js';
import { ExitCode } from '../../cli/exit-code.js';
import { kubeVirtVersion } from '../../bed/build/versions.js';
import { describeOnBed } from '../../bed/story/describe.js';
import { KubectlPlugin } from '../../bed/story/kubectl/kubectl-plugin.js';

// processes of the bed run outside of the cluster: for the command, Holdfast is not installed yet
describeOnBed('kubectl holdfast preflight', (story, bed) => {
  const run = (...args: string[]) => new KubectlPlugin(bed().kubeconfig, ['preflight', ...args]).result;

  it('says before an installation which networks and VMs it changes, and what is missing', async () => {
    const { namespace } = story();
    const base = { cniVersion: '0.4.0', type: 'bridge', bridge: 'br-old' };
    const ipam = { type: 'whereabouts', range: '10.84.1.0/24' };
    await story().network('old', { config: { ...base, name: `${namespace}-old`, allowPersistentIPs: true, ipam } });
    await story().network('typo', { config: { ...base, name: `${namespace}-typo`, allowPersistentIp: true } });
    await story().createVm('web', { data: 'old' }, { running: false });
    const { exitCode, stdout, stderr } = await run('-o', 'json');
    expect(stderr).to.equal('');
    const { checks } = JSON.parse(stdout) as { checks: CheckReport[] };
    const messageOf = (name: string) => checks.find(({ check }) => check === name)?.message;
    expect(messageOf('holdfast')).to.equal('is not installed yet');
    // the bed compiles Kubernetes without its version
    expect(messageOf('kubernetes')).to.match(/^Kubernetes v\d/);
    expect(messageOf('kubevirt')).to.include(`KubeVirt ${kubeVirtVersion().version} in namespace kubevirt`);
    expect(messageOf('vms')).to.include(`${namespace}/web`);
    const findings = checks.flatMap((check) => check.findings);
    const problemOf = (nad: string) =>
      findings.find(({ object }) => object === `NetworkAttachmentDefinition ${namespace}/${nad}`)?.problem;
    expect(problemOf('old')).to.include('whereabouts allocates its addresses and honours no claim');
    expect(problemOf('typo')).to.include('write allowPersistentIPs');
    for (const { problem, remedy } of findings) expect(remedy, problem).to.match(/\w/);
    // the bed has Multus without a DaemonSet
    expect(checks.find(({ check }) => check === 'multus')?.state).to.equal('warning');
    expect(checks.map(({ state }) => state)).not.to.include('unchecked');
    const hasErrors = checks.some(({ state }) => state === 'error');
    expect(exitCode).to.equal(hasErrors ? ExitCode.unhealthy : ExitCode.done);
  });

  it('says of each check what a user without rights may not read', async () => {
    const { exitCode, stdout } = await run('--as', 'nobody-at-all');
    const lines = stdout.trim().split('\n');
    // every user may ask for the versions of the API server and of KubeVirt
    expect(lines.filter((line) => line.startsWith('OK ')).map((line) => line.split(':')[0])).to.deep.equal([
      'OK kubernetes',
      'OK kubevirt',
    ]);
    const unchecked = lines.filter((line) => line.startsWith('NOT CHECKED '));
    expect(unchecked).to.have.length(lines.length - 3);
    for (const line of unchecked) expect(line).to.include('user "nobody-at-all" may not list');
    expect(exitCode).to.equal(ExitCode.done);
  });
});
