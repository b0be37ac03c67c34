import { type KubeObject, objectKey } from '../../api/meta.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { StatusError, TransportError, classifyError, isConflict } from '../../kube/errors.js';
import { forEachParallel } from '../../kube/for-each-parallel.js';
import type { Resource } from '../../kube/resource.js';
import { NAMESPACES } from '../../kube/resources.js';
import { CommandError } from '../command-error.js';
import { findForeignContent, observeStage, runningPods } from './observe.js';
import type { ObservedStage } from './plan.js';

export interface RemovalDeps {
  readonly client: Pick<Client, 'listAs' | 'patch' | 'delete'>;
  readonly clock: Pick<Clock, 'now' | 'sleep'>;
  /** The number of parallel writes. */
  readonly concurrency: number;
  readonly printStatus: (line: string) => void;
}

/** Until every API server knows that a webhook or a policy is gone. */
const SETTLE_MS = 5_000;
/** For pods, namespaces and kinds to be gone. */
export const GONE_TIMEOUT_MS = 300_000;
const POLL_MS = 1_000;
/** For the API server to accept a request: it may be busy or restart, or still evaluate a policy that is gone. */
const RETRY_TIMEOUT_MS = 60_000;

/** Removes the objects of one stage, and waits until the next stage may begin. */
export async function removeStage(
  { stage, objects }: ObservedStage,
  namespaces: ReadonlySet<string>,
  deps: RemovalDeps,
): Promise<void> {
  const removed = new Set<string | undefined>();
  if (objects.length > 0) deps.printStatus(`removing ${stage.title} (${objects.length})`);
  // one kind after the other: a binding before its policy
  for (const resource of stage.kinds) {
    const own = objects.filter((object) => object.resource === resource);
    await forAll(own, deps, async ({ metadata }) => {
      // others may have started to use it since the plan was made
      const content = resource === NAMESPACES ? await findForeignContent(deps.client, metadata.name) : undefined;
      if (content !== undefined) {
        deps.printStatus(`Namespace ${metadata.name} stays, because it contains ${content}`);
        return;
      }
      await deleteObject(resource, { metadata }, deps);
      removed.add(metadata.uid);
    });
  }
  switch (stage.then) {
    case 'pods-gone':
      return untilNone('pods', () => runningPods(deps.client, stage, namespaces), deps);
    case 'settled':
      return objects.length === 0 ? undefined : deps.clock.sleep(SETTLE_MS);
    case 'gone': {
      const left = async () =>
        (await observeStage(deps.client, stage, namespaces)).objects
          .filter(({ metadata }) => removed.has(metadata.uid))
          .map(({ metadata }) => metadata.name);
      return removed.size === 0 ? undefined : untilNone(stage.title, left, deps);
    }
    case undefined:
      return undefined;
  }
}

/** Deletes the object with this UID. Succeeds if it is gone already. */
export async function deleteObject(resource: Resource, object: KubeObject, deps: RemovalDeps): Promise<void> {
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

/** Waits until a list is empty. @throws {CommandError} naming what is left after {@link GONE_TIMEOUT_MS} */
export async function untilNone(noun: string, list: () => Promise<string[]>, deps: RemovalDeps): Promise<void> {
  const end = deps.clock.now() + GONE_TIMEOUT_MS;
  let told = -1;
  for (;;) {
    const left = await list();
    if (left.length === 0) return;
    if (deps.clock.now() >= end) {
      throw new CommandError(
        `${noun} are still there: ${left.slice(0, 5).join(', ')}. Find out what keeps them, for example a node that does not respond, and run the command again`,
      );
    }
    if (told !== left.length) deps.printStatus(`waiting until ${noun} are gone (${left.length})`);
    told = left.length;
    await deps.clock.sleep(POLL_MS);
  }
}

/** Runs writes in parallel. All are tried before the first error is thrown. */
export async function forAll<T>(
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
export async function withRetries<T>({ clock }: Pick<RemovalDeps, 'clock'>, request: () => Promise<T>): Promise<T> {
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
