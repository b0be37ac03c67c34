import { expect } from 'chai';
import type { CheckedNode } from '../installation.js';
import { pairsOf, usableNodes } from './pairs.js';

describe('the pairs of nodes of a connectivity test', () => {
  const named = (nodes: readonly string[], max: number) => pairsOf(nodes, max).pairs.map(({ from, to }) => from + to);

  it('have each node with the next one first', () => {
    expect(named(['a', 'b', 'c', 'd'], 99)).to.deep.equal(['ab', 'bc', 'cd', 'da', 'ac', 'bd']);
    expect(named(['a', 'b'], 99)).to.deep.equal(['ab']);
    expect(named(['a'], 99)).to.deep.equal([]);
  });

  for (const count of [2, 3, 4, 5, 6, 7]) {
    it(`are all pairs of ${count} nodes, each once`, () => {
      const nodes = Array.from({ length: count }, (_, index) => `n${index}`);
      const { pairs, total } = pairsOf(nodes, 1_000);
      expect(new Set(pairs.map(({ from, to }) => [from, to].sort().join())).size).to.equal(total);
      expect(pairs).to.have.length((count * (count - 1)) / 2);
    });
  }

  it('are at most as many as wanted, also of 5000 nodes', () => {
    const nodes = Array.from({ length: 5_000 }, (_, index) => `n${index}`);
    expect(pairsOf(nodes, 10).pairs).to.have.length(10);
  });

  it('are of nodes that take pods', () => {
    const node = (name: string, ready: string, unschedulable = false): CheckedNode => ({
      metadata: { name },
      spec: { unschedulable },
      status: { conditions: [{ type: 'Ready', status: ready }] },
    });
    const nodes = [node('b', 'True'), node('a', 'True'), node('off', 'Unknown'), node('drained', 'True', true)];
    expect(usableNodes(nodes)).to.deep.equal(['a', 'b']);
  });
});
