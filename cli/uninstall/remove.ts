import { type KubeObject, isBeingDeleted, objectKey } from '../../api/meta.js';
import { BLOCK_FINALIZER, CLAIM_FINALIZER, POOL_FINALIZER } from '../../api/names.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import {
  StatusError,
  TransportError,
  classifyError,
  isConflict,
  isNamespaceMissing,
  isNotFound,
} from '../../kube/errors.js';
import type { Resource } from '../../kube/resource.js';
import { ADDRESS_BLOCKS, ADDRESS_LEASES, ADDRESS_POOLS, IPAM_CLAIMS, NODES } from '../../kube/resources.js';
import { forEachParallel } from '../../kube/run-in-slices.js';
import { CommandError } from '../exit-code.js';
import { CRDS } from '../installation.js';
import { omitUndefined } from '../../api/json.js';
import { listAsAdministrator } from '../reader.js';
import { capacityResourcesOf, isOwnClaim, listKeptPolicy, listOwnCrds } from './observe.js';

export interface RemovalDeps {
  readonly client: Pick<Client, 'listAs' | 'patch' | 'delete'>;
  readonly clock: Pick<Clock, 'now' | 'sleep'>;
  /** The number of parallel writes. */
  readonly concurrency: number;
  readonly printStatus: (line: string) => void;
}

const POLL_MS = 1_000;
/** For the API server to accept a request: it may be busy or restart, or still evaluate a policy that is gone. */
const RETRY_TIMEOUT_MS = 60_000;

/** Deletes the object with this UID. Succeeds if it is gone already. */
async function deleteObject(resource: Resource, object: KubeObject, deps: RemovalDeps): Promise<void> {
  const { name, namespace, uid } = object.metadata;
  await withRetries(deps, async () => {
    try {
      await deps.client.delete(resource, { name, namespace }, { uid, propagationPolicy: 'Background' });
    } catch (error) {
      if (!isConflict(error)) throw error;
      throw new CommandError(
        `${resource.kind} ${objectKey(object)} was created again meanwhile: stop the software that does so, and run the command again`,
        { cause: error },
      );
    }
  });
}

/** Runs writes in parallel. All are tried before the first error is thrown. */
async function forAll<T>(
  items: readonly T[],
  { concurrency }: Pick<RemovalDeps, 'concurrency'>,
  write: (item: T) => Promise<void>,
): Promise<void> {
  const errors: unknown[] = [];
  await forEachParallel(items, concurrency, async (item) => {
    try {
      await write(item);
    } catch (error) {
      errors.push(error);
    }
  });
  if (errors.length > 0) throw errors[0];
}

/** The same with a client that repeats reads too, so that an API server may restart meanwhile. */
export function withRetriedReads<T extends RemovalDeps>(deps: T): T {
  const client: RemovalDeps['client'] = {
    listAs: (resource, transform, options) => withRetries(deps, () => deps.client.listAs(resource, transform, options)),
    patch: (resource, ref, patch, options) => deps.client.patch(resource, ref, patch, options),
    delete: (resource, ref, options) => deps.client.delete(resource, ref, options),
  };
  return { ...deps, client };
}

/** Repeats a request while the API server is busy or away, or does not know yet that a policy of Holdfast is gone. */
async function withRetries<T>({ clock }: Pick<RemovalDeps, 'clock'>, request: () => Promise<T>): Promise<T> {
  const end = clock.now() + RETRY_TIMEOUT_MS;
  for (;;) {
    try {
      return await request();
    } catch (error) {
      if (error instanceof CommandError || !mayPass(error) || clock.now() >= end) throw error;
    }
    await clock.sleep(POLL_MS);
  }
}

function mayPass(error: unknown): boolean {
  const isTransient =
    error instanceof TransportError || (error instanceof StatusError && classifyError(error) === 'transient');
  return isTransient || isDeniedByRemovedPolicy(error);
}

function isDeniedByRemovedPolicy(error: unknown): boolean {
  return error instanceof StatusError && /ValidatingAdmissionPolicy '?holdfast-/.test(error.message);
}

/** An object conflicts, or is created, while it is removed. Nothing of Holdfast runs any more, so a few rounds are enough. */
const MAX_ROUNDS = 5;
const ROUND_PAUSE_MS = 1_000;
const PROGRESS_MS = 1_000;
/** For kinds to be gone. */
const GONE_TIMEOUT_MS = 300_000;

/** A kind whose objects are removed, and the finalizer that Holdfast's processes would remove. */
interface Clearing<T extends KubeObject> {
  readonly resource: Resource<T>;
  readonly title: string;
  readonly finalizer?: string;
  readonly isOwn?: (object: T) => boolean;
}

/**
 * Removes claims, pools, blocks, leases, the resources on nodes, the kinds, and at last the policy that stays with them. Needs none of Holdfast's processes, and none may run.
 * Pools come before leases: if the removal is interrupted and Holdfast installed again, no address that is in use is allocated again.
 */
export async function removeData(deps: RemovalDeps): Promise<void> {
  await clear({ resource: IPAM_CLAIMS, title: 'claims', finalizer: CLAIM_FINALIZER, isOwn: isOwnClaim }, deps);
  await clearOwnKinds(deps);
  await removeCapacity(deps);
  await removeKinds(deps);
  for (const { resource, metadata } of await listKeptPolicy(deps.client))
    await deleteObject(resource, { metadata }, deps);
}

async function clearOwnKinds(deps: RemovalDeps): Promise<void> {
  await clear({ resource: ADDRESS_POOLS, title: 'pools', finalizer: POOL_FINALIZER }, deps);
  await clear({ resource: ADDRESS_BLOCKS, title: 'blocks', finalizer: BLOCK_FINALIZER }, deps);
  await clear({ resource: ADDRESS_LEASES, title: 'leases' }, deps);
}

/** Removes all objects of a kind. @throws {CommandError} if one has the finalizer of other software */
async function clear<T extends KubeObject>(clearing: Clearing<T>, deps: RemovalDeps): Promise<void> {
  const { resource, title, finalizer, isOwn = () => true } = clearing;
  for (let round = 1; ; round++) {
    const left = await listAsAdministrator(deps.client, resource, (object) => (isOwn(object) ? [slim(object)] : []));
    if (left.length === 0) return;
    if (round > MAX_ROUNDS) throw new CommandError(describeLeft(resource, left));
    deps.printStatus(`removing ${title} (${left.length})`);
    const progress = progressOf(title, left.length, deps);
    await forAll(left, deps, async (object) => {
      await removeOne(resource, object, finalizer, deps);
      progress();
    });
    if (round > 1) await deps.clock.sleep(ROUND_PAUSE_MS);
  }
}

/** Removes the finalizer first: the object is then deleted by one write, or is being deleted and ends. */
async function removeOne(
  resource: Resource,
  object: KubeObject,
  finalizer: string | undefined,
  deps: RemovalDeps,
): Promise<void> {
  const { name, namespace, uid, resourceVersion, finalizers = [] } = object.metadata;
  if (finalizer !== undefined && finalizers.includes(finalizer)) {
    const others = finalizers.filter((each) => each !== finalizer);
    const body = { metadata: { uid, resourceVersion, finalizers: others.length === 0 ? null : others } };
    try {
      await withRetries(deps, () => deps.client.patch(resource, { name, namespace }, { type: 'merge', body }));
    } catch (error) {
      if (isNamespaceMissing(error)) {
        throw new CommandError(
          `${resource.kind} ${objectKey(object)} cannot be changed, because its namespace does not exist: ` +
            `kubectl create namespace ${namespace}. Then run the command again`,
        );
      }
      // the next round sees it as it is now
      if (isConflict(error) || isNotFound(error)) return;
      throw error;
    }
  }
  if (!isBeingDeleted(object)) await deleteObject(resource, object, deps);
}

/** Nodes would keep showing the addresses until their kubelets register again. */
async function removeCapacity(deps: RemovalDeps): Promise<void> {
  const nodes = await listAsAdministrator(deps.client, NODES, (node) => {
    const resources = capacityResourcesOf(node);
    return resources.length > 0 ? [{ name: node.metadata.name, resources }] : [];
  });
  if (nodes.length > 0) deps.printStatus(`removing extended resources of nodes (${nodes.length})`);
  await forAll(nodes, deps, async ({ name, resources }) => {
    const removed = Object.fromEntries(resources.map((resource) => [resource, null]));
    const body = { status: { capacity: removed, allocatable: removed } };
    try {
      await withRetries(deps, () =>
        deps.client.patch(NODES, { name }, { type: 'merge', body }, { subresource: 'status' }),
      );
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  });
}

async function removeKinds(deps: RemovalDeps): Promise<void> {
  const crds = await listOwnCrds(deps.client);
  if (crds.length === 0) return;
  deps.printStatus(`removing kinds (${crds.length})`);
  await forAll(crds, deps, (metadata) => deleteObject(CRDS, { metadata }, deps));
  const end = deps.clock.now() + GONE_TIMEOUT_MS;
  for (;;) {
    // an object that was created meanwhile keeps its kind by its finalizer
    await clearOwnKinds(deps);
    const left = await listOwnCrds(deps.client);
    if (left.length === 0) return;
    if (deps.clock.now() >= end) {
      throw new CommandError(
        `kinds are still there: ${left.map(({ name }) => name).join(', ')}. Find out what keeps them, and run the command again`,
      );
    }
    await deps.clock.sleep(POLL_MS);
  }
}

function slim({ metadata }: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion, finalizers, deletionTimestamp } = metadata;
  return { metadata: omitUndefined({ name, namespace, uid, resourceVersion, finalizers, deletionTimestamp }) };
}

function describeLeft({ kind }: Resource, left: readonly KubeObject[]): string {
  const [first] = left;
  const finalizers = first?.metadata.finalizers?.join(', ') ?? '';
  const why =
    finalizers === '' ? 'it is created again and again' : `other software has to remove its finalizer ${finalizers}`;
  return `${kind} ${first === undefined ? '' : objectKey(first)} is still there, and ${left.length - 1} more: ${why}. Then run the command again`;
}

/** Prints the progress of many writes. */
function progressOf(title: string, of: number, { clock, printStatus }: RemovalDeps): () => void {
  let done = 0;
  let told = clock.now();
  return () => {
    done += 1;
    if (clock.now() - told < PROGRESS_MS) return;
    told = clock.now();
    printStatus(`${done} of ${of} ${title}`);
  };
}
