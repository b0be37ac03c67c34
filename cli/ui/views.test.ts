import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { KubeObject } from '../../api/meta.js';
import { CLAIM_OWNER_NAME, CLAIM_OWNER_UID, IPS_ALLOCATED } from '../../api/names.js';
import { leaseOf } from '../../test/objects/lease-objects.js';
import { adminPool } from '../../test/objects/pool-objects.js';
import { NAMESPACE, claim, vm } from '../../test/objects/workload-objects.js';
import type { PoolsView, PoolView, SearchView, ServerView, VmsView, VmView, WaitingView } from './protocol.js';
import type { Ui } from './serve-ui.js';
import { type BrowserSession, ViewReader, enter, send, startUi } from './testing/ui-client.js';
import { EVENTS } from '../../kube/events.js';
import { ADDRESS_LEASES, ADDRESS_POOLS, IPAM_CLAIMS, VIRTUAL_MACHINES } from '../../kube/resources.js';
import { WatchedCluster } from './testing/watched-cluster.js';

const IPV4 = { capacity: 254, leased: 2, cooling: 1, free: 251, reserved: 0, quarantined: 0 };
const IPV6 = { ...IPV4, capacity: Number.MAX_SAFE_INTEGER, free: Number.MAX_SAFE_INTEGER - 3 };
const COUNTS = { ...IPV6, heldByStopped: 1, ipv4: IPV4, ipv6: IPV6 };
const HOSTILE = '<img src=x onerror=alert(1)>\u202e\u001b[31m';

describe('The views of the web page', () => {
  let cluster: WatchedCluster;
  let ui: Ui;
  let session: BrowserSession;
  const readers: ViewReader[] = [];

  beforeEach(async () => {
    cluster = new WatchedCluster();
    cluster.tracker.put(ADDRESS_POOLS, { ...adminPool('blue'), status: COUNTS } as KubeObject);
    cluster.tracker.put(IPAM_CLAIMS, claim({ ips: ['10.0.0.5/24'] }));
    const owner = { name: 'vm1.data', namespace: NAMESPACE };
    cluster.tracker.put(ADDRESS_LEASES, leaseOf('10.0.0.5', 1, { ...owner, mac: '02:00:00:00:00:05' }));
    cluster.tracker.put(
      ADDRESS_LEASES,
      leaseOf('10.0.0.6', 1, { ...owner, uid: 'u2', releasedAt: Date.UTC(2026, 0, 1) }),
    );
    cluster.tracker.put(VIRTUAL_MACHINES, vm({ data: 'blue' }), secretVm());
    ui = await startUi(cluster);
    session = await enter(ui);
  });
  afterEach(async () => {
    for (const reader of readers.splice(0)) reader.close();
    await ui.stop();
  });

  function open(query: string): ViewReader {
    const reader = ViewReader.open(ui, session, query);
    readers.push(reader);
    return reader;
  }

  const isLive = ({ parts }: ServerView) => parts.every(({ state }) => state === 'live');

  it('shows pools with their counts, and changes as patches', async () => {
    const reader = open('view=pools');
    const { pools } = await reader.until<PoolsView & ServerView>(isLive);
    expect(pools.rows[0]).to.deep.include({ name: 'blue', network: 'blue', cidrs: ['10.0.0.0/24'] });
    expect(pools.rows[0]?.counts).to.deep.equal([
      { family: 'IPv4', ...IPV4 },
      { family: 'IPv6', ...IPV6 },
    ]);
    cluster.tracker.put(ADDRESS_POOLS, {
      ...adminPool('blue'),
      status: { ...COUNTS, ipv4: { ...IPV4, free: 250 } },
    } as KubeObject);
    await reader.until<PoolsView & ServerView>((view) => view.pools.rows[0]?.counts[0]?.free === 250);
    expect(reader.events.at(-1)).to.equal('patch');
    expect(reader.events.filter((event) => event === 'snapshot')).to.have.length.at.least(1);
  });

  it('shows each address of a small subnet on the map, with its lease', async () => {
    const { window, subnets } = await open('view=pool&name=blue').until<PoolView & ServerView>(
      (view) => isLive(view) && view.window?.states?.[6] === 'c',
    );
    expect(subnets).to.deep.equal([{ cidr: '10.0.0.0/24', top: '10.0.0.0', bits: 8 }]);
    expect(window).to.include({ first: '10.0.0.0', last: '10.0.0.255', bits: 8 });
    // excluded, free, allocated, cooling
    expect(window?.states?.slice(0, 8)).to.equal('x....#c.');
    expect(window?.cells[5]).to.deep.include({ first: '10.0.0.5', counts: { allocated: '1' } });
    expect(window?.cells[5]?.lease).to.include({ state: 'held', mac: '02:00:00:00:00:05' });
  });

  it('shows on the map who has a quarantined address', async () => {
    cluster.tracker.put(ADDRESS_LEASES, leaseOf('10.0.0.9', 1, { uid: 'u9', takenBy: '02:00:00:00:00:99' }));
    const { window } = await open('view=pool&name=blue').until<PoolView & ServerView>(
      (view) => isLive(view) && view.window?.states?.[9] === 'q',
    );
    expect(window?.cells[9]?.lease).to.include({ state: 'quarantined', takenBy: '02:00:00:00:00:99' });
  });

  it('shows the addresses that are leased through another pool of the address space', async () => {
    const lease = leaseOf('10.0.0.9', 1, { uid: 'u9' });
    cluster.tracker.put(ADDRESS_LEASES, { ...lease, spec: { ...lease.spec, pool: 'other' } } as KubeObject);
    const { window } = await open('view=pool&name=blue').until<PoolView & ServerView>(
      (view) => isLive(view) && view.window?.states?.[6] === 'c',
    );
    expect(window?.cells[9]).to.deep.include({ counts: { 'other-pool': '1' } });
  });

  it('shows a VM with its story, leases and events, and watches the events only while it is open', async () => {
    const reader = open(`view=vm&namespace=${NAMESPACE}&name=vm1`);
    await reader.until<VmView & ServerView>((view) => view.leases.length === 2 && view.story !== undefined);
    cluster.tracker.put(
      EVENTS,
      event('vm1', 'AddressesAllocated', 'has 10.0.0.5'),
      event('vm2', 'Other', 'of another VM'),
    );
    const { events } = await reader.until<VmView & ServerView>((view) => view.events.total > 0);
    expect(events.rows.map(({ reason }) => reason)).to.deep.equal(['AddressesAllocated']);
    expect(cluster.watching('events')).to.equal(1);
    reader.close();
    await cluster.untilWatching('events', 0);
  });

  it('lists what waits and why', async () => {
    const full = { ...COUNTS, ipv4: { ...IPV4, leased: 253, free: 0 } };
    const conditions = [{ type: 'Ready', status: 'True', reason: 'Serving', message: '', lastTransitionTime: '' }];
    cluster.tracker.put(ADDRESS_POOLS, { ...adminPool('blue'), status: { ...full, conditions } } as KubeObject);
    cluster.tracker.put(IPAM_CLAIMS, waitingClaim());
    const { findings, pools } = await open('view=waiting').until<WaitingView & ServerView>(
      (view) => view.findings?.rows.some(({ problem }) => problem.includes('SubnetExhausted')) ?? false,
    );
    expect(
      pools.rows.map(({ name }) => name),
      'a pool with a full family',
    ).to.deep.equal(['blue']);
    expect(findings?.rows).to.deep.include({
      ...{ severity: 'error', object: `VirtualMachine ${NAMESPACE}/vm2` },
      problem: 'SubnetExhausted: Pool blue is full',
      remedy: `kubectl holdfast trace vm vm2 -n ${NAMESPACE}`,
    });
    await open('view=vms').until<VmsView & ServerView>((view) =>
      view.vms.rows.some(({ name, problem }) => name === 'vm2' && problem.startsWith('SubnetExhausted: Pool blue')),
    );
  });

  const searches = [
    { query: '10.0.0.5', text: '10.0.0.5', href: '#/pool/blue?at=10.0.0.5&bits=8' },
    { query: '10.0.0.5/24', text: '10.0.0.5', href: '#/pool/blue?at=10.0.0.5&bits=8' },
    { query: '10.0.0.77', text: '10.0.0.77', href: '#/pool/blue?at=10.0.0.77&bits=8' },
    { query: '02-00-00-00-00-05', text: '10.0.0.5', href: '#/pool/blue?at=10.0.0.5&bits=8' },
    { query: 'VM1', text: `${NAMESPACE}/vm1`, href: `#/vm/${NAMESPACE}/vm1` },
    { query: `${NAMESPACE}/vm1`, text: `${NAMESPACE}/vm1`, href: `#/vm/${NAMESPACE}/vm1` },
    { query: NAMESPACE, text: NAMESPACE, href: `#/vms?q=${NAMESPACE}` },
    { query: 'blu', text: 'blue', href: '#/pool/blue' },
  ];
  for (const { query, text, href } of searches) {
    it(`finds "${query}"`, async () => {
      const reader = open(`view=search&q=${encodeURIComponent(query)}`);
      const { hits } = await reader.until<SearchView & ServerView>((view) => isLive(view) && view.hits.total > 0);
      expect(hits.rows.map((hit) => [hit.text, hit.href])).to.deep.include([text, href]);
    });
  }

  it('counts all that a search finds', async () => {
    for (let n = 0; n < 1_100; n += 1) {
      const { metadata, spec } = leaseOf(`10.0.${n >> 8}.${n & 255}`, 1);
      const owner = { kind: 'Pod' as const, namespace: 'many', name: `pod-${n}`, uid: `u${n}` };
      cluster.tracker.put(ADDRESS_LEASES, { metadata, spec: { ...spec, owner } });
    }
    const reader = open('view=search&q=pod-');
    const { hits } = await reader.until<SearchView & ServerView>((view) => isLive(view) && view.hits.total >= 1_100);
    expect([hits.total, hits.rows.length]).to.deep.equal([1_100, 200]);
  });

  it('sends no fields that the page does not show', async () => {
    const reader = open('view=vms');
    await reader.until<VmsView & ServerView>((view) => isLive(view) && view.vms.total === 2);
    expect(reader.text).to.include('secret-vm').and.not.to.include('PASSWORD');
  });

  it('sends no Secrets: it never asks for them, and only reads', async () => {
    await open('view=vms').until(isLive);
    await open('view=waiting').until<WaitingView & ServerView>((view) => view.findings !== undefined);
    const kinds = new Set(cluster.requests.map(({ path }) => path.split('/').at(-1)));
    expect([...kinds]).to.include.members(['addressleases', 'addresspools', 'ipamclaims', 'virtualmachines']);
    expect([...kinds]).not.to.include('secrets');
    expect(cluster.requests.every(({ method }) => method === 'GET')).to.equal(true);
  });

  it('escapes characters that are invisible or change the direction of text', async () => {
    const reader = open(`view=vm&namespace=${NAMESPACE}&name=vm1`);
    cluster.tracker.put(EVENTS, event('vm1', 'Hostile', HOSTILE));
    const { events } = await reader.until<VmView & ServerView>((view) => view.events.total > 0);
    expect(events.rows[0]?.message).to.equal('<img src=x onerror=alert(1)>\\u202e\\u001b[31m');
  });

  it('shows events without a message, and ignores those without the name of an object', async () => {
    const reader = open(`view=vm&namespace=${NAMESPACE}&name=vm1`);
    const { message: _message, ...bare } = event('vm1', 'Bare', '') as KubeObject & { message: string };
    const unnamed = { ...event('unnamed', 'Unnamed', 'of no pod'), involvedObject: { kind: 'Pod' } };
    cluster.tracker.put(EVENTS, unnamed, bare, event('vm1', 'Other', 'of the VM'));
    const { events } = await reader.until<VmView & ServerView>((view) => view.events.total > 0);
    expect(events.rows.map(({ reason }) => reason).sort()).to.deep.equal(['Bare', 'Other']);
  });

  it('cuts all texts that tenants may write', async () => {
    const long = 'x'.repeat(100_000);
    const hostile = { metadata: { namespace: NAMESPACE, name: 'long' }, involvedObject: { kind: long, name: 'vm1' } };
    cluster.tracker.put(EVENTS, { ...hostile, type: long, reason: long, message: long } as KubeObject);
    cluster.tracker.put(IPAM_CLAIMS, { ...waitingClaim(), spec: { network: long, interface: 'pod0' } } as KubeObject);
    const annotations = { [CLAIM_OWNER_NAME]: long, [CLAIM_OWNER_UID]: 'u1' };
    for (const [name, more] of Object.entries({ ownerless: {}, noted: { annotations } })) {
      const metadata = { namespace: NAMESPACE, name, ...more };
      const status = { ips: Array<string>(1_000).fill(long.slice(0, 100)) };
      cluster.tracker.put(IPAM_CLAIMS, { metadata, spec: { network: long, interface: '' }, status });
    }
    const vms = open('view=vms');
    const { rows } = (await vms.until<VmsView & ServerView>((view) => isLive(view) && view.vms.total === 4)).vms;
    expect(rows.map(({ name }) => name.length)).to.include(254);
    const story = open(`view=vm&namespace=${NAMESPACE}&name=vm1`);
    await story.until<VmView & ServerView>((view) => view.events.total > 0);
    const waiting = open('view=waiting');
    await waiting.until<WaitingView & ServerView>((view) => view.findings !== undefined);
    expect(story.text.length + waiting.text.length + vms.text.length).to.be.lessThan(50_000);
  });

  it('cuts long messages and long lists, and counts what is not shown', async () => {
    const vms = Array.from({ length: 300 }, (_, n) => ({ metadata: { namespace: 'many', name: `vm-${n}` } }));
    cluster.tracker.put(VIRTUAL_MACHINES, ...vms);
    const { vms: list } = await open('view=vms').until<VmsView & ServerView>((view) => view.vms.total === 302);
    expect(list.rows).to.have.length(200);
    const reader = open(`view=vm&namespace=${NAMESPACE}&name=vm1`);
    cluster.tracker.put(EVENTS, event('vm1', 'Long', 'x'.repeat(100_000)));
    const { events } = await reader.until<VmView & ServerView>((view) => view.events.total > 0);
    expect(events.rows[0]?.message).to.have.length(1_025);
  });

  it('says which kinds the user may not list, and looks in the namespace of the context', async () => {
    await ui.stop();
    cluster.forbidden.set('addresspools', ['*']).set('addressleases', ['*']);
    cluster.forbidden.set('virtualmachines', ['elsewhere']);
    cluster.absent.add('virtualmachineinstances');
    cluster.tracker.put(VIRTUAL_MACHINES, { metadata: { namespace: 'mine', name: 'own' } });
    ui = await startUi(cluster);
    session = await enter(ui);
    const { parts, vms } = await open('view=vms').until<VmsView & ServerView>(
      (view) =>
        view.parts.every(({ state }) => state !== 'loading') && view.vms.rows.some(({ name }) => name === 'own'),
    );
    const of = (resource: string) => parts.find((part) => part.resource === resource);
    expect(of('addresspools.ipam.holdfast.dev')?.message).to.include('may not list addresspools.ipam.holdfast.dev');
    expect(of('addressleases.ipam.holdfast.dev')?.state).to.equal('refused');
    expect(of('virtualmachines.kubevirt.io')).to.include({ state: 'live', namespace: 'mine' });
    expect(of('virtualmachineinstances.kubevirt.io')?.state).to.equal('absent');
    expect(vms.rows.map(({ namespace }) => namespace))
      .to.include('mine')
      .and.to.include(NAMESPACE);
  });

  it('refuses further pages when many are open', async () => {
    for (let n = 0; n < 24; n += 1) await open('view=pools').until(() => true);
    const { status } = await send(ui.server.port, `${session.path}views?view=pools`, {
      headers: { cookie: session.cookie },
    });
    expect(status).to.equal(403);
  });
});

function waitingClaim(): IPAMClaim {
  const condition = {
    type: IPS_ALLOCATED,
    status: 'False' as const,
    reason: 'SubnetExhausted',
    message: 'Pool blue is full',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  };
  const { spec, metadata } = claim();
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'vm2', uid: 'vm2-uid', controller: true };
  const named = { ...metadata, name: 'vm2.data', ownerReferences: [owner] };
  return { metadata: named, spec, status: { ips: [], conditions: [condition] } };
}

function secretVm(): KubeObject {
  const annotations = { note: 'PASSWORD' };
  const env = [{ name: 'PASSWORD', value: 'PASSWORD' }];
  const spec = { template: { spec: { volumes: [{ cloudInitNoCloud: { userData: 'PASSWORD' } }], env } } };
  return { metadata: { namespace: NAMESPACE, name: 'secret-vm', annotations }, spec } as KubeObject;
}

function event(name: string, reason: string, message: string): KubeObject {
  return {
    metadata: { namespace: NAMESPACE, name: `${name}.${reason}` },
    involvedObject: { kind: 'VirtualMachine', name },
    ...{ type: 'Normal', reason, message, count: 1, lastTimestamp: '2026-01-01T00:00:00Z' },
  } as KubeObject;
}
