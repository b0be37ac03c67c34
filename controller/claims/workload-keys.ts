import type { IPAMClaim } from '../../api/ipam-claim.js';
import { type KubeObject, joinKey, objectKey } from '../../api/meta.js';
import { type Pod, controllingVmi } from '../../api/pod.js';
import type { ObjectChange } from '../../kube/informers/informer.js';
import { BY_NAD, BY_WORKLOAD, workloadOfClaim } from '../../cluster/watch-specs.js';
import { hasPrimaryNetworkLabel } from '../../cluster/primary-network.js';
import { claimReferencesOf } from './plan/references.js';
import { type ParsedNad, changesNetwork } from '../../cluster/transforms.js';
import type { Lister, NamespacedLister } from '../../kube/informers/cache.js';
import type { BlockedWorkloads } from './waiting-workloads.js';

/** Each function returns the keys of the workloads that a change concerns. */

type WorkloadListers = Record<'vms' | 'vmis', NamespacedLister<KubeObject>>;

/** A launcher without a VMI concerns the workloads whose claims it refers to. */
export function keysOfLauncher(change: ObjectChange<Pod>, claims: Pick<Lister<IPAMClaim>, 'get'>): string[] {
  return versionsOf(change).flatMap((pod) => {
    const vmi = controllingVmi(pod);
    if (vmi !== undefined) return [joinKey(pod.metadata.namespace, vmi.name)];
    return claimReferencesOf(pod).flatMap((name) => {
      const claim = claims.get(joinKey(pod.metadata.namespace, name));
      return claim === undefined ? [] : workloadOfClaim(claim);
    });
  });
}

/** A claim concerns its old and its new owner, and the workloads that wait for its name. */
export function keysOfClaim(change: ObjectChange<IPAMClaim>, blocked: BlockedWorkloads): string[] {
  return [...versionsOf(change).flatMap(workloadOfClaim), ...blocked.blockedBy(objectKey(change.object))];
}

/** The NAD of a primary network concerns all workloads of its namespace, if Holdfast serves their primary network. */
export function keysOfNad(
  change: ObjectChange<ParsedNad>,
  listers: WorkloadListers & { namespaces: Lister<KubeObject> },
  servesPrimaryNetworks: boolean,
): string[] {
  if (!changesNetwork(change)) return [];
  const { namespace = '' } = change.object.metadata;
  const keys = workloadsOf(listers, (cache) => cache.byIndex(BY_NAD, objectKey(change.object)));
  const isPrimary = versionsOf(change).some(({ config }) => config.ok && config.network.primary !== undefined);
  // otherwise any user could cause a sync of every workload with each change of a NAD
  if (!isPrimary || !servesPrimaryNetworks || !hasPrimaryNetworkLabel(listers.namespaces.get(namespace))) return keys;
  return [...keys, ...workloadsOf(listers, (cache) => cache.inNamespace(namespace))];
}

/** If a namespace opts in or out, or is deleted, all its workloads are concerned. */
export function keysOfNamespace(
  change: ObjectChange<KubeObject>,
  listers: WorkloadListers & { claims: Pick<NamespacedLister<IPAMClaim>, 'inNamespace'> },
): string[] {
  const [before, after] = versionsOf(change).map(({ metadata: { labels = {}, deletionTimestamp } }) =>
    JSON.stringify([labels, deletionTimestamp]),
  );
  if (change.type === 'changed' && before === after) return [];
  const { name } = change.object.metadata;
  return [
    ...workloadsOf(listers, (cache) => cache.inNamespace(name)),
    ...listers.claims.inNamespace(name).flatMap(workloadOfClaim),
  ];
}

interface ListSource<S> {
  list(): readonly S[];
}

/**
 * Returns the keys of all workloads with a VM, a VMI or a claim, those without a claim first. A key may come several times; undefined where the search for
 * the next one takes long.
 */
export function* allKeys({
  vms,
  vmis,
  claims,
}: {
  vms: ListSource<KubeObject>;
  vmis: ListSource<KubeObject>;
  claims: ListSource<IPAMClaim> & { countByIndex(index: string, value: string): number };
}): Generator<string | undefined> {
  for (const cache of [vms, vmis]) {
    for (const object of cache.list()) {
      const key = objectKey(object);
      yield claims.countByIndex(BY_WORKLOAD, key) === 0 ? key : undefined;
    }
  }
  for (const cache of [vms, vmis]) for (const object of cache.list()) yield objectKey(object);
  for (const claim of claims.list()) yield* workloadOfClaim(claim);
}

function workloadsOf(
  { vms, vmis }: WorkloadListers,
  select: (cache: NamespacedLister<KubeObject>) => readonly KubeObject[],
): string[] {
  return [vms, vmis].flatMap((cache) => select(cache).map(objectKey));
}

function versionsOf<S>({ object, before }: ObjectChange<S>): S[] {
  return before === undefined || before === object ? [object] : [before, object];
}
