import { splitKey } from '../../api/meta.js';
import { LAUNCHER_LABEL, LAUNCHER_LABEL_VALUE } from '../../api/names.js';
import type { Pod } from '../../api/pod.js';
import { transformVm, transformVmi } from '../../cluster/transforms.js';
import { findUnlessGone } from '../../kube/absence.js';
import type { CallOptions, Client } from '../../kube/client.js';
import { PODS, VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES } from '../../kube/resources.js';
import { orphanKey, transformLauncher, workloadOfLauncher } from '../caches.js';
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

/** By the key of the workload. */
type LaunchersByWorkload = ReadonlyMap<string, readonly Pod[]>;

interface ListBatch {
  running: Promise<LaunchersByWorkload>;
  next: Promise<LaunchersByWorkload> | undefined;
}

/**
 * Lists running launchers from the API server. Calls during a list share the next one, which starts after all of them: many deletions cost few
 * lists.
 */
export class LauncherList {
  readonly #client: Pick<Client, 'list'>;
  readonly #batches = new Map<string, ListBatch>();

  constructor(client: Pick<Client, 'list'>) {
    this.#client = client;
  }

  /** Returns the metadata of all non-terminal launchers of a workload, of any VMI UID, and of those without a VMI. The first caller's signal ends the list. */
  async of(key: string, call: Pick<CallOptions, 'signal'> = {}): Promise<readonly Pod[]> {
    const { namespace } = splitKey(key);
    const launchers = await this.#join(namespace, call);
    return [key, orphanKey(namespace)].flatMap((each) => launchers.get(each) ?? []);
  }

  #join(namespace: string, call: Pick<CallOptions, 'signal'>): Promise<LaunchersByWorkload> {
    const batch = this.#batches.get(namespace);
    if (batch === undefined) return this.#begin(namespace, call);
    batch.next ??= batch.running.then(
      () => this.#begin(namespace, call),
      () => this.#begin(namespace, call),
    );
    return batch.next;
  }

  #begin(namespace: string, call: Pick<CallOptions, 'signal'>): Promise<LaunchersByWorkload> {
    const batch: ListBatch = { running: this.#list(namespace, call), next: undefined };
    this.#batches.set(namespace, batch);
    const forget = () => {
      if (batch.next === undefined) this.#batches.delete(namespace);
    };
    batch.running.then(forget, forget);
    return batch.running;
  }

  async #list(namespace: string, { signal }: Pick<CallOptions, 'signal'>): Promise<LaunchersByWorkload> {
    const { items } = await this.#client.list(PODS, {
      namespace,
      labelSelector: `${LAUNCHER_LABEL}=${LAUNCHER_LABEL_VALUE}`,
      // without terminal pods, and with metadata only
      fieldSelector: 'status.phase!=Succeeded,status.phase!=Failed',
      metadataOnly: true,
      ...(signal !== undefined && { signal }),
    });
    const launchers = new Map<string, Pod[]>();
    for (const pod of items) {
      const key = workloadOfLauncher(pod);
      launchers.set(key, [...(launchers.get(key) ?? []), pod]);
    }
    return launchers;
  }
}
