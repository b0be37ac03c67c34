import type { KubeObject } from './meta.js';

/** core/v1 ResourceQuota, as far as Holdfast reads it. */
export interface ResourceQuota extends KubeObject {
  /** Quantities by resource, for example `count/ipamclaims.k8s.cni.cncf.io`. */
  status?: { hard?: Record<string, string>; used?: Record<string, string> };
}

/** The number of IPAMClaims of a namespace. */
export const CLAIM_COUNT = 'count/ipamclaims.k8s.cni.cncf.io';
