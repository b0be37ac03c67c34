import type { OwnerReference } from '../../api/meta.js';
import type { Pod } from '../../api/pod.js';

export const STATIC_UID = '0123456789abcdef0123456789abcdef';

export interface MirrorPodOptions {
  namespace?: string;
  name?: string;
  nodeName?: string;
  mirrored?: string;
  controller?: Partial<OwnerReference>;
  annotations?: Record<string, string>;
}

/** What a kubelet makes for a static pod. */
export function mirrorPod(uid: string, given: MirrorPodOptions = {}): Pod {
  const { namespace = 'apps', name = 'web', nodeName = 'n1', mirrored = STATIC_UID } = given;
  const owner = { apiVersion: 'v1', kind: 'Node', name: nodeName, uid: 'node-uid', controller: true };
  return {
    metadata: {
      ...{ namespace, name, uid },
      annotations: { 'kubernetes.io/config.mirror': mirrored, ...given.annotations },
      ownerReferences: [{ ...owner, ...given.controller }],
    },
    spec: { nodeName },
    status: { phase: 'Running' },
  };
}
