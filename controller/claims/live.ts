import type { KubeObject } from '../../api/meta.js';
import { splitKey } from '../../api/meta.js';
import type { CallOptions, Client } from '../../kube/client.js';
import { isNotFound } from '../../kube/errors.js';
import type { ObjectRef, Resource } from '../../kube/resource.js';
import { VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES } from '../../kube/resources.js';
import type { LauncherList } from './launcher-list.js';
import type { Workload } from './observe.js';

/**
 * Reads the workload of a key from the API server. The order matters: a VM that is gone makes no VMI any more, and a VMI
 * that is gone no launcher.
 */
export async function readLiveWorkload(
  key: string,
  client: Pick<Client, 'get'>,
  launchers: Pick<LauncherList, 'of'>,
  call: CallOptions = {},
): Promise<Workload> {
  const ref = splitKey(key);
  const vm = await findObject(client, VIRTUAL_MACHINES, ref, call);
  const vmi = await findObject(client, VIRTUAL_MACHINE_INSTANCES, ref, call);
  return { vm, vmi, launchers: await launchers.of(key, call) };
}

/** A kind that the API server does not know (any more, or yet) says nothing about its objects: only a missing object is gone. */
async function findObject<T extends KubeObject>(
  client: Pick<Client, 'get'>,
  resource: Resource<T>,
  ref: ObjectRef,
  call: CallOptions,
): Promise<T | undefined> {
  try {
    return await client.get(resource, ref, call);
  } catch (error) {
    if (isNotFound(error) && error.details?.name === ref.name) return undefined;
    throw error;
  }
}
