import { type CheckedNode, isReady } from '../installation.js';

export interface NodePair {
  readonly from: string;
  readonly to: string;
}

/** Returns the names of the nodes that take pods. */
export function usableNodes(nodes: readonly CheckedNode[]): string[] {
  return nodes
    .filter((node) => isReady(node) && node.spec?.unschedulable !== true)
    .map(({ metadata }) => metadata.name)
    .sort();
}

/**
 * Returns pairs of nodes, at most `max`: first each node with the next one, so that few pairs have all nodes.
 * @returns the pairs, and the number of all
 */
export function pairsOf(nodes: readonly string[], max: number): { pairs: NodePair[]; total: number } {
  const pairs: NodePair[] = [];
  const total = (nodes.length * (nodes.length - 1)) / 2;
  for (let distance = 1; distance <= nodes.length / 2 && pairs.length < max; distance++) {
    // the last distance of an even number meets each pair twice
    const count = distance * 2 === nodes.length ? distance : nodes.length;
    for (let index = 0; index < count && pairs.length < max; index++) {
      const [from, to] = [nodes[index], nodes[(index + distance) % nodes.length]];
      if (from !== undefined && to !== undefined) pairs.push({ from, to });
    }
  }
  return { pairs, total };
}
