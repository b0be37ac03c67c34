import { expect } from 'chai';
import type { Finding } from '../cli/doctor/finding.js';
import type { Status } from '../cli/status.js';
import { until } from './bed/wait.js';
import { describeOnBed } from './story/describe.js';
import { KubectlPlugin } from './story/kubectl-plugin.js';

const MISSING = 'holdfast-controller';
const CALLS_IPAM = { check: 'webhooks', object: 'WebhookConfiguration holdfast-ipam' };

describeOnBed('kubectl holdfast', (_story, bed) => {
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
    const status = (await ask('status')).answer as Status;
    expect(status.webhooks.find(({ name }) => name === 'holdfast-ipam')).to.include({ answers: true });
    expect(status.policies).to.deep.equal({ present: 15, expected: 15 });
    expect(await webhookProblem()).to.equal(undefined);
    await bed().ipam.kill();
    try {
      const problem = await webhookProblem();
      expect(problem?.severity).to.equal('error');
      expect(problem?.problem).to.include('failed calling webhook');
    } finally {
      await bed().ipam.start();
    }
    await until('the webhook to answer', async () => (await webhookProblem()) === undefined);
  });
});
