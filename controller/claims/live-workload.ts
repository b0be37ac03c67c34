import { splitKey } from '../../api/meta.js';
import { findUnlessGone } from '../../kube/absence.js';
import type { CallOptions, Client } from '../../kube/client.js';
import { VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES } from '../../kube/resources.js';
import { transformVm, transformVmi } from '../../cluster/transforms.js';
import { transformLauncher } from '../transforms.js';
import type { LauncherList } from './launcher-list.js';
import type { WorkloadObjects } from './observe.js';

/**
 * Reads the workload of a key from the API server. The order matters: a deleted VM creates no VMI any more, and a deleted VMI no launcher. The
 * objects are transformed as for the caches.
 */
export async function readLiveWorkload(
  key: string,
  client: Pick<Client, 'get'>,
  launchers: Pick<LauncherList, 'of'>,
  call: CallOptions = {},
): Promise<WorkloadObjects> {
  const ref = splitKey(key);
  const vm = await findUnlessGone(client, VIRTUAL_MACHINES, ref, call);
  const vmi = await findUnlessGone(client, VIRTUAL_MACHINE_INSTANCES, ref, call);
  return {
    vm: vm && transformVm(vm),
    vmi: vmi && transformVmi(vmi),
    launchers: (await launchers.of(key, call)).map(transformLauncher),
  };
}
