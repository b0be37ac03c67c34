import type { ObservedCluster } from '../whereabouts/plan-types.js';
import type { Pod } from '../../api/pod.js';
import { livePod, whereaboutsNad, observedOf } from './migration-world.js';

/** What is broken in a generated IPPool, in turn. */
const BROKEN_ALLOCATIONS: readonly ((offset: number) => [string, unknown])[] = [
  (offset) => [`x${offset}`, { id: 'c', podref: 'a/p' }],
  (offset) => [`${offset + 0x20000}`, { id: 'c', podref: 'a/p' }],
  (offset) => [`${offset}`, null],
  (offset) => [`${offset}`, { id: 7, podref: ['a/p'] }],
  (offset) => [`${offset}`, { id: '', podref: 'no such form' }],
];

/**
 * A /16 of whereabouts with many allocations: of pods that live, of some that are gone, and of some that nobody can read.
 * @param everyGone each n-th is of a pod that is gone
 * @param everyBroken each n-th is broken
 */
export function makeLargeCluster(
  allocations: number,
  { everyGone = 10, everyBroken = 25, namespace = 'a' } = {},
): ObservedCluster & { live: number; gone: number; broken: number } {
  const entries: [string, unknown][] = [];
  const pods: Pod[] = [];
  const counts = { live: 0, gone: 0, broken: 0 };
  for (let offset = 1; offset <= allocations; offset++) {
    const name = `p-${offset}`;
    if (offset % everyBroken === 0) {
      entries.push(BROKEN_ALLOCATIONS[counts.broken++ % BROKEN_ALLOCATIONS.length]!(offset));
      continue;
    }
    const podref = `${namespace}/${name}`;
    entries.push([`${offset}`, { id: `container-${offset}`, podref, ifname: 'net1' }]);
    if (offset % everyGone === 0) counts.gone += 1;
    else {
      counts.live += 1;
      const address = `10.74.${offset >> 8}.${offset & 255}`;
      pods.push(livePod(podref, { has: { [`${namespace}/blue`]: [address] } }));
    }
  }
  const pool = {
    metadata: { namespace: 'kube-system', name: '10.74.0.0-16' },
    spec: { range: '10.74.0.0/16', allocations: Object.fromEntries(entries) },
  };
  const nads = [whereaboutsNad(`${namespace}/blue`, { range: '10.74.0.0/16' })];
  return { ...observedOf({ nads, ipPools: [pool], pods }), ...counts };
}
