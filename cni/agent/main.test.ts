import { mkdir, mkdtemp, readFile, readdir, readlink, rm, writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { AddressLease } from '../../api/address-lease.js';
import type { KubeObject } from '../../api/meta.js';
import { Client } from '../../kube/client.js';
import { systemClock } from '../../kube/clock.js';
import { silentLogger } from '../../kube/log.js';
import { Transport } from '../../kube/transport/transport.js';
import type { AgentConfig } from '../../process/config/agent-config.js';
import { readCommandLine } from '../../process/command-line.js';
import type { Component, ProcessContext } from '../../process/context.js';
import { InformerRegistry } from '../../kube/informers/informers.js';
import { Metrics } from '../../process/metrics.js';
import { NETWORK_CONFIG, pluginRequest } from '../testing/cni-requests.js';
import { FaultServer, type SeenRequest } from '../../test/https/fault-server.js';
import { adminPool } from '../../test/objects/pool-objects.js';
import type { PluginRequest } from './request.js';
import type { PluginResponse } from './result.js';
import { createAgent } from './main.js';

const CONFIG = JSON.stringify(NETWORK_CONFIG);
const POD = {
  metadata: {
    namespace: 'vms',
    name: 'p1',
    uid: 'p1-uid',
    resourceVersion: '5',
    annotations: { 'k8s.v1.cni.cncf.io/networks': 'blue@net1' },
  },
  spec: { nodeName: 'node-1' },
  status: { phase: 'Pending' },
};
const LISTS: Readonly<Record<string, unknown[]>> = {
  addressleases: [],
  configmaps: [],
  kubevirts: [],
  addresspools: [adminPool('blue')],
  pods: [POD],
  'network-attachment-definitions': [
    { metadata: { namespace: 'vms', name: 'blue', uid: 'n', resourceVersion: '4' }, spec: { config: CONFIG } },
  ],
};

describe('the agent process', () => {
  let server: FaultServer;
  let folder: string;
  let context: ProcessContext;
  let agent: Component | undefined;
  let leases: Map<string, AddressLease>;
  let isAway: boolean;
  let fail: (error: unknown) => void;

  before(async () => {
    server = await FaultServer.start(answer);
  });
  after(() => server.stop());

  beforeEach(async () => {
    leases = new Map();
    isAway = false;
    fail = () => undefined;
    folder = await mkdtemp(join(tmpdir(), 'holdfast-'));
    for (const each of ['bin', 'cni']) await mkdir(join(folder, each));
    for (const each of ['amd64', 'arm64']) await writeFile(join(folder, 'cni', `holdfast-linux-${each}`), 'plugin');
    for (const each of ['multus', 'bridge']) await writeFile(join(folder, 'bin', each), '', { mode: 0o755 });
    context = makeContext();
  });
  afterEach(async () => {
    await agent?.stop();
    agent = undefined;
    await context.informers.stop();
    await context.client.transport.close();
    server.reset();
    await rm(folder, { recursive: true });
  });

  /** The part of an API server that an agent uses. */
  function answer({ method, path, query, body }: SeenRequest) {
    if (isAway) return { reset: true };
    const [before = '', last = ''] = path.split('/').slice(-2);
    const [plural, name] = last in LISTS ? [last] : [before, last];
    if (query.get('watch') !== null) return { lines: [], then: 'open' as const };
    if (method === 'POST') return { status: 201, body: store({ ...(JSON.parse(body) as AddressLease) }) };
    if (method === 'PATCH') {
      const lease = leases.get(name!)!;
      const patch = JSON.parse(body) as AddressLease;
      return { body: store({ ...lease, spec: { ...lease.spec, ...patch.spec } }) };
    }
    if (name === undefined) {
      const items = plural === 'addressleases' ? [...leases.values()] : LISTS[plural];
      return { body: { metadata: { resourceVersion: '10' }, items } };
    }
    const found = (LISTS[plural] as KubeObject[] | undefined)?.find(({ metadata }) => metadata.name === name);
    return found === undefined
      ? { status: 404, body: { kind: 'Status', reason: 'NotFound', code: 404, details: { name } } }
      : { body: found };
  }

  function store(lease: AddressLease): AddressLease {
    const { name } = lease.metadata;
    const metadata = { ...lease.metadata, uid: `${name}-uid`, resourceVersion: String(20 + leases.size) };
    const stored = { ...lease, metadata };
    leases.set(name, stored);
    return stored;
  }

  function makeContext(): ProcessContext {
    const [clock, log, random, metrics] = [systemClock, silentLogger, Math.random, new Metrics()];
    const transport = new Transport(server.credentials(), { userAgent: 'test', metrics: metrics.kube, clock, random });
    const client = new Client(transport);
    const informers = new InformerRegistry({ client, log, metrics: metrics.kube, clock, random });
    return { client, informers, log, metrics, clock, random };
  }

  async function start(): Promise<Component> {
    const flags = ['agent', '--node-name=node-1', `--run-dir=${folder}/run`, `--cni-bin-dir=${folder}/bin`];
    flags.push('--cni-bin-host-dir=/opt/cni/bin');
    const config = readCommandLine(flags, {})?.config as AgentConfig;
    agent = createAgent(context, config, join(folder, 'cni'));
    agent.onFatal?.((error) => fail(error));
    await agent.start();
    return agent;
  }

  function ask(given: PluginRequest): Promise<PluginResponse> {
    return new Promise((resolve, reject) => {
      const socket = createConnection(join(folder, 'run', 'agent.sock'), () =>
        socket.write(`${JSON.stringify(given)}\n`),
      );
      let got = '';
      socket.setEncoding('utf8').on('data', (text: string) => (got += text));
      socket.on('error', reject);
      socket.on('end', () => resolve(JSON.parse(got) as PluginResponse));
    });
  }

  it('installs the plugin, answers it from the start, and removes its socket at the end', async () => {
    const part = await start();
    expect(await readFile(join(folder, 'bin', 'holdfast'), 'utf8')).to.equal('plugin');
    const added = await ask(pluginRequest('ADD'));
    expect(added, added.output).to.include({ exit: 0 });
    expect(part.ready?.()).to.equal(undefined);
    const { ips } = JSON.parse(added.output) as { ips: { address: string }[] };
    expect(ips).to.have.length(1);
    expect(ips[0]!.address).to.match(/^10\.0\.0\.\d+\/24$/);
    const [lease] = leases.values();
    expect(lease!.spec).to.include({ node: 'node-1', containerID: 'c1', interface: 'net1' });
    expect(await readlink(join(folder, 'run', 'sandboxes', 'c1'))).to.equal('/var/run/netns/p1');
    expect(await ask(pluginRequest('DEL'))).to.deep.equal({ exit: 0, output: '' });
    expect([...leases.values()].map(({ spec }) => spec.releasedAt)).not.to.include(undefined);
    await part.stop();
    expect(await readdir(join(folder, 'run'))).to.deep.equal(['sandboxes']);
    expect(part.ready?.()).to.include('not listening');
  });

  it('lists and watches no NADs and no derived pools, and reads those of pods once for many ADDs', async () => {
    await start();
    for (const id of ['c1', 'c2', 'c3'])
      expect(await ask(pluginRequest('ADD', { CNI_CONTAINERID: id }))).to.include({ exit: 0 });
    const readsOf = (plural: string) => server.seen.filter(({ path }) => path.includes(`/${plural}`));
    expect(readsOf('network-attachment-definitions').map(({ path }) => path)).to.deep.equal([
      '/apis/k8s.cni.cncf.io/v1/namespaces/vms/network-attachment-definitions/blue',
    ]);
    const pools = readsOf('addresspools').map(({ path, query }) => query.get('labelSelector') ?? path);
    expect(new Set(pools)).to.deep.equal(
      new Set(['!ipam.holdfast.dev/nad-namespace', '/apis/ipam.holdfast.dev/v1alpha1/addresspools/blue']),
    );
    expect(pools.filter((each) => each.endsWith('/blue'))).to.have.length(1);
  });

  it('serves requests without being ready if the directory of CNI plugins is not the one of Multus', async () => {
    await rm(join(folder, 'bin', 'multus'));
    const part = await start();
    expect(await ask(pluginRequest('ADD'))).to.include({ exit: 0 });
    expect(part.ready?.()).to.include(`the node's directory /opt/cni/bin has no multus or multus-shim`);
    expect(await context.metrics.registry.metrics()).to.include('holdfast_cni_plugin_usable 0');
  });

  it('reports missing caches while the API server is not available, and still answers DEL', async () => {
    isAway = true;
    const part = await start();
    expect(part.ready?.()).to.include('not listed yet').and.to.include('pods');
    const status = await ask(pluginRequest('STATUS', {}, { cniVersion: '1.1.0' }));
    expect(JSON.parse(status.output)).to.include({ code: 50 });
    expect(await ask(pluginRequest('DEL'))).to.deep.equal({ exit: 0, output: '' });
    expect(await readdir(join(folder, 'run', 'deletions'))).to.deep.equal(['c1-net1.json']);
  });

  it('ends the process if its socket was removed, because a removed folder stays mounted in the container', async () => {
    const { clock } = context;
    context = { ...context, clock: { ...clock, sleep: (ms, signal) => clock.sleep(Math.min(ms, 10), signal) } };
    const failure = new Promise((resolve) => (fail = resolve));
    await start();
    await rm(join(folder, 'run'), { recursive: true });
    expect(String(await failure)).to.include('agent.sock was removed or replaced');
  });

  it('carries out pending deletes once the API server is available again', async () => {
    await start();
    await ask(pluginRequest('ADD'));
    isAway = true;
    expect(await ask(pluginRequest('DEL'))).to.include({ exit: 0 });
    expect([...leases.values()].map(({ spec }) => spec.releasedAt)).to.deep.equal([undefined]);
    isAway = false;
    await server.until(() => [...leases.values()].every(({ spec }) => spec.releasedAt !== undefined));
  });
});
