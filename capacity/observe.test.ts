import { expect } from 'chai';
import type { AddressLease } from '../api/address-lease.js';
import { parseAddress } from '../addressing/address/address.js';
import type { BlockRecord } from '../addressing/block/block.js';
import { parseCidr } from '../addressing/address/cidr.js';
import { createLease } from '../addressing/lease/lease.js';
import type { Pool } from '../addressing/pool/pool.js';
import { compiledPool, leaseOf as blueLeaseOf } from '../test/objects/lease-objects.js';
import type { PoolGiven } from '../test/objects/pool-objects.js';
import { toNodeRecord } from './node-record.js';
import { type PoolDemand, type CapacityInputs, observeDemand } from './observe.js';
import type { PodRecord } from './pod-record.js';
import { Inventory, readInventoryEntry } from './inventory.js';

const BLUE = 'ipam.holdfast.dev/blue';
const RELEASED_AT = Date.UTC(2026, 0, 1);
const COOLDOWN_MS = 60_000; // twice as long as agents may answer from their caches
const SEEN_AT = 1_000;

function poolOf(spec: PoolGiven = {}, name = 'blue'): Pool {
  return compiledPool({ publishCapacity: true, ...spec }, name);
}

/** @param owner `pod-1` or a claim; undefined for a released lease */
function leaseOf(
  address: string,
  owner: string | undefined,
  { pool = 'blue', ...more }: { pool?: string; mac?: string; reserved?: true } = {},
): AddressLease {
  const isPod = owner?.startsWith('pod-') === true;
  const { metadata, spec } = createLease({
    address: parseAddress(address),
    addressSpace: 'blue',
    pool,
    owner: { kind: isPod ? 'Pod' : 'IPAMClaim', namespace: 'ns', name: owner ?? 'gone', uid: owner ?? 'gone' },
  }).object;
  return {
    metadata: { ...metadata, uid: address, resourceVersion: '1' },
    spec: { ...spec, ...more, ...(owner === undefined && { releasedAt: new Date(RELEASED_AT).toISOString() }) },
  };
}

function podOn(uid: string, given: Partial<PodRecord> = {}): PodRecord {
  return { uid, namespace: 'ns', requests: new Map([[BLUE, 1]]), isLeaving: false, ...given };
}

function block(name: string, node: string, more: Partial<BlockRecord> = {}): BlockRecord {
  return { metadata: { name, uid: name, resourceVersion: '1' }, pool: 'blue', cidr: parseCidr(name), node, ...more };
}

interface Given {
  pools?: Pool[];
  pods?: PodRecord[];
  leases?: AddressLease[];
  blocks?: BlockRecord[];
  labels?: Record<string, Record<string, string>>;
  now?: number;
  turn?: number;
}

function look({
  pools = [poolOf()],
  pods = [],
  leases = [],
  blocks = [],
  labels = {},
  now = RELEASED_AT,
  turn,
}: Given): PoolDemand[] {
  const inventory = new Inventory();
  for (const lease of leases) inventory.add(readInventoryEntry(lease));
  const nodes = ['n1', 'n2'].map((name) =>
    toNodeRecord({ metadata: { name, uid: name, resourceVersion: '1', labels: labels[name] ?? {} } }),
  );
  const blocksOf: CapacityInputs['blocksOf'] = ({ name }) => (name === 'blue' ? blocks : []);
  const times = { now, maxStalenessMs: 30_000, attachedBefore: SEEN_AT };
  return observeDemand({ pools, nodes, pods, inventory, blocksOf, ...times }, turn);
}

function lookAt(given: Given): PoolDemand {
  const [pool] = look(given);
  if (pool === undefined) throw new Error('nothing is observed');
  return pool;
}

describe('the budget of a pool', () => {
  it('is the number of free addresses, without those that cool down', () => {
    const leases = [leaseOf('10.0.0.1', 'claim'), leaseOf('10.0.0.2', 'pod-1'), leaseOf('10.0.0.3', undefined)];
    expect(lookAt({ leases }).budget).to.equal(3);
  });

  it('excludes quarantined addresses', () => {
    expect(lookAt({ leases: [blueLeaseOf('10.0.0.1', 1, { takenBy: '02:00:00:00:00:99' })] }).budget).to.equal(5);
  });

  it('excludes reserved addresses, and leases of another pool in the address space', () => {
    const pools = [poolOf({ subnets: [{ cidr: '10.0.0.0/29', reserved: ['10.0.0.6'] }] })];
    expect(lookAt({ pools, leases: [leaseOf('10.0.0.1', 'claim', { pool: 'other' })] }).budget).to.equal(4);
  });

  it('includes addresses that are kept for a MAC address, after their cool-down', () => {
    const pools = [poolOf({ stickyMAC: { ttl: '24h' }, cooldownSeconds: 0 })];
    const mac = '02:00:00:00:00:01';
    const leases = [
      leaseOf('10.0.0.1', undefined, { mac }),
      leaseOf('10.0.0.2', undefined, { pool: 'other', mac }),
      leaseOf('10.0.0.3', undefined, { mac, reserved: true }),
    ];
    const budgetAt = (now: number) => lookAt({ pools, leases, now }).budget;
    expect(budgetAt(RELEASED_AT + COOLDOWN_MS - 1)).to.equal(3);
    expect(budgetAt(RELEASED_AT + COOLDOWN_MS)).to.equal(4);
  });

  it('follows leases that are allocated again or deleted', () => {
    const inventory = new Inventory();
    const [before, after] = [
      readInventoryEntry(leaseOf('10.0.0.1', undefined)),
      readInventoryEntry(leaseOf('10.0.0.1', 'pod-1')),
    ];
    const free = () => inventory.free(poolOf(), 4, { blocks: [], cooledSince: RELEASED_AT }).total;
    inventory.add(before);
    inventory.add(after);
    expect(free()).to.equal(5);
    inventory.add(before);
    expect(free()).to.equal(6);
    inventory.delete(before);
    expect(free()).to.equal(6);
  });

  it('ignores released leases of other pools and other address spaces', () => {
    const inventory = new Inventory();
    const released = readInventoryEntry(leaseOf('10.0.0.1', undefined));
    inventory.add({ ...released, pool: 'other' });
    inventory.add({ ...released, space: 'green' });
    expect(inventory.free(poolOf(), 4, { blocks: [], cooledSince: RELEASED_AT }).total).to.equal(5);
    inventory.add(released);
    expect(inventory.free(poolOf(), 4, { blocks: [], cooledSince: RELEASED_AT }).total).to.equal(6);
  });

  it('excludes addresses that bound pods still wait for', () => {
    const pods = [podOn('pod-1', { node: 'n1' }), podOn('pod-2', { node: 'n2' }), podOn('pod-3')];
    const observed = lookAt({ pods, leases: [leaseOf('10.0.0.1', 'pod-1')] });
    expect(observed.budget).to.equal(4);
    expect(observed.nodes.map(({ requested }) => requested)).to.deep.equal([1, 1]);
  });

  it('counts pods that are being deleted separately', () => {
    const pods = [podOn('pod-1', { node: 'n1', isLeaving: true })];
    const { nodes } = lookAt({ pods, leases: [leaseOf('10.0.0.1', 'pod-1')] });
    expect(nodes.map(({ requested, leavingRequests }) => [requested, leavingRequests])).to.deep.equal([
      [0, 1],
      [0, 0],
    ]);
  });

  it('ignores requests of pods that get no addresses', () => {
    const requests = new Map([[BLUE, 4]]);
    const runs = podOn('pod-1', { node: 'n1', requests, attachedAt: SEEN_AT - 1 });
    expect(lookAt({ pods: [runs], leases: [leaseOf('10.0.0.1', 'pod-1')] }).budget).to.equal(5);
    const pools = [poolOf({ namespaces: ['other'] })];
    const { budget, nodes } = lookAt({ pools, pods: [podOn('pod-2', { node: 'n1', requests })] });
    expect([budget, nodes[0]?.requested]).to.deep.equal([6, 4]);
  });

  it('has set aside what a pod requests that has just been attached, because its leases may be seen later', () => {
    const budgetAt = (attachedAt: number) => lookAt({ pods: [podOn('pod-1', { node: 'n1', attachedAt })] }).budget;
    expect([SEEN_AT, SEEN_AT - 1].map(budgetAt)).to.deep.equal([5, 6]);
  });

  it('is negative if bound pods wait for more addresses than are free', () => {
    const pods = Array.from({ length: 8 }, (_, index) => podOn(`pod-${index}`, { node: 'n1' }));
    expect(lookAt({ pods }).budget).to.equal(-2);
  });

  it('is that of the scarcer family', () => {
    const pools = [poolOf({ subnets: [{ cidr: '10.0.0.0/29' }, { cidr: 'fd00::/126' }] })];
    expect(lookAt({ pools }).budget).to.equal(3);
    const pods = [podOn('pod-1', { node: 'n1' })];
    expect(lookAt({ pools, pods, leases: [leaseOf('fd00::1', 'pod-1')] }).budget).to.equal(2);
  });

  it('is large for a large network', () => {
    const pools = [poolOf({ subnets: [{ cidr: 'fd00::/64' }] })];
    expect(lookAt({ pools }).budget).to.be.greaterThan(1e9);
  });
});

describe('the blocks of nodes', () => {
  const pools = [poolOf({ subnets: [{ cidr: '10.0.0.0/28' }] })];

  it('count for their nodes, and in the budget', () => {
    const { budget, nodes } = lookAt({ pools, blocks: [block('10.0.0.0/30', 'n1'), block('10.0.0.4/30', 'n2')] });
    expect(budget).to.equal(14);
    expect(nodes.map(({ ownFree }) => ownFree)).to.deep.equal([3, 4]);
  });

  it('include addresses in them that have cooled down', () => {
    const leases = [leaseOf('10.0.0.1', undefined), leaseOf('10.0.0.5', undefined)];
    const blocks = [block('10.0.0.0/30', 'n1')];
    const { budget, nodes } = lookAt({ pools, blocks, leases, now: RELEASED_AT + COOLDOWN_MS });
    expect([budget, ...nodes.map(({ ownFree }) => ownFree)]).to.deep.equal([14, 3, 0]);
  });

  it('exclude addresses that pods of the node still wait for', () => {
    const pods = [podOn('pod-1', { node: 'n1' })];
    expect(
      lookAt({ pools, pods, blocks: [block('10.0.0.0/30', 'n1')] }).nodes.map(({ ownFree }) => ownFree),
    ).to.deep.equal([2, 0]);
  });

  it('count for no node while they are being released', () => {
    const { budget, nodes } = lookAt({
      pools,
      blocks: [block('10.0.0.4/30', 'n1', { release: 'marked-for-release' })],
    });
    expect([budget, ...nodes.map(({ ownFree }) => ownFree)]).to.deep.equal([10, 0, 0]);
  });
});

describe('pending pods', () => {
  const constraints = { nodeSelector: {}, tolerations: [] };
  const zoned = { nodeSelector: { zone: 'a' }, tolerations: [] };
  const labels = { n1: { zone: 'a' } };

  it('are grouped by requests, with the nodes on which they can run', () => {
    const pods = [podOn('1', { constraints }), podOn('2', { constraints }), podOn('3', { constraints: zoned })];
    const { waiting, waitingPods } = lookAt({ pods, labels });
    expect(waiting.map(({ pods: count, nodes }) => [count, nodes])).to.deep.equal([
      [2, ['n1', 'n2']],
      [1, ['n1']],
    ]);
    expect(waitingPods).to.equal(3);
  });

  it('can run only on nodes that have all requested networks', () => {
    const pools = [poolOf({ nodeSelector: { zone: 'a' } }), poolOf({ network: 'green' }, 'green')];
    const requests = new Map([
      [BLUE, 1],
      ['ipam.holdfast.dev/green', 2],
    ]);
    const [blue, green] = look({ pools, labels, pods: [podOn('1', { constraints, requests })] });
    expect(blue?.nodes.map(({ name }) => name)).to.deep.equal(['n1']);
    expect(green?.waiting.map(({ requested, nodes }) => [requested, nodes])).to.deep.equal([[2, ['n1']]]);
    expect(green?.waiting[0]?.key).to.equal(blue?.waiting[0]?.key);
  });

  it('are skipped if they can run on no node', () => {
    const stuck = Array.from({ length: 500 }, (_, index) =>
      podOn(`${index}`, { constraints: { nodeSelector: { zone: `${index}` }, tolerations: [] } }),
    );
    const { waiting } = lookAt({ pods: [...stuck, podOn('good', { constraints })] });
    expect(waiting.map(({ nodes }) => nodes)).to.deep.equal([['n1', 'n2']]);
  });

  it('are examined by namespace in turn, so that no namespace blocks another', () => {
    const flood = Array.from({ length: 600 }, (_, index) => {
      const tolerations = [{ key: `${index}`, operator: 'Exists', value: '', effect: '' }];
      return podOn(`${index}`, { namespace: 'bad', constraints: { nodeSelector: {}, tolerations } });
    });
    const { waiting } = lookAt({ labels, pods: [...flood, podOn('good', { constraints: zoned })] });
    expect(waiting).to.have.length(500);
    expect(waiting.filter(({ nodes }) => nodes.length === 1)).to.have.length(1);
  });

  for (const [where, namespaceOf] of [
    ['each in its namespace', (index: number) => `ns-${index}`],
    ['all in one namespace', () => 'ns'],
  ] as const) {
    it(`are examined in turns if there are too many groups, ${where}`, () => {
      const pods = Array.from({ length: 600 }, (_, index) =>
        podOn(`${index}`, {
          namespace: namespaceOf(index),
          constraints: {
            nodeSelector: {},
            tolerations: [{ key: `${index}`, operator: 'Exists', value: '', effect: '' }],
          },
        }),
      );
      const keysIn = (turn: number) => lookAt({ pods, turn }).waiting.map(({ key }) => key);
      const first = lookAt({ pods, turn: 0 });
      expect([first.waiting.length, first.skippedGroups.size]).to.deep.equal([500, 100]);
      expect(keysIn(0)).to.deep.equal(first.waiting.map(({ key }) => key));
      const turns = Array.from({ length: 10 }, (_, turn) => keysIn(turn));
      expect(new Set(turns.flat())).to.have.property('size', 600);
    });
  }

  it('are ignored in a namespace that the pool does not serve', () => {
    const pools = [poolOf({ namespaces: ['other'] })];
    expect(lookAt({ pools, pods: [podOn('1', { constraints })] }).waiting).to.deep.equal([]);
  });

  it('are ignored if they request an unpublished pool', () => {
    const requests = new Map([
      [BLUE, 1],
      ['ipam.holdfast.dev/gone', 1],
    ]);
    expect(lookAt({ pods: [podOn('1', { constraints, requests })] }).waiting).to.deep.equal([]);
  });
});
