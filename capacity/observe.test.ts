import { expect } from 'chai';
import type { AddressLease } from '../api/address-lease.js';
import { parseAddress } from '../ipam/core/address.js';
import type { BlockRecord } from '../ipam/core/block.js';
import { parseCidr } from '../ipam/core/cidr.js';
import { createLease } from '../ipam/core/lease.js';
import type { Pool } from '../ipam/core/pool.js';
import { compiledPool } from '../test/lease-objects.js';
import type { PoolGiven } from '../test/pool-objects.js';
import { transformNode } from './node-record.js';
import { type PoolDemand, type CapacityInputs, observeDemand } from './observe.js';
import type { PodRecord } from './pod-record.js';
import { Inventory, readInventoryEntry } from './inventory.js';

const BLUE = 'ipam.holdfast.dev/blue';
const RELEASED_AT = Date.UTC(2026, 0, 1);
/** Twice as long as agents may answer from their caches. */
const COOLDOWN_MS = 60_000;

function poolOf(spec: PoolGiven = {}, name = 'blue'): Pool {
  return compiledPool({ publishCapacity: true, ...spec }, name);
}

/** @param owner `pod-1` or a claim; nobody: it is released */
function leaseOf(
  address: string,
  owner: string | undefined,
  { pool = 'blue', ...more }: { pool?: string; mac?: string; reserved?: true } = {},
): AddressLease {
  const isPod = owner?.startsWith('pod-') === true;
  const write = createLease({
    address: parseAddress(address),
    addressSpace: 'blue',
    pool,
    owner: { kind: isPod ? 'Pod' : 'IPAMClaim', namespace: 'ns', name: owner ?? 'gone', uid: owner ?? 'gone' },
  });
  if (write.verb !== 'create') throw new TypeError(write.verb);
  const { metadata, spec } = write.lease;
  return {
    metadata: { ...metadata, uid: address, resourceVersion: '1' },
    spec: { ...spec, ...more, ...(owner === undefined && { releasedAt: new Date(RELEASED_AT).toISOString() }) },
  };
}

function podOn(uid: string, given: Partial<PodRecord> = {}): PodRecord {
  return { uid, namespace: 'ns', requests: new Map([[BLUE, 1]]), attached: false, leaving: false, ...given };
}

function block(cidr: string, node: string, more: Partial<BlockRecord> = {}): BlockRecord {
  return {
    metadata: { name: cidr, uid: cidr, resourceVersion: '1' },
    pool: 'blue',
    cidr: parseCidr(cidr),
    node,
    ...more,
  };
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
  const stock = new Inventory();
  for (const lease of leases) stock.add(readInventoryEntry(lease));
  const nodes = ['n1', 'n2'].map((name) =>
    transformNode({ metadata: { name, uid: name, resourceVersion: '1', labels: labels[name] ?? {} } }),
  );
  const blocksOf: CapacityInputs['blocksOf'] = ({ name }) => (name === 'blue' ? blocks : []);
  return observeDemand({ pools, nodes, pods, inventory: stock, blocksOf, now, maxStalenessMs: 30_000 }, turn);
}

function lookAt(given: Given): PoolDemand {
  const [pool] = look(given);
  if (pool === undefined) throw new Error('nothing is observed');
  return pool;
}

describe('what there is of a pool to be shared out', () => {
  it('is what nobody has, not even before it has cooled down', () => {
    const leases = [leaseOf('10.0.0.1', 'claim'), leaseOf('10.0.0.2', 'pod-1'), leaseOf('10.0.0.3', undefined)];
    expect(lookAt({ leases }).budget).to.equal(3);
  });

  it('is without what is reserved, and without what another pool of the address space has', () => {
    const pools = [poolOf({ subnets: [{ cidr: '10.0.0.0/29', reserved: ['10.0.0.6'] }] })];
    expect(lookAt({ pools, leases: [leaseOf('10.0.0.1', 'claim', { pool: 'other' })] }).budget).to.equal(4);
  });

  it('is what waits for its MAC address, too, once it has cooled down: whoever finds nothing else gets it', () => {
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

  it('is less what was released and leased again, or is gone', () => {
    const stock = new Inventory();
    const [before, after] = [
      readInventoryEntry(leaseOf('10.0.0.1', undefined)),
      readInventoryEntry(leaseOf('10.0.0.1', 'pod-1')),
    ];
    const free = () => stock.free(poolOf(), 4, { blocks: [], cooledSince: RELEASED_AT }).total;
    stock.add(before);
    stock.add(after);
    expect(free()).to.equal(5);
    stock.add(before);
    expect(free()).to.equal(6);
    stock.delete(before);
    expect(free()).to.equal(6);
  });

  it('is less what another pool of the address space has released, and a pool of that name in another one', () => {
    const stock = new Inventory();
    const released = readInventoryEntry(leaseOf('10.0.0.1', undefined));
    stock.add({ ...released, pool: 'other' });
    stock.add({ ...released, space: 'green' });
    expect(stock.free(poolOf(), 4, { blocks: [], cooledSince: RELEASED_AT }).total).to.equal(5);
    stock.add(released);
    expect(stock.free(poolOf(), 4, { blocks: [], cooledSince: RELEASED_AT }).total).to.equal(6);
  });

  it('is less what bound pods still wait for', () => {
    const pods = [podOn('pod-1', { node: 'n1' }), podOn('pod-2', { node: 'n2' }), podOn('pod-3')];
    const observed = lookAt({ pods, leases: [leaseOf('10.0.0.1', 'pod-1')] });
    expect(observed.budget).to.equal(4);
    expect(observed.nodes.map(({ requested }) => requested)).to.deep.equal([1, 1]);
  });

  it('counts a pod that is being deleted apart', () => {
    const pods = [podOn('pod-1', { node: 'n1', leaving: true })];
    const { nodes } = lookAt({ pods, leases: [leaseOf('10.0.0.1', 'pod-1')] });
    expect(nodes.map(({ requested, leaving }) => [requested, leaving])).to.deep.equal([
      [0, 1],
      [0, 0],
    ]);
  });

  it('is not less for what pods ask for and will not get', () => {
    const requests = new Map([[BLUE, 4]]);
    const runs = podOn('pod-1', { node: 'n1', requests, attached: true });
    expect(lookAt({ pods: [runs], leases: [leaseOf('10.0.0.1', 'pod-1')] }).budget).to.equal(5);
    const pools = [poolOf({ namespaces: ['other'] })];
    const { budget, nodes } = lookAt({ pools, pods: [podOn('pod-2', { node: 'n1', requests })] });
    expect([budget, nodes[0]?.requested]).to.deep.equal([6, 4]);
  });

  it('is below nothing where more pods are bound than there are addresses', () => {
    const pods = Array.from({ length: 8 }, (_, index) => podOn(`pod-${index}`, { node: 'n1' }));
    expect(lookAt({ pods }).budget).to.equal(-2);
  });

  it('is what there is of the scarcer family', () => {
    const pools = [poolOf({ subnets: [{ cidr: '10.0.0.0/29' }, { cidr: 'fd00::/126' }] })];
    expect(lookAt({ pools }).budget).to.equal(3);
    const pods = [podOn('pod-1', { node: 'n1' })];
    expect(lookAt({ pools, pods, leases: [leaseOf('fd00::1', 'pod-1')] }).budget).to.equal(2);
  });

  it('is huge where the network is, and no less for it', () => {
    const pools = [poolOf({ subnets: [{ cidr: 'fd00::/64' }] })];
    expect(lookAt({ pools }).budget).to.be.greaterThan(1e9);
  });
});

describe('blocks that nodes are lent', () => {
  const pools = [poolOf({ subnets: [{ cidr: '10.0.0.0/28' }] })];

  it('are their nodes’ own, and count for all together', () => {
    const { budget, nodes } = lookAt({ pools, blocks: [block('10.0.0.0/30', 'n1'), block('10.0.0.4/30', 'n2')] });
    expect(budget).to.equal(14);
    expect(nodes.map(({ own }) => own)).to.deep.equal([3, 4]);
  });

  it('have what has cooled down in them', () => {
    const leases = [leaseOf('10.0.0.1', undefined), leaseOf('10.0.0.5', undefined)];
    const blocks = [block('10.0.0.0/30', 'n1')];
    const { budget, nodes } = lookAt({ pools, blocks, leases, now: RELEASED_AT + COOLDOWN_MS });
    expect([budget, ...nodes.map(({ own }) => own)]).to.deep.equal([14, 3, 0]);
  });

  it('are smaller by what their pods still wait for', () => {
    const pods = [podOn('pod-1', { node: 'n1' })];
    expect(lookAt({ pools, pods, blocks: [block('10.0.0.0/30', 'n1')] }).nodes.map(({ own }) => own)).to.deep.equal([
      2, 0,
    ]);
  });

  it('are nobody’s on their way back', () => {
    const { budget, nodes } = lookAt({
      pools,
      blocks: [block('10.0.0.4/30', 'n1', { release: 'marked-for-release' })],
    });
    expect([budget, ...nodes.map(({ own }) => own)]).to.deep.equal([10, 0, 0]);
  });
});

describe('pods that wait', () => {
  const needs = { nodeSelector: {}, tolerations: [] };
  const zoned = { nodeSelector: { zone: 'a' }, tolerations: [] };
  const labels = { n1: { zone: 'a' } };

  it('are of one kind where they are alike, with the nodes that they may run on', () => {
    const pods = [podOn('1', { needs }), podOn('2', { needs }), podOn('3', { needs: zoned })];
    const { waiting, waitingPods } = lookAt({ pods, labels });
    expect(waiting.map(({ pods: count, nodes }) => [count, nodes])).to.deep.equal([
      [2, ['n1', 'n2']],
      [1, ['n1']],
    ]);
    expect(waitingPods).to.equal(3);
  });

  it('run only where all networks are that they ask for', () => {
    const pools = [poolOf({ nodeSelector: { zone: 'a' } }), poolOf({ network: 'green' }, 'green')];
    const requests = new Map([
      [BLUE, 1],
      ['ipam.holdfast.dev/green', 2],
    ]);
    const [blue, green] = look({ pools, labels, pods: [podOn('1', { needs, requests })] });
    expect(blue?.nodes.map(({ name }) => name)).to.deep.equal(['n1']);
    expect(green?.waiting.map(({ requested, nodes }) => [requested, nodes])).to.deep.equal([[2, ['n1']]]);
    expect(green?.waiting[0]?.key).to.equal(blue?.waiting[0]?.key);
  });

  it('are not looked at where they can run nowhere, however many they are', () => {
    const stuck = Array.from({ length: 500 }, (_, index) =>
      podOn(`${index}`, { needs: { nodeSelector: { zone: `${index}` }, tolerations: [] } }),
    );
    const { waiting } = lookAt({ pods: [...stuck, podOn('good', { needs })] });
    expect(waiting.map(({ nodes }) => nodes)).to.deep.equal([['n1', 'n2']]);
  });

  it('are looked at by namespace in turn, so that no namespace keeps another from it', () => {
    const flood = Array.from({ length: 600 }, (_, index) =>
      podOn(`${index}`, {
        namespace: 'bad',
        needs: { nodeSelector: {}, tolerations: [{ key: `${index}`, operator: 'Exists', value: '', effect: '' }] },
      }),
    );
    const { waiting } = lookAt({ labels, pods: [...flood, podOn('good', { needs: zoned })] });
    expect(waiting).to.have.length(500);
    expect(waiting.filter(({ nodes }) => nodes.length === 1)).to.have.length(1);
  });

  for (const [where, namespaceOf] of [
    ['each in its namespace', (index: number) => `ns-${index}`],
    ['all in one namespace', () => 'ns'],
  ] as const) {
    it(`are looked at in turns where there are too many kinds, ${where}`, () => {
      const pods = Array.from({ length: 600 }, (_, index) =>
        podOn(`${index}`, {
          namespace: namespaceOf(index),
          needs: { nodeSelector: {}, tolerations: [{ key: `${index}`, operator: 'Exists', value: '', effect: '' }] },
        }),
      );
      const keysIn = (turn: number) => lookAt({ pods, turn }).waiting.map(({ key }) => key);
      const first = lookAt({ pods, turn: 0 });
      expect([first.waiting.length, first.unseen.size]).to.deep.equal([500, 100]);
      expect(keysIn(0)).to.deep.equal(first.waiting.map(({ key }) => key));
      const turns = Array.from({ length: 10 }, (_, turn) => keysIn(turn));
      expect(new Set(turns.flat())).to.have.property('size', 600);
    });
  }

  it('in a namespace that the pool does not serve wait for somebody else', () => {
    const pools = [poolOf({ namespaces: ['other'] })];
    expect(lookAt({ pools, pods: [podOn('1', { needs })] }).waiting).to.deep.equal([]);
  });

  it('for what nobody publishes wait for somebody else', () => {
    const requests = new Map([
      [BLUE, 1],
      ['ipam.holdfast.dev/gone', 1],
    ]);
    expect(lookAt({ pods: [podOn('1', { needs, requests })] }).waiting).to.deep.equal([]);
  });
});
