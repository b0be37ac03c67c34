import type { KubeObject } from '../../api/meta.js';

export interface PairedNode extends KubeObject {
  spec?: { unschedulable?: boolean };
  status?: { conditions?: { type: string; status: string }[] };
}

export interface NodePair {
  readonly from: string;
  readonly to: string;
}

/** Returns the names of the nodes that take pods. */
export function usableNodes(nodes: readonly PairedNode[]): string[] {
  return nodes
    .filter(({ spec, status }) => {
      const isReady = status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True');
      return isReady === true && spec?.unschedulable !== true;
    })
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
