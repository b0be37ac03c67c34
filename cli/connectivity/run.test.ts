import { expect } from 'chai';
import { NETWORK_STATUS_ANNOTATION } from '../../api/names.js';
import { StatusError } from '../../kube/errors.js';
import { VIRTUAL_MACHINES } from '../../kube/resources.js';
import { apiError } from '../../test/api-errors.js';
import { MemoryCluster } from '../testing/memory-cluster.js';
import { PROCESS_PODS, type ProcessPod } from '../installation.js';
import { CONNECTIVITY_LABEL, connectivityPod } from './pods.js';
import { testConnectivity } from './run.js';

const NETWORK = { nad: { namespace: 'lab', name: 'blue' }, isPersistent: true };
const MACS = ['02:00:00:00:00:01', '02:00:00:00:00:02'] as const;

/** A cluster whose kubelets run the pods of the command at once. */
class PodCluster extends MemoryCluster {
  readonly ended = new AbortController();
  now = 0;
  /** What the asking pod finds about the address of the other one. */
  host: object = { macs: [MACS[1]] };
  /** Whether pods run. */
  hasNodes = true;
  /** Names of all pods that were created. */
  readonly created: string[] = [];

  async run(more: { withMigration?: boolean } = {}) {
    const clock = {
      now: () => this.now,
      wall: () => this.now,
      setTimer: () => () => undefined,
      sleep: (ms: number) => {
        this.now += ms;
        return Promise.resolve();
      },
    };
    const options = { network: NETWORK, nodes: ['a', 'b', 'c'], maxPairs: 2, image: 'holdfast:1', timeoutMs: 60_000 };
    const { client, ended } = this;
    const deps = { client, clock, run: 'r', signal: ended.signal, showProgress: () => undefined };
    return testConnectivity(
      { ...options, withMigration: false, ...more },
      { ...deps, printStatus: (line) => void this.logged.push(line) },
    );
  }

  start(pod: ProcessPod): void {
    const { name } = pod.metadata;
    if (!name.startsWith('holdfast-connectivity-r-')) return;
    this.created.push(name);
    if (!this.hasNodes) return;
    const asks = name.endsWith('-from');
    const entry = {
      name: 'lab/blue',
      interface: 'net1',
      ips: [asks ? '10.0.0.1' : '10.0.0.2'],
      mac: MACS[asks ? 0 : 1],
    };
    const peer = { address: '10.0.0.2', ...this.host };
    const result = { mtu: 1500, own: [{ address: '10.0.0.1', macs: [] }], peers: [peer] };
    const state = asks ? { terminated: { message: JSON.stringify(result) } } : {};
    this.change(PROCESS_PODS, name, (found) => ({
      ...found,
      metadata: { ...found.metadata, annotations: { [NETWORK_STATUS_ANNOTATION]: JSON.stringify([entry]) } },
      status: { phase: asks ? 'Succeeded' : 'Running', containerStatuses: [{ name: 'packets', state }] },
    }));
  }

  get left(): string[] {
    return [...this.all(PROCESS_PODS), ...this.all(VIRTUAL_MACHINES)].map(({ metadata }) => metadata.name);
  }
}

describe('kubectl holdfast connectivity', () => {
  let cluster: PodCluster;

  beforeEach(() => {
    cluster = new PodCluster();
    cluster.tracker.observe(PROCESS_PODS, ({ type, object }) => {
      if (type === 'ADDED') cluster.start(object);
    });
  });

  it('tests the pairs with two pods each, and removes them', async () => {
    const reports = await cluster.run();
    expect(reports.map(({ check, state }) => `${state} ${check}`)).to.deep.equal([
      'ok network',
      'ok a → b',
      'ok b → c',
    ]);
    expect(cluster.created).to.have.length(4);
    expect(cluster.left).to.deep.equal([]);
  });

  for (const [what, host, text] of [
    ['a host that nobody hears', { macs: [] }, /^arp: nobody answers ARP for 10\.0\.0\.2/],
    ['two hosts with one address', { macs: [MACS[1], '02:00:00:00:00:99'] }, /^duplicates: .* 02:00:00:00:00:99$/],
    ['ping that is dropped', { macs: [MACS[1]], ping: 'no answer' }, /^ping: 10\.0\.0\.2 answers ARP, but not ping/],
    ['an MTU that does not pass', { macs: [MACS[1]], fullSize: 'no answer' }, /^mtu: .* none of 1500 bytes/],
  ] as const) {
    it(`names ${what}, with a remedy`, async () => {
      cluster.host = host;
      const [, first] = await cluster.run();
      expect(first?.findings).to.have.length(1);
      const [{ check, problem, remedy } = { check: '', problem: '', remedy: '' }] = first?.findings ?? [];
      expect(`${check}: ${problem}`).to.match(text);
      expect(remedy).to.match(/\w/);
    });
  }

  it('says why a pod does not run, and goes on', async () => {
    cluster.hasNodes = false;
    const reports = await cluster.run();
    expect(reports.slice(1).map(({ findings }) => findings[0]?.check)).to.deep.equal(['address', 'address']);
    expect(cluster.left).to.deep.equal([]);
  });

  it('removes its pods if a request fails', async () => {
    cluster.beforeWrite = ({ name, verb }) => {
      if (verb === 'create' && name.endsWith('-0-from')) throw new Error('the API server is gone');
    };
    const error = await cluster.run().catch((thrown: unknown) => thrown);
    expect(error).to.have.property('message', 'the API server is gone');
    expect(cluster.left).to.deep.equal([]);
  });

  it('removes its pods if it is interrupted', async () => {
    cluster.hasNodes = false;
    cluster.afterWrite = () => cluster.ended.abort();
    const error = await cluster.run().catch((thrown: unknown) => thrown);
    expect(error).to.have.property('message', 'interrupted');
    expect(cluster.created).to.have.length.greaterThan(0);
    expect(cluster.left).to.deep.equal([]);
  });

  it('limits CPU and memory of its pods, as a ResourceQuota of the namespace may require', () => {
    const { nad } = NETWORK;
    const request = { namespace: 'lab', name: 'a', run: 'r', nad, node: 'a', image: 'holdfast:1', peers: [] };
    const spec = connectivityPod(request).spec as { containers: { resources: object }[] };
    for (const { resources } of spec.containers)
      for (const quantities of Object.values(resources)) expect(quantities).to.have.all.keys('cpu', 'memory');
  });

  // 400: a webhook that names no code, such as Kyverno's
  for (const status of [400, 403]) {
    it(`names the policy that refuses its pods with ${status}`, async () => {
      const message = 'pods "x" is forbidden: violates PodSecurity "baseline:latest"';
      cluster.beforeWrite = ({ verb }) => {
        if (verb === 'create') throw new StatusError({ request: 'POST', status, reason: '', message });
      };
      const [, first] = await cluster.run();
      expect(first?.findings[0]?.problem).to.include('violates PodSecurity');
      expect(first?.findings[0]?.problem).to.include('Name a NAD in a namespace');
    });
  }

  const HOUR_S = 3_600;
  /** Of another run. */
  const labelled = (name: string, bornS: number) => {
    const labels = { [CONNECTIVITY_LABEL]: 'other' };
    return { namespace: 'lab', name, labels, creationTimestamp: new Date(bornS * 1000).toISOString() };
  };
  const pod = (name: string, phase: string, bornS = 0): ProcessPod => {
    return { metadata: labelled(name, bornS), status: { phase } };
  };

  it('removes pods and VMs of a run that was killed, but no pods that run', async () => {
    cluster.now = HOUR_S * 1000;
    cluster.put(PROCESS_PODS, pod('killed', 'Failed'), pod('running', 'Running'));
    cluster.put(VIRTUAL_MACHINES, { metadata: labelled('vm', 0) });
    await cluster.run();
    expect(cluster.left).to.deep.equal(['running']);
  });

  it('leaves the objects of a run that goes on, and has not read the result of its pod yet', async () => {
    cluster.now = HOUR_S * 1000;
    cluster.put(PROCESS_PODS, pod('ended', 'Succeeded', HOUR_S - 300));
    cluster.put(VIRTUAL_MACHINES, { metadata: labelled('vm', HOUR_S - 300) });
    await cluster.run();
    expect(cluster.left).to.deep.equal(['ended', 'vm']);
  });

  it('says that a run that was killed may have left VMs, if the user may not list them', async () => {
    const serve = cluster.serve.bind(cluster);
    cluster.serve = (request) => {
      if (request.method === 'GET' && request.path.endsWith('/virtualmachines'))
        throw apiError(403, 'Forbidden', 'User "eve" cannot list resource "virtualmachines"', '');
      return serve(request);
    };
    expect(await cluster.run()).to.have.length(3);
    expect(cluster.logged.join()).to.match(
      /^VirtualMachines of a run that was killed may be left: .*User "eve" cannot list/,
    );
  });

  it('goes on if it cannot remove the VM of another run, and names the VM', async () => {
    cluster.now = HOUR_S * 1000;
    cluster.put(VIRTUAL_MACHINES, { metadata: labelled('vm', 0) });
    cluster.beforeWrite = ({ resource }) => {
      if (resource.plural === VIRTUAL_MACHINES.plural) throw new Error('no rights');
    };
    expect(await cluster.run()).to.have.length(3);
    expect(cluster.logged).to.deep.equal(['VirtualMachine lab/vm could not be removed: no rights: remove it by hand']);
  });
});
