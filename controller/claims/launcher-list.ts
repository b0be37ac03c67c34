import { LAUNCHER_LABEL, LAUNCHER_LABEL_VALUE } from '../../api/names.js';
import { splitKey } from '../../api/meta.js';
import type { Pod } from '../../api/pod.js';
import type { CallOptions, Client } from '../../kube/client.js';
import { PODS } from '../../kube/resources.js';
import { orphanKey, workloadOfLauncher } from '../indexes.js';

/** Launchers by the key of their workload. */
type LaunchersByWorkload = ReadonlyMap<string, readonly Pod[]>;

interface ListBatch {
  running: Promise<LaunchersByWorkload>;
  next: Promise<LaunchersByWorkload> | undefined;
}

/**
 * The launchers that run, read from the API server. Who asks while a list is under way shares the next one, which is begun after
 * all of them have asked: many deletions cost few lists.
 */
export class LauncherList {
  readonly #client: Pick<Client, 'list'>;
  readonly #batches = new Map<string, ListBatch>();

  constructor(client: Pick<Client, 'list'>) {
    this.#client = client;
  }

  /** The launchers of a workload that have not ended, of whatever VMI UID, and those of no VMI. They have metadata only. A list ends with the signal of who began it. */
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
      // what has ended need not be sent, and of the rest the metadata is enough
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
