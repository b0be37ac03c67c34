import { type KubeObject, byAge, splitKey } from '../../../api/meta.js';
import { CLAIM_REFERENCES_ALLOWED, CLAIM_REFERENCES_LABEL } from '../../../api/names.js';
import type { Pod } from '../../../api/pod.js';
import type { Informer, ObjectChange } from '../../../kube/informers/informer.js';
import type { WatchSpec } from '../../../kube/informers/informers.js';
import type { Logger } from '../../../kube/log.js';
import { NAMESPACES } from '../../../kube/resources.js';
import { type ClaimPod, type ClaimPodInformer, OTHER_PODS } from './claim-pods.js';

/** Namespaces in which pods that are no launchers may refer to claims: the policy claim-reference denies it in all others. */
export const REFERRING_NAMESPACES: WatchSpec<KubeObject> = {
  resource: NAMESPACES,
  labelSelector: `${CLAIM_REFERENCES_LABEL}=${CLAIM_REFERENCES_ALLOWED}`,
  transform: ({ metadata: { name, uid = '', creationTimestamp = '' } }) => ({
    metadata: { name, uid, creationTimestamp },
  }),
};

/** Each costs a watch. Administrators write labels of namespaces, so it bounds mistakes and tenants who may write those of their own. */
export const MAX_REFERRING_NAMESPACES = 256;

type PodWatch = Pick<Informer<Pod, ClaimPod>, 'cache' | 'onChange' | 'start' | 'stop'>;

interface ReferringPodsDeps {
  readonly launchers: ClaimPodInformer;
  readonly namespaces: Pick<Informer<KubeObject>, 'cache' | 'onChange' | 'onSynced' | 'hasSynced'>;
  readonly watch: (watched: WatchSpec<Pod, ClaimPod>) => PodWatch;
  readonly log: Logger;
}

/**
 * Launchers everywhere, and all pods of the namespaces whose pods may refer to claims. A pod that was created while its namespace had the label is not known after
 * the label is removed: a claim keeps its owner pod until a live read shows that it has ended.
 */
export class ReferringPods implements ClaimPodInformer {
  readonly #deps: ReferringPodsDeps;
  readonly #handlers: ((change: ObjectChange<ClaimPod>) => void)[] = [];
  /** By namespace. */
  readonly #watches = new Map<string, PodWatch>();
  readonly #ended = new Set<Promise<void>>();

  readonly cache: ClaimPodInformer['cache'] = {
    get: (key) => this.#deps.launchers.cache.get(key) ?? this.#watchOf(key)?.cache.get(key),
    // all index keys begin with the namespace
    byIndex: (index, key) => {
      const launchers = this.#deps.launchers.cache.byIndex(index, key);
      const others = this.#watchOf(key)?.cache.byIndex(index, key) ?? [];
      return others.length === 0 ? launchers : [...launchers, ...others];
    },
  };

  constructor(deps: ReferringPodsDeps) {
    this.#deps = deps;
    deps.launchers.onChange((change) => this.#tell(change));
    deps.namespaces.onSynced(() => this.#fill());
    deps.namespaces.onChange(({ type, object }) => {
      if (type === 'removed') this.#end(object.metadata.name);
      else if (type === 'added' && deps.namespaces.hasSynced) this.#fill(object);
    });
  }

  onChange(handler: (change: ObjectChange<ClaimPod>) => void): void {
    this.#handlers.push(handler);
  }

  /** Resolves when no watch runs any more. */
  async stop(): Promise<void> {
    const running = [...this.#watches.values()].map((watch) => watch.stop());
    this.#watches.clear();
    await Promise.all([...running, ...this.#ended]);
  }

  #watchOf(key: string): PodWatch | undefined {
    return this.#watches.size === 0 ? undefined : this.#watches.get(splitKey(key).namespace);
  }

  /** Begins watches, of the oldest namespaces first: nobody can take the place of another one. @param only the one that may lack a watch */
  #fill(only?: KubeObject): void {
    const { namespaces, log } = this.#deps;
    const all = only === undefined ? [...namespaces.cache.list()].sort(byAge) : [only];
    for (const { metadata } of all) {
      if (this.#watches.has(metadata.name)) continue;
      if (this.#watches.size >= MAX_REFERRING_NAMESPACES) {
        const message = `pods of namespace ${metadata.name} get no addresses of claims: ${MAX_REFERRING_NAMESPACES} namespaces have the label ${CLAIM_REFERENCES_LABEL} already. Remove it from others`;
        log.warn({ namespace: metadata.name }, message);
        return;
      }
      this.#begin(metadata.name);
    }
  }

  #begin(namespace: string): void {
    const watch = this.#deps.watch({ ...OTHER_PODS, namespace });
    this.#watches.set(namespace, watch);
    watch.onChange((change) => {
      if (this.#watches.get(namespace) === watch) this.#tell(change);
    });
    watch.start();
  }

  #end(namespace: string): void {
    const watch = this.#watches.get(namespace);
    if (watch === undefined) return;
    this.#watches.delete(namespace);
    const ended = watch.stop().finally(() => this.#ended.delete(ended));
    this.#ended.add(ended);
    for (const object of watch.cache.list()) this.#tell({ type: 'removed', object, before: object });
    this.#fill();
  }

  #tell(change: ObjectChange<ClaimPod>): void {
    for (const handler of this.#handlers) handler(change);
  }
}
