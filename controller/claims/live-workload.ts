import { splitKey } from '../../api/meta.js';
import { LAUNCHER_SELECTOR, type Pod } from '../../api/pod.js';
import { transformVm, transformVmi } from '../../cluster/transforms.js';
import { findUnlessGone } from '../../kube/absence.js';
import type { CallOptions, Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { TransportError } from '../../kube/errors.js';
import { PODS, VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES } from '../../kube/resources.js';
import { Cache } from '../../kube/informers/cache.js';
import { forEachInSlices } from '../../kube/run-in-slices.js';
import { LAUNCHER_INDEXES, transformLauncher } from '../caches.js';
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
    launchers: await launchers.of(ref.namespace, call),
  };
}

type Launchers = WorkloadObjects['launchers'];

interface ListBatch {
  running: Promise<Launchers>;
  next: Promise<Launchers> | undefined;
}

/**
 * Lists running launchers from the API server. Calls during a list share the next one, which starts after all of them: many deletions cost few
 * lists.
 */
export class LauncherList {
  readonly #client: Pick<Client, 'list'>;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #batches = new Map<string, ListBatch>();

  constructor(client: Pick<Client, 'list'>, clock: Pick<Clock, 'now'>) {
    this.#client = client;
    this.#clock = clock;
  }

  /** Returns the metadata of all non-terminal launchers of a namespace, also of those without a VMI. The first caller's signal ends the list. */
  of(namespace: string, call: Pick<CallOptions, 'signal'> = {}): Promise<Launchers> {
    const batch = this.#batches.get(namespace);
    if (batch === undefined) return this.#begin(namespace, call);
    batch.next ??= batch.running.then(
      () => this.#begin(namespace, call),
      () => this.#begin(namespace, call),
    );
    return batch.next;
  }

  #begin(namespace: string, call: Pick<CallOptions, 'signal'>): Promise<Launchers> {
    const batch: ListBatch = { running: this.#list(namespace, call), next: undefined };
    this.#batches.set(namespace, batch);
    const forget = () => {
      if (batch.next === undefined) this.#batches.delete(namespace);
    };
    batch.running.then(forget, forget);
    return batch.running;
  }

  async #list(namespace: string, { signal }: Pick<CallOptions, 'signal'>): Promise<Launchers> {
    const { items } = await this.#client.list(PODS, {
      namespace,
      labelSelector: LAUNCHER_SELECTOR,
      // without terminal pods, and with metadata only
      fieldSelector: 'status.phase!=Succeeded,status.phase!=Failed',
      metadataOnly: true,
      signal,
    });
    const launchers = new Cache<Pod>(LAUNCHER_INDEXES);
    // in slices: a tenant decides how many there are, and how much they refer to
    const isComplete = await forEachInSlices(
      items,
      (pod) => launchers.set(transformLauncher(pod)),
      this.#clock,
      signal,
    );
    if (!isComplete) throw new TransportError('aborted', 'the list of launchers was given up');
    return launchers;
  }
}
