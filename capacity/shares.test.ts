import { expect } from 'chai';
import type { Offer } from './offers.js';
import { MAX_SHARE, type ShareInput, type ShareNode, planShares } from './shares.js';

function node(name: string, given: Partial<ShareNode> = {}): ShareNode {
  const { expected } = given;
  return { name, requested: 0, leavingRequests: 0, highest: expected ?? 0, ownFree: 0, isUntainted: true, ...given };
}

function plan(budget: number, nodes: ShareNode[], more: Partial<ShareInput> = {}) {
  return planShares({
    budget,
    nodes,
    shownElsewhere: 0,
    isRebalanceDue: false,
    waiting: [],
    offers: new Map(),
    now: 1_000_000,
    offerTimeoutMs: 10_000,
    ...more,
  });
}

const group = (key: string, requested: number, ...nodes: string[]) => ({ key, pods: 1, requested, nodes });

describe('the shares of nodes', () => {
  const cases: { name: string; budget: number; nodes: ShareNode[]; more?: Partial<ShareInput>; expect: object }[] = [
    { name: 'are even at first', budget: 10, nodes: [node('a'), node('b'), node('c')], expect: { a: 4, b: 3, c: 3 } },
    { name: 'are added to the requested addresses', budget: 4, nodes: [node('a', { requested: 5 })], expect: { a: 9 } },
    { name: 'can be 0, which is shown too', budget: 0, nodes: [node('a')], expect: { a: 0 } },
    { name: 'of a large network are limited', budget: 2 ** 40, nodes: [node('a')], expect: { a: MAX_SHARE } },
    {
      name: 'do not change while pods use them',
      budget: 5,
      nodes: [node('a', { requested: 2, expected: 5 }), node('b', { requested: 1, expected: 3 })],
      expect: {},
    },
    {
      name: 'are reduced if their sum exceeds the budget, the largest first',
      budget: 4,
      nodes: [node('a', { expected: 5 }), node('b', { expected: 2 })],
      expect: { a: 2 },
    },
    {
      name: 'are reduced first on nodes whose pods are being deleted',
      budget: 5,
      nodes: [node('a', { expected: 2, leavingRequests: 1 }), node('b', { expected: 4 })],
      expect: { a: 1 },
    },
    {
      name: 'are reduced first on tainted nodes',
      budget: 3,
      nodes: [node('a', { expected: 3, isUntainted: false }), node('b', { expected: 3 })],
      expect: { a: 0 },
    },
    {
      name: 'are not raised before other shares are known to be reduced',
      budget: 10,
      nodes: [node('a', { expected: 10 }), node('b', { expected: 0 })],
      expect: { a: 5 },
    },
    {
      name: 'are raised once other shares are known to be reduced',
      budget: 10,
      nodes: [node('a', { expected: 5 }), node('b', { expected: 0 })],
      expect: { b: 5 },
    },
    {
      name: 'are raised by the addresses that no scheduler can see as free',
      budget: 10,
      nodes: [node('a', { expected: 5, highest: 7 }), node('b', { expected: 0 })],
      expect: { b: 3 },
    },
    {
      name: 'are not raised while schedulers may see addresses on nodes that are no longer eligible',
      budget: 10,
      nodes: [node('a')],
      more: { shownElsewhere: 8 },
      expect: { a: 2 },
    },
    {
      name: 'equal the free addresses in the blocks of a node',
      budget: 12,
      nodes: [node('a', { ownFree: 8 }), node('b')],
      expect: { a: 8, b: 4 },
    },
    {
      name: 'move to a node on which a pending pod can run',
      budget: 1,
      nodes: [node('a', { expected: 1 }), node('b', { expected: 0 })],
      more: { waiting: [group('k', 1, 'b')] },
      expect: { a: 0 },
    },
    {
      name: 'stay on a node on which a pending pod can run',
      budget: 1,
      nodes: [node('a', { expected: 1 }), node('b', { expected: 0 })],
      more: { waiting: [group('k', 1, 'a', 'b')] },
      expect: {},
    },
  ];
  for (const { name, budget, nodes, more, expect: expected } of cases) {
    it(name, () => {
      expect(Object.fromEntries(plan(budget, nodes, more).capacities)).to.deep.equal(expected);
    });
  }

  it('are unfinished while other shares must be reduced first', () => {
    expect(plan(10, [node('a', { expected: 10 }), node('b', { expected: 0 })]).isUnfinished).to.equal(true);
    expect(plan(10, [node('a', { expected: 5 }), node('b', { expected: 5 })]).isUnfinished).to.equal(false);
  });

  it('move to the next node even if the pending pod was not examined in between', () => {
    const nodes = [node('a', { expected: 1 }), node('b', { expected: 0 })];
    const waiting = [group('k', 1, 'a', 'b')];
    const declined = new Map([['a', 1_000_000]]);
    const offers = new Map<string, Offer>([['k', { node: 'a', chosenAt: 0, share: 1, declined }]]);
    const unseen = plan(1, nodes, { skippedGroups: new Set(['k']), offers });
    expect(unseen.nodeByGroup.size).to.equal(0);
    expect(plan(1, nodes, { waiting, offers: unseen.offers }).nodeByGroup.get('k')).to.equal('b');
    expect(plan(1, nodes, { offers }).offers.size, 'of one that waits no more').to.equal(0);
  });

  it('move to the next node if a pending pod leaves them unused for the offer timeout', () => {
    const nodes = [node('a', { expected: 1 }), node('b', { expected: 0 })];
    const waiting = [group('k', 1, 'a', 'b')];
    const first = plan(1, nodes, { waiting });
    expect(first.nodeByGroup.get('k')).to.equal('a');
    const second = plan(1, nodes, { waiting, offers: first.offers, now: 1_000_001 });
    const third = plan(1, nodes, { waiting, offers: second.offers, now: 1_010_001 });
    expect([second.nodeByGroup.get('k'), third.nodeByGroup.get('k')]).to.deep.equal(['a', 'b']);
    expect([...third.capacities]).to.deep.equal([['a', 0]]);
  });

  it('move to the node that is chosen for another pool of the pod', () => {
    const nodes = [node('a', { expected: 1 }), node('b', { expected: 0 })];
    const waiting = [{ ...group('k', 1, 'a', 'b'), preferredNode: 'b' }];
    expect(plan(1, nodes, { waiting }).nodeByGroup.get('k')).to.equal('b');
  });

  it('are kept for a pod that needs several and had no offer yet, before pods that need one', () => {
    const declined = (at: number) => ({ chosenAt: at, share: 0, declined: new Map([['a', at]]) });
    const offers = new Map<string, Offer>([
      ['one', declined(900_000)],
      ['two', { node: 'a', chosenAt: 999_000, share: 1, declined: new Map() }],
    ]);
    const waiting = [group('one', 1, 'a'), group('two', 1, 'a'), group('many', 2, 'a')];
    const { nodeByGroup } = plan(2, [node('a', { expected: 1 })], { waiting, offers });
    expect([...nodeByGroup]).to.deep.equal([['two', 'a']]);
  });
});
