import { expect } from 'chai';
import { POLICY_NAMES } from './doctor/check-admission.js';
import { diagnose } from './doctor/diagnose.js';
import type { ObservedCluster } from './doctor/observe.js';
import { type Status, formatStatus, statusOf } from './status.js';
import { textOf } from './terminal.js';
import { HEALTHY, unreadyPod, workloadOf } from './testing/healthy-cluster.js';

function shown(broken: Partial<ObservedCluster> = {}): { healthy: boolean; text: string } {
  const observed = { ...HEALTHY, ...broken };
  const status = statusOf(observed, diagnose(observed, '0.1.0'), '0.1.0');
  return { healthy: status.healthy, text: formatStatus(status).lines(false).map(textOf).join('\n') };
}

describe('kubectl holdfast status', () => {
  it('shows processes, versions, leaders, webhooks and policies', () => {
    const { healthy, text } = shown();
    expect(healthy).to.equal(true);
    expect(text).to.match(/^COMPONENT {2,}READY {2,}VERSION {2,}LEADER$/m);
    expect(text).to.match(/^controller {2,}2\/2 {2,}0\.1\.0 {2,}holdfast-controller-x$/m);
    expect(text).to.include('webhook holdfast-ipam: answers, CA valid until 2120-01-01');
    expect(text).to.include(`policies: ${POLICY_NAMES.length} of ${POLICY_NAMES.length}`);
    expect(text).to.match(/\nhealthy$/);
  });

  it('shows no version of a sidecar that a service mesh adds to pods', () => {
    const pod = unreadyPod('agent', 'node-7');
    const containers = [
      { name: 'istio-proxy', image: 'istio/proxyv2:1.29.0' },
      { name: 'agent', image: 'holdfast:0.2.0' },
    ];
    const { text } = shown({ pods: [{ ...pod, spec: { ...pod.spec, containers } }] });
    expect(text).to.match(/^agent {2,}2\/2 {2,}0\.2\.0 *$/m);
    expect(text).not.to.include('1.29.0');
  });

  it('does not call an installation healthy that the user may not read', () => {
    expect(shown({ workloads: undefined, refused: ['user "eve" may not list deployments'] }).text).to.match(
      /\nnothing is wrong with what was checked$/,
    );
  });

  it('says, also in JSON, that nothing was checked if the user may read nothing', () => {
    const blind = Object.fromEntries(Object.keys(HEALTHY).map((key) => [key, undefined])) as unknown as ObservedCluster;
    const observed = { ...blind, trialCalls: [], refused: ['user "eve" may not list deployments'] };
    const output = formatStatus(statusOf(observed, [], '0.1.0'));
    expect(output.data).to.include({ checked: false, healthy: false });
    expect(output.lines(false).map(textOf).at(-1)).to.match(/^nothing could be checked/);
    expect(formatStatus(statusOf(HEALTHY, [], '0.1.0')).data).to.include({ checked: true, healthy: true });
  });

  it('names the nodes whose agent is not ready, and is not healthy', () => {
    const agent = workloadOf('agent', '0.1.0', 1);
    const { healthy, text } = shown({ workloads: [agent], pods: [unreadyPod('agent', 'node-7')] });
    expect(healthy).to.equal(false);
    expect(text).to.include('agents not ready: node-7');
    expect(text).to.match(/\nnot healthy: \d+ errors$/);
  });

  it('does not say that all agents are ready if the user may not list their pods', () => {
    const observed = { ...HEALTHY, workloads: [workloadOf('agent', '0.1.0', 1)], pods: undefined };
    expect(statusOf(observed, [], '0.1.0').agentsNotReady).to.equal(undefined);
  });

  it('counts nodes whose agent is not ready if they are many, and has all in JSON', () => {
    const pods = Array.from({ length: 5_000 }, (_, index) => unreadyPod('agent', `node-${index}`));
    const observed = { ...HEALTHY, workloads: [workloadOf('agent', '0.1.0', 1)], pods };
    const { data, lines } = formatStatus(statusOf(observed, [], '0.1.0'));
    expect(lines(false).map(textOf).join('\n')).to.match(/agents not ready: (node-\d+, ){9}node-\d+ and 4990 more$/m);
    expect((data as Status).agentsNotReady).to.have.length(5_000);
  });
});
