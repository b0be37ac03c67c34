import { type ObjectMeta, type OwnerReference, joinKey } from '../../api/meta.js';
import {
  DEFAULT_NETWORK_ANNOTATION,
  LAUNCHER_CREATOR,
  LAUNCHER_LABEL,
  MIGRATION_LABEL,
  NETWORKS_ANNOTATION,
  SHARED_ADDRESSES_ANNOTATION,
} from '../../api/names.js';
import { type Pod, staticPodUidOf } from '../../api/pod.js';
import { findUnlessGone } from '../../kube/absence.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import type { Informer } from '../../kube/informers/informer.js';
import type { Logger } from '../../kube/log.js';
import { PODS } from '../../kube/resources.js';
import type { InformerRegistry, WatchSpec } from '../../kube/informers/informers.js';
import { pickKeys } from '../../cluster/metadata.js';
import { CniCode, CniError, readResult } from './cni-error.js';
import type { RequestContext } from './request-queue.js';

/** A pod of this node, with the fields that the agent keeps. */
export interface NodePod extends Pod {
  metadata: Pick<ObjectMeta, 'name' | 'creationTimestamp' | 'deletionTimestamp' | 'labels' | 'annotations'> & {
    namespace: string;
    uid: string;
    ownerReferences?: OwnerReference[];
  };
  /** Of a mirror pod: {@link staticPodUidOf}. */
  staticUid?: string;
}

/** Identifies the pod of a request. */
export interface PodRef {
  readonly namespace: string;
  readonly name: string;
  /** The runtime's UID of the pod. Old versions of Multus do not pass it on. */
  readonly uid?: string | undefined;
}

interface NodePodsDeps {
  readonly informers: Pick<InformerRegistry, 'get'>;
  readonly client: Pick<Client, 'get'>;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Logger;
}

const LABELS = [LAUNCHER_LABEL, 'kubevirt.io/created-by', MIGRATION_LABEL];
const ANNOTATIONS = [LAUNCHER_CREATOR, NETWORKS_ANNOTATION, DEFAULT_NETWORK_ANNOTATION, SHARED_ADDRESSES_ANNOTATION];
const BY_UID = 'uid';

/** The pods of the agent's node, from a watch, or read live if the watch lags behind the runtime. */
export class NodePods {
  readonly #informer: Informer<Pod, NodePod>;
  readonly #deps: NodePodsDeps;

  constructor(deps: NodePodsDeps) {
    this.#deps = deps;
    const watched: WatchSpec<Pod, NodePod> = {
      resource: PODS,
      fieldSelector: `spec.nodeName=${deps.nodeName}`,
      transform: transformNodePod,
      indexes: { [BY_UID]: ({ metadata }) => [metadata.uid] },
    };
    this.#informer = deps.informers.get(watched);
  }

  get hasSynced(): boolean {
    return this.#informer.hasSynced;
  }

  /** Returns a pod from the cache. */
  get(uid: string): NodePod | undefined {
    return this.#informer.cache.byIndex(BY_UID, uid)[0];
  }

  /** Returns a pod from the cache. */
  named(namespace: string, name: string): NodePod | undefined {
    return this.#informer.cache.get(joinKey(namespace, name));
  }

  list(): readonly NodePod[] {
    return this.#informer.cache.list();
  }

  /** Adds a handler, which must be fast. It is called at once for cached pods. */
  onChange(handler: (pod: NodePod, gone: boolean) => void): void {
    this.#informer.onChange(({ type, object }) => handler(object, type === 'removed'));
  }

  /**
   * Returns the pod of a request. Without a UID the cache is not used, because a pod of a StatefulSet has the name of its predecessor.
   * @throws {CniError} 11 if the pod does not exist or the read failed; 100 if another pod has the name now
   */
  async find(ref: PodRef, call: RequestContext): Promise<NodePod> {
    const cached = this.named(ref.namespace, ref.name);
    if (cached !== undefined && ref.uid !== undefined && isKnownAs(cached, ref.uid))
      return withConfirmedStaticUid(cached, ref.uid);
    return this.read(ref, call);
  }

  /** Returns the pod as {@link find} does, without the cache. */
  async read({ namespace, name, uid }: PodRef, { signal }: RequestContext): Promise<NodePod> {
    const { client, log, nodeName } = this.#deps;
    const key = joinKey(namespace, name);
    const subject = `pod ${key}`;
    log.debug({ pod: key }, 'reading the pod live');
    const found = await readResult(findUnlessGone(client, PODS, { namespace, name }, { signal }));
    if (found === undefined) {
      const message = `${subject} does not exist: it was deleted, or the API server does not show it yet`;
      throw new CniError(CniCode.TryAgain, message);
    }
    const pod = transformNodePod(found);
    if (uid !== undefined && !isKnownAs(pod, uid)) {
      const message = `${subject} has uid ${pod.metadata.uid}, but the runtime requests uid ${uid}: that pod was deleted`;
      throw new CniError(CniCode.Refused, message);
    }
    if (pod.spec?.nodeName === nodeName) return withConfirmedStaticUid(pod, uid);
    const bound = pod.spec?.nodeName ?? 'none';
    throw new CniError(CniCode.Refused, `${subject} is bound to node ${bound}, but this is node ${nodeName}`);
  }
}

export function transformNodePod(pod: Pod): NodePod {
  const { metadata, spec, status } = pod;
  const staticUid = staticPodUidOf(pod);
  return {
    metadata: transformPodMetadata(metadata),
    ...(spec?.nodeName !== undefined && { spec: { nodeName: spec.nodeName } }),
    ...(status?.phase !== undefined && { status: { phase: status.phase } }),
    ...(staticUid !== undefined && { staticUid }),
  };
}

function transformPodMetadata(metadata: ObjectMeta): NodePod['metadata'] {
  const { name, namespace = '', uid = '', creationTimestamp, deletionTimestamp, ownerReferences } = metadata;
  const labels = pickKeys(metadata.labels, LABELS);
  const annotations = pickKeys(metadata.annotations, ANNOTATIONS);
  return {
    name,
    namespace,
    uid,
    ...(creationTimestamp !== undefined && { creationTimestamp }),
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    ...(labels && { labels }),
    ...(annotations && { annotations }),
    ...(ownerReferences && { ownerReferences }),
  };
}

/** Whether the runtime knows the pod by this UID. For a static pod it differs from that of the API server. */
export function isKnownAs({ metadata, staticUid }: NodePod, uid: string): boolean {
  return metadata.uid === uid || staticUid === uid;
}

/** Returns the UID by which the runtime knows the pod. It owns the pod's leases. */
export function runtimeUidOf({ metadata, staticUid }: NodePod): string {
  return staticUid ?? metadata.uid;
}

/** Drops an unconfirmed static UID. Only the runtime proves that a pod is static, because tenants can write the annotation. */
function withConfirmedStaticUid(pod: NodePod, uid: string | undefined): NodePod {
  if (pod.staticUid === undefined || pod.staticUid === uid) return pod;
  const { staticUid: _unconfirmed, ...rest } = pod;
  return rest;
}
