import type { KubeObject } from './meta.js';

/** A user as Kubernetes' authenticators describe one. */
export interface UserInfo {
  username: string;
  uid?: string;
  groups?: string[];
  extra?: Record<string, string[]>;
}

/** authentication.k8s.io/v1: asks the API server whose token it is. */
export interface TokenReview extends KubeObject {
  spec: { token: string; audiences?: readonly string[] };
  status?: {
    authenticated?: boolean;
    user?: Partial<UserInfo>;
    /** Those of the request for which the token is valid. */
    audiences?: string[];
    error?: string;
  };
}

/** authorization.k8s.io/v1: asks the API server whether a user may do something. */
export interface SubjectAccessReview extends KubeObject {
  spec: {
    user: string;
    uid?: string;
    groups?: string[];
    extra?: Record<string, string[]>;
    /** One of the two. */
    nonResourceAttributes?: { path: string; verb: string };
    resourceAttributes?: { verb: string; group: string; resource: string; subresource?: string };
  };
  status?: { allowed?: boolean; denied?: boolean; reason?: string };
}
