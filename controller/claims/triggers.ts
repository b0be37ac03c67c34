import type { IPAMClaim } from '../../api/ipam-claim.js';
import { type KubeObject, joinKey, objectKey } from '../../api/meta.js';
import { type Pod, controllingVmi } from '../../api/pod.js';
import type { Change } from '../../kube/informer.js';
import { BY_NAD, BY_NAMESPACE, workloadOfClaim } from '../../cluster/indexes.js';
import { workloadOfLauncher } from '../indexes.js';
import { referencesOf } from './carrying.js';
import type { Lister } from '../../kube/cache.js';
import type { Waiters } from './waiters.js';

/** Which workloads a change concerns. */

type Workloads = Record<'vms' | 'vmis', Lister<KubeObject>>;

/** Of a launcher that no VMI controls any more, the workloads whose claims it refers to. */
export function keysOfLauncher(change: Change<Pod>, claims: Pick<Lister<IPAMClaim>, 'get'>): string[] {
  return sides(change).flatMap((pod) => {
    if (controllingVmi(pod) !== undefined) return [workloadOfLauncher(pod)];
    return referencesOf(pod).flatMap((name) => {
      const claim = claims.get(joinKey(pod.metadata.namespace, name));
      return claim === undefined ? [] : workloadOfClaim(claim);
    });
  });
}

/** The owners that it had and has, and those who wait for its name. */
export function keysOfClaim(change: Change<IPAMClaim>, waiters: Waiters): string[] {
  return [...sides(change).flatMap(workloadOfClaim), ...waiters.of(objectKey(change.object))];
}

export function keysOfNad(change: Change<KubeObject>, workloads: Workloads): string[] {
  return keysByIndex(workloads, BY_NAD, objectKey(change.object));
}

/** All of a namespace that opts out or in. */
export function keysOfNamespace(change: Change<KubeObject>, workloads: Workloads): string[] {
  const [before = '{}', after] = sides(change).map(({ metadata }) => JSON.stringify(metadata.labels ?? {}));
  return change.type === 'changed' && before === after
    ? []
    : keysByIndex(workloads, BY_NAMESPACE, change.object.metadata.name);
}

interface Listed<S> {
  list(): readonly S[];
}

/** Every workload that there is anything of. */
export function allKeys(caches: {
  vms: Listed<KubeObject>;
  vmis: Listed<KubeObject>;
  claims: Listed<IPAMClaim>;
}): string[] {
  const workloads = [caches.vms, caches.vmis].flatMap((cache) => cache.list().map(objectKey));
  return [...workloads, ...caches.claims.list().flatMap(workloadOfClaim)];
}

function keysByIndex({ vms, vmis }: Workloads, index: string, value: string): string[] {
  return [vms, vmis].flatMap((cache) => cache.byIndex(index, value).map(objectKey));
}

function sides<S>({ object, before }: Change<S>): S[] {
  return before === undefined || before === object ? [object] : [before, object];
}
