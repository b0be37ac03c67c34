import { expect } from 'chai';
import type { Offer } from './offers.js';
import { MAX_SHARE, type ShareInput, type ShareNode, planShares } from './shares.js';

function node(name: string, given: Partial<ShareNode> = {}): ShareNode {
  const { shown } = given;
  return { name, requested: 0, leaving: 0, most: shown ?? 0, own: 0, ordinary: true, ...given };
}

function plan(budget: number, nodes: ShareNode[], more: Partial<ShareInput> = {}) {
  return planShares({
    budget,
    nodes,
    elsewhere: 0,
    isDue: false,
    waiting: [],
    offers: new Map(),
    now: 1_000_000,
    offerTimeoutMs: 10_000,
    ...more,
  });
}

const kind = (key: string, requested: number, ...nodes: string[]) => ({ key, pods: 1, requested, nodes });

describe('the shares of nodes', () => {
  const cases: { name: string; budget: number; nodes: ShareNode[]; more?: Partial<ShareInput>; expect: object }[] = [
    { name: 'are even at first', budget: 10, nodes: [node('a'), node('b'), node('c')], expect: { a: 4, b: 3, c: 3 } },
    { name: 'come on top of what is requested', budget: 4, nodes: [node('a', { requested: 5 })], expect: { a: 9 } },
    { name: 'may be none, which is shown, too', budget: 0, nodes: [node('a')], expect: { a: 0 } },
    { name: 'of a network without end are many', budget: 2 ** 40, nodes: [node('a')], expect: { a: MAX_SHARE } },
    {
      name: 'stay as they are while pods use them',
      budget: 5,
      nodes: [node('a', { requested: 2, shown: 5 }), node('b', { requested: 1, shown: 3 })],
      expect: {},
    },
    {
      name: 'are cut where there is less than they promise, the biggest first',
      budget: 4,
      nodes: [node('a', { shown: 5 }), node('b', { shown: 2 })],
      expect: { a: 2 },
    },
    {
      name: 'are cut first where pods are about to leave their places',
      budget: 5,
      nodes: [node('a', { shown: 2, leaving: 1 }), node('b', { shown: 4 })],
      expect: { a: 1 },
    },
    {
      name: 'are cut first where few may run',
      budget: 3,
      nodes: [node('a', { shown: 3, ordinary: false }), node('b', { shown: 3 })],
      expect: { a: 0 },
    },
    {
      name: 'go to nodes that run low only once others are known to have lost them',
      budget: 10,
      nodes: [node('a', { shown: 10 }), node('b', { shown: 0 })],
      expect: { a: 5 },
    },
    {
      name: 'and then they do',
      budget: 10,
      nodes: [node('a', { shown: 5 }), node('b', { shown: 0 })],
      expect: { b: 5 },
    },
    {
      name: 'grow by what is free beyond all that may be believed',
      budget: 10,
      nodes: [node('a', { shown: 5, most: 7 }), node('b', { shown: 0 })],
      expect: { b: 3 },
    },
    {
      name: 'wait for nodes, too, that show nothing any more',
      budget: 10,
      nodes: [node('a')],
      more: { elsewhere: 8 },
      expect: { a: 2 },
    },
    {
      name: 'are what a node has in its own blocks, and others have none of that',
      budget: 12,
      nodes: [node('a', { own: 8 }), node('b')],
      expect: { a: 8, b: 4 },
    },
    {
      name: 'go where a pod may run that waits',
      budget: 1,
      nodes: [node('a', { shown: 1 }), node('b', { shown: 0 })],
      more: { waiting: [kind('k', 1, 'b')] },
      expect: { a: 0 },
    },
    {
      name: 'stay where a pod may run that waits',
      budget: 1,
      nodes: [node('a', { shown: 1 }), node('b', { shown: 0 })],
      more: { waiting: [kind('k', 1, 'a', 'b')] },
      expect: {},
    },
  ];
  for (const { name, budget, nodes, more, expect: expected } of cases) {
    it(name, () => {
      expect(Object.fromEntries(plan(budget, nodes, more).caps)).to.deep.equal(expected);
    });
  }

  it('say that they are not finished while others have to lose theirs', () => {
    expect(plan(10, [node('a', { shown: 10 }), node('b', { shown: 0 })]).unfinished).to.equal(true);
    expect(plan(10, [node('a', { shown: 5 }), node('b', { shown: 5 })]).unfinished).to.equal(false);
  });

  it('go on to the next node though the waiting pod was not looked at meanwhile', () => {
    const nodes = [node('a', { shown: 1 }), node('b', { shown: 0 })];
    const waiting = [kind('k', 1, 'a', 'b')];
    const declined = new Map([['a', 1_000_000]]);
    const offers = new Map<string, Offer>([['k', { node: 'a', at: 0, share: 1, declined }]]);
    const unseen = plan(1, nodes, { skippedGroups: new Set(['k']), offers });
    expect(unseen.placed.size).to.equal(0);
    expect(plan(1, nodes, { waiting, offers: unseen.offers }).placed.get('k')).to.equal('b');
    expect(plan(1, nodes, { offers }).offers.size, 'of one that waits no more').to.equal(0);
  });

  it('go on to the next node where a waiting pod leaves them unused for long', () => {
    const nodes = [node('a', { shown: 1 }), node('b', { shown: 0 })];
    const waiting = [kind('k', 1, 'a', 'b')];
    const first = plan(1, nodes, { waiting });
    expect(first.placed.get('k')).to.equal('a');
    const second = plan(1, nodes, { waiting, offers: first.offers, now: 1_000_001 });
    const third = plan(1, nodes, { waiting, offers: second.offers, now: 1_010_001 });
    expect([second.placed.get('k'), third.placed.get('k')]).to.deep.equal(['a', 'b']);
    expect([...third.caps]).to.deep.equal([['a', 0]]);
  });

  it('go to the node that has what the pod needs of another pool', () => {
    const nodes = [node('a', { shown: 1 }), node('b', { shown: 0 })];
    const waiting = [{ ...kind('k', 1, 'a', 'b'), prefers: 'b' }];
    expect(plan(1, nodes, { waiting }).placed.get('k')).to.equal('b');
  });

  it('are kept for a pod that needs many and has had no turn, before those that need one', () => {
    const declined = (at: number) => ({ at, share: 0, declined: new Map([['a', at]]) });
    const offers = new Map<string, Offer>([
      ['one', declined(900_000)],
      ['two', { node: 'a', at: 999_000, share: 1, declined: new Map() }],
    ]);
    const waiting = [kind('one', 1, 'a'), kind('two', 1, 'a'), kind('many', 2, 'a')];
    const { placed } = plan(2, [node('a', { shown: 1 })], { waiting, offers });
    expect([...placed]).to.deep.equal([['two', 'a']]);
  });
});
