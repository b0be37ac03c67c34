import { mkdir, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { StatusError, TransportError } from '../../../kube/errors.js';
import type { EventSubject } from '../../../kube/events.js';
import { silentLogger } from '../../../kube/log.js';
import { Metrics } from '../../../process/metrics.js';
import { makeClaim } from '../../../test/objects/kubevirt-objects.js';
import { SelfAdvancingClock } from '../testing/agent-world.js';
import type { GuardSubject } from './guard-notes.js';
import { GuardWatch } from './guard-watch.js';
import { createGuardMetrics } from './metrics.js';

const TABLE = `holdfast_${'a'.repeat(24)}`;
const OTHER = `holdfast_${'b'.repeat(24)}`;
const SUBJECT: GuardSubject = {
  ...{
    namespace: 'vms',
    pod: 'virt-launcher-vm1',
    podUid: 'p1',
    interfaceName: 'net1',
    claim: 'vm1.data',
    pool: 'blue',
  },
};
const SIGNAL = new AbortController().signal;
const FORBIDDEN = new StatusError({ request: 'GET /x', status: 403, reason: 'Forbidden', message: 'no' });

describe('the reports about guards of a node', () => {
  let folder: string;
  let clock: SelfAdvancingClock;
  let metrics: Metrics;
  let watch: GuardWatch;
  let events: string[];
  /** The claim, or the error of its read. */
  let claim: object;

  beforeEach(async () => {
    folder = join(await mkdtemp(join(tmpdir(), 'holdfast-')), 'guards');
    clock = new SelfAdvancingClock();
    metrics = new Metrics();
    events = [];
    claim = makeClaim('vm1', 'data');
    const event = ({ kind, metadata: { name } }: EventSubject, _type: string, reason: string, message: string) =>
      events.push(`${kind} ${name} ${reason}: ${message}`);
    const get = () => (claim instanceof Error ? Promise.reject(claim) : Promise.resolve(claim as never));
    const guardMetrics = createGuardMetrics(metrics);
    watch = new GuardWatch({
      ...{
        folder,
        nodeName: 'n1',
        client: { get },
        clock,
        events: { event },
        metrics: guardMetrics,
        log: silentLogger,
      },
    });
  });
  afterEach(() => rm(join(folder, '..'), { recursive: true }));

  async function note(fields: object, name = TABLE): Promise<void> {
    await mkdir(folder, { recursive: true });
    await writeFile(
      join(folder, name),
      JSON.stringify({ index: 7, rules: 47, mode: 'Enforce', subject: SUBJECT, ...fields }),
    );
  }

  async function count(counters: object, ageMs = 0): Promise<void> {
    const path = join(folder, 'counters.json');
    await writeFile(path, JSON.stringify(counters));
    const at = new Date(clock.wall() - ageMs);
    await utimes(path, at, at);
    await watch.round(SIGNAL);
  }

  async function shown(name: string): Promise<string[]> {
    const lines = (await metrics.registry.getSingleMetricAsString(`holdfast_${name}`)).split('\n');
    return lines.filter((line) => !line.startsWith('#'));
  }

  it('do nothing on a node without guards', async () => {
    await watch.round(SIGNAL);
    expect(events).to.deep.equal([]);
    expect(await shown('guard_ports')).to.deep.equal([]);
  });

  it('tell once on the node that its kernel cannot guard, before any pod has a guard', async () => {
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'kernel-refusal'), 'no netdev');
    for (let round = 0; round < 2; round++) await watch.round(SIGNAL);
    expect(events).to.deep.equal([
      'Node n1 GuardNotApplied: Node n1 cannot guard interfaces, so guard.mode Enforce refuses pods there: no netdev',
    ]);
  });

  it('tell the owner of the VM what its interface sends besides the traffic of its claim', async () => {
    await note({});
    await count({});
    await count({ [TABLE]: { ipv4_source: 3, arp_sender: 1 } });
    expect(events).to.deep.equal([
      'VirtualMachine vm1 TrafficNotOfClaim: Interface net1 of pod vms/virt-launcher-vm1 sends traffic that is not of IPAMClaim vms/vm1.data, ' +
        'which the guard of AddressPool blue drops: ARP for another address (arp_sender), IPv4 from another address (ipv4_source). ' +
        'Correct the guest. Addresses that are shared on purpose belong into spec.guard.allow of the pool',
    ]);
    const labels = 'pool="blue",nad_namespace="",mode="Enforce"';
    expect(await shown('guard_dropped_packets_total')).to.have.members([
      `holdfast_guard_dropped_packets_total{${labels},reason="ipv4_source"} 3`,
      `holdfast_guard_dropped_packets_total{${labels},reason="arp_sender"} 1`,
    ]);
    expect(await shown('guard_ports')).to.deep.equal([`holdfast_guard_ports{${labels},state="applied"} 1`]);
    expect(await shown('guard_counters_status')).to.deep.equal(['holdfast_guard_counters_status 1']);
  });

  it('say with Observe what Enforce would drop', async () => {
    await note({ mode: 'Observe' });
    await count({});
    await count({ [TABLE]: { vlan_tag: 1 } });
    expect(events[0]).to.include('which guard.mode Enforce of AddressPool blue would drop: frames with a VLAN tag');
  });

  it('count only new packets: neither those before a start of the agent, nor twice, nor if a dump lacks a counter', async () => {
    await note({});
    await count({ [TABLE]: { dhcp_server: 100 } });
    await count({ [TABLE]: { dhcp_server: 100 } });
    await count({});
    await count({ [TABLE]: { dhcp_server: 101 } });
    expect((await shown('guard_dropped_packets_total'))[0]).to.match(/ 1$/);
  });

  it('take what was dropped before somebody counted for old', async () => {
    await note({});
    await watch.round(SIGNAL);
    await count({ [TABLE]: { dhcp_server: 100 } });
    expect(events).to.deep.equal([]);
    expect(await shown('guard_dropped_packets_total')).to.deep.equal([]);
    await count({ [TABLE]: { dhcp_server: 101 } });
    expect(events).to.have.length(1);
  });

  it('count all packets of an interface that was plugged again, whose counters begin at 0', async () => {
    await note({});
    await count({ [TABLE]: { dhcp_server: 100 } });
    await count({ [TABLE]: { dhcp_server: 2 } });
    expect((await shown('guard_dropped_packets_total'))[0]).to.match(/ 2$/);
  });

  it('write an event of an interface at most every ten minutes, which then names all reasons since the last one', async () => {
    await note({});
    await count({});
    await count({ [TABLE]: { dhcp_server: 1 } });
    await count({ [TABLE]: { dhcp_server: 2, vlan_tag: 1 } });
    await count({ [TABLE]: { dhcp_server: 2, vlan_tag: 1, ethertype: 1 } });
    expect(events).to.have.length(1);
    clock.advance(10 * 60_000);
    await count({ [TABLE]: { dhcp_server: 2, vlan_tag: 1, ethertype: 1 } });
    expect(events).to.have.length(2);
    expect(events[1]).to.include('(ethertype)').and.to.include('(dhcp_server)').and.to.include('(vlan_tag)');
  });

  it('count what a hold drops, and write no event about it, because the guest does not send it', async () => {
    await note({});
    await count({});
    await count({ [TABLE]: { held: 12 } });
    expect(events).to.deep.equal([]);
    expect((await shown('guard_dropped_packets_total'))[0]).to.match(/reason="held"} 12$/);
  });

  it('write no event about the few frames that the kernel of a launcher sends with another MAC address', async () => {
    await note({});
    await count({});
    await count({ [TABLE]: { source_mac: 10 } });
    clock.advance(60_000); // the counting container was restarted
    await count({ [TABLE]: { source_mac: 70 } });
    expect(events).to.deep.equal([]);
    clock.advance(10_000);
    await count({ [TABLE]: { source_mac: 81 } });
    expect(events.join()).to.include('frames from another MAC address (source_mac)');
  });

  it('are about the pod if it has no claim, or its claim cannot be read', async () => {
    await note({ subject: { ...SUBJECT, claim: undefined } });
    await note({}, OTHER);
    claim = FORBIDDEN;
    await count({});
    await count({ [TABLE]: { dhcp_server: 1 }, [OTHER]: { dhcp_server: 1 } });
    expect(events.map((text) => text.split(':')[0])).to.deep.equal([
      'Pod virt-launcher-vm1 TrafficNotOfClaim',
      'Pod virt-launcher-vm1 TrafficNotOfClaim',
    ]);
    expect(events[0]).to.include('that is not of the pod');
  });

  it('come later if the API server does not answer', async () => {
    await note({});
    await count({});
    claim = new TransportError('unsent', 'GET /x: refused');
    await count({ [TABLE]: { dhcp_server: 1 } });
    expect(events).to.deep.equal([]);
    claim = makeClaim('vm1', 'data');
    await watch.round(SIGNAL);
    expect(events).to.have.length(1);
  });

  it('tell once that rules could not be applied, also if nobody counts', async () => {
    await note({ mode: 'Observe', failure: 'the guard of interface net1 cannot be applied: no nftables' });
    await watch.round(SIGNAL);
    await watch.round(SIGNAL);
    expect(events).to.deep.equal([
      'VirtualMachine vm1 GuardNotApplied: Interface net1 of pod vms/virt-launcher-vm1 is not observed by the guard of AddressPool blue: ' +
        'the guard of interface net1 cannot be applied: no nftables',
    ]);
    expect((await shown('guard_ports'))[0]).to.match(/mode="Observe",state="failed"} 1$/);
    expect(await shown('guard_counters_status')).to.deep.equal(['holdfast_guard_counters_status 0']);
  });

  it('tell it again while it lasts, because the API server deletes an event after an hour', async () => {
    await note({ failure: 'no netdev', mode: 'Observe' });
    for (let round = 0; round < 180; round++) {
      await watch.round(SIGNAL);
      clock.advance(60_000);
    }
    expect(events).to.have.length(6);
  });

  it('tell that another program has removed the rules of a port', async () => {
    await note({ failure: 'another program has removed its rules' });
    await watch.round(SIGNAL);
    expect(events).to.deep.equal([
      'VirtualMachine vm1 GuardNotApplied: Interface net1 of pod vms/virt-launcher-vm1 is no longer filtered by the guard of AddressPool blue: ' +
        'another program has removed its rules',
    ]);
    expect((await shown('guard_ports'))[0]).to.match(/mode="Enforce",state="failed"} 1$/);
  });

  it('tell it again if an interface that was plugged again under its name loses its rules, too', async () => {
    for (const fields of [{ failure: 'lost' }, {}, { failure: 'lost' }]) {
      await note(fields);
      await watch.round(SIGNAL);
    }
    expect(events.map((text) => text.split(':')[0])).to.deep.equal(Array(2).fill('VirtualMachine vm1 GuardNotApplied'));
  });

  it('show ports whose counters are inside of their pods', async () => {
    await note({ index: 0 });
    await watch.round(SIGNAL);
    expect((await shown('guard_ports'))[0]).to.include('state="uncounted"');
    expect(events).to.deep.equal([]);
  });

  it('do not take old counters for those of now', async () => {
    await note({});
    await count({}, 61_000);
    expect(await shown('guard_counters_status')).to.deep.equal(['holdfast_guard_counters_status 0']);
  });

  it('remove the series of a pool without ports, so that tenants cannot make more and more of them', async () => {
    await note({ subject: { ...SUBJECT, pool: 'tenant', nadNamespace: 'vms' } });
    await count({});
    await count({ [TABLE]: { dhcp_server: 1 } });
    expect((await shown('guard_dropped_packets_total'))[0]).to.include('pool="",nad_namespace="vms"');
    await rm(join(folder, TABLE));
    await count({});
    expect(await shown('guard_dropped_packets_total')).to.deep.equal([]);
    expect(await shown('guard_ports')).to.deep.equal([]);
  });

  it('leave out notes and counters that cannot be read, and files of others', async () => {
    await note({});
    await writeFile(join(folder, OTHER), '{"index": 7, "ru');
    await writeFile(join(folder, 'other'), '{}');
    await count({});
    await count({ [TABLE]: { dhcp_server: 'many', vlan_tag: 1 }, [OTHER]: { vlan_tag: 5 }, other: 1 });
    expect(await shown('guard_dropped_packets_total')).to.have.length(1);
    await writeFile(join(folder, 'counters.json'), '{');
    await watch.round(SIGNAL);
  });
});
