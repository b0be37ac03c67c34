import { type KubeObject, objectKey } from '../../api/meta.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { StatusError, TransportError, classifyError, isConflict } from '../../kube/errors.js';
import { forEachParallel } from '../../kube/run-in-slices.js';
import type { Resource } from '../../kube/resource.js';
import { CommandError } from '../command-error.js';

export interface RemovalDeps {
  readonly client: Pick<Client, 'listAs' | 'patch' | 'delete'>;
  readonly clock: Pick<Clock, 'now' | 'sleep'>;
  /** The number of parallel writes. */
  readonly concurrency: number;
  readonly printStatus: (line: string) => void;
}

export const POLL_MS = 1_000;
/** For the API server to accept a request: it may be busy or restart, or still evaluate a policy that is gone. */
const RETRY_TIMEOUT_MS = 60_000;

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
