import type { ObjectMeta, OwnerReference } from '../../../api/meta.js';
import type { Pod } from '../../../api/pod.js';

/** A pod of this node, as far as an agent remembers it. */
export interface NodePod extends Pod {
  metadata: Pick<ObjectMeta, 'name' | 'creationTimestamp' | 'deletionTimestamp' | 'labels' | 'annotations'> & {
    namespace: string;
    uid: string;
    ownerReferences?: OwnerReference[];
  };
}
