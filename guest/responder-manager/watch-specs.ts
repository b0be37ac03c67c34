import type { KubeObject } from '../../api/meta.js';
import { RESPONDERS_NAMESPACE, RESPONDER_CONTENT_ANNOTATION } from '../../api/names.js';
import { identityMetadataOf, pickKeys } from '../../cluster/transforms.js';
import type { WatchSpec } from '../../kube/informers.js';
import { PODS, POD_DISRUPTION_BUDGETS, STATEFUL_SETS } from '../../kube/resources.js';

/** Objects in the responders' namespace: their identity, and which content they were written with. */

export const RESPONDER_SETS: WatchSpec<KubeObject> = {
  resource: STATEFUL_SETS,
  namespace: RESPONDERS_NAMESPACE,
  transform: transformWritten,
};
export const RESPONDER_BUDGETS: WatchSpec<KubeObject> = {
  resource: POD_DISRUPTION_BUDGETS,
  namespace: RESPONDERS_NAMESPACE,
  transform: transformWritten,
};
export const RESPONDER_PODS: WatchSpec<KubeObject> = {
  resource: PODS,
  namespace: RESPONDERS_NAMESPACE,
  transform: transformWritten,
};

function transformWritten({ metadata }: KubeObject): KubeObject {
  const annotations = pickKeys(metadata.annotations, [RESPONDER_CONTENT_ANNOTATION]);
  return { metadata: { ...identityMetadataOf(metadata), ...(annotations && { annotations }) } };
}
