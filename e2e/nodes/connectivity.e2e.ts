import { expect } from 'chai';
import type { CheckReport } from '../../cli/doctor/check-report.js';
import { ExitCode } from '../../cli/exit-code.js';
import { PODS, VIRTUAL_MACHINES } from '../../kube/resources.js';
import { until } from '../../bed/processes/wait.js';
import { KubectlPlugin } from '../../bed/story/kubectl/kubectl-plugin.js';
import { bridgeOf } from '../../bed/story/networks.js';
import { describeOnNodes } from '../../bed/story/nodes.js';

describeOnNodes('kubectl holdfast connectivity', (story, nodes) => {
  const start = (...args: string[]) =>
    new KubectlPlugin(nodes().cluster.kubeconfig, ['connectivity', '-n', story().namespace, ...args]);
  const pods = async () => (await story().client.list(PODS, { namespace: story().namespace })).items;

  async function findings(...args: string[]) {
    const { exitCode, stdout, stderr } = await start('-o', 'json', ...args).result;
    expect(stderr).to.equal('');
    const { checks } = JSON.parse(stdout) as { checks: CheckReport[] };
    return {
      exitCode,
      found: checks.flatMap((check) => check.findings.map((each) => `${each.check}: ${each.problem}`)),
    };
  }

  it('finds that pods and a VM that migrates have their addresses on both nodes, and leaves nothing behind', async () => {
    await nodes().createNetwork('blue', ['10.86.0.0/28', 'fd00:86::/64']);
    const { exitCode, stdout, stderr } = await start('--migrate').result;
    expect(stderr).to.equal('');
    const lines = stdout.trim().split('\n');
    expect(lines[0]).to.equal(
      `OK network: NetworkAttachmentDefinition ${story().namespace}/blue: 1 of 1 pairs of nodes`,
    );
    expect(lines[1]).to.match(
      /^OK node-1 → node-2: 10\.86\.0\.\d+, fd00:86::[\w:]+ → 10\.86\.0\.\d+, fd00:86::[\w:]+: .* packets of 1500 bytes$/,
    );
    expect(lines[2]).to.match(/^OK migration: a VM migrated from node-(1 to node-2|2 to node-1) and kept 10\.86\.0\./);
    expect(lines[3]).to.equal('all pairs are connected');
    expect(exitCode).to.equal(ExitCode.done);
    expect(await pods()).to.deep.equal([]);
    expect((await story().client.list(VIRTUAL_MACHINES, { namespace: story().namespace })).items).to.deep.equal([]);
    await story().addresses.waitHeld([]);
  });

  it('finds no fault behind ports with a guard that drops what no claim allows', async () => {
    await nodes().createNetwork('blue', ['10.86.4.0/28', 'fd00:86:4::/64'], { guard: { mode: 'Enforce' } });
    const { exitCode, stdout, stderr } = await start('--migrate').result;
    expect(stderr).to.equal('');
    expect(stdout.trim().split('\n').at(-1), stdout).to.equal('all pairs are connected');
    expect(exitCode).to.equal(ExitCode.done);
    await story().addresses.waitHeld([]);
  });

  it('finds nodes that the network does not connect, an MTU that does not pass, and a host with the same address', async () => {
    const network = (name: string) => `${story().namespace}-${name}`;
    const create = (name: string, more: object) => {
      const base = { cniVersion: '1.0.0', name: network(name), type: 'bridge', bridge: bridgeOf(network(name)) };
      return story().network(name, { config: { ...base, ...more } });
    };
    const ipam = (cidr: string) => ({ type: 'holdfast', subnets: [{ cidr }] });
    // each node has a bridge of its own
    await create('apart', { ipam: ipam('10.86.1.0/28') });
    // the wire between the nodes has the usual MTU of 1500
    await create('jumbo', { mtu: 9000, ipam: ipam('10.86.2.0/28') });
    await nodes().connectBridge(network('jumbo'));
    // two addresses for two pods, and the node itself has one of them
    await create('twice', { ipam: ipam('10.86.3.0/30') });
    const bridge = await nodes().connectBridge(network('twice'));
    await nodes().node('node-1').run('ip', 'address', 'add', '10.86.3.1/30', 'dev', bridge);

    const expected = {
      apart: /^arp: nobody answers ARP for 10\.86\.1\.\d+: frames do not pass between the nodes$/,
      jumbo: /^mtu: 10\.86\.2\.\d+ answers a small ping, but none of 9000 bytes/,
      twice: /^duplicates: 10\.86\.3\.1 is also that of the host with MAC address ([0-9a-f]{2}:?){6}$/,
    };
    for (const [name, finding] of Object.entries(expected)) {
      const { exitCode, found } = await findings('--network', name);
      expect(found, name).to.have.length(1);
      expect(found[0]).to.match(finding);
      expect(exitCode).to.equal(ExitCode.unhealthy);
    }
    expect(await pods()).to.deep.equal([]);
  });

  it('removes its pods when it is interrupted', async () => {
    await nodes().createNetwork('blue', ['10.86.2.0/28']);
    const command = start();
    await until('a pod of the command', async () => (await pods()).length > 0);
    command.interrupt();
    const { exitCode, stderr } = await command.result;
    expect(stderr).to.include('kubectl holdfast: interrupted');
    expect(exitCode).to.equal(ExitCode.failed);
    expect(await pods()).to.deep.equal([]);
    await story().addresses.waitHeld([]);
  });

  it('says what stops the pods, and how to name a network', async () => {
    const none = await start().result;
    expect(none.exitCode).to.equal(ExitCode.failed);
    expect(none.stderr).to.include('has no NAD that delegates to holdfast. Name one with --network');
    await nodes().createNetwork('blue', ['10.86.3.0/28']);
    await story().labelNamespace({ 'pod-security.kubernetes.io/enforce': 'baseline' });
    const refused = await findings();
    expect(refused.found.join('\n'))
      .to.include('violates PodSecurity')
      .and.include('Name a NAD in a namespace that allows');
    expect(refused.exitCode).to.equal(ExitCode.unhealthy);
    expect(await pods()).to.deep.equal([]);
  });
});
