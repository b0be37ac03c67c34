import type { IPAMClaim } from '../../../api/ipam-claim.js';
import type { NetworkSelection } from '../../../api/network-selection.js';
import type { ClusterView, Recheck } from '../../../cluster/cluster-view.js';
import type { Attachment } from '../attachment.js';

/** An attachment for which a claim is looked up. */
export interface AttachmentRequest extends Pick<Attachment, 'pod' | 'network'> {
  readonly selection: NetworkSelection;
}

/** The input of a decision. `addRecheck` collects the objects to read live before a refusal. */
export interface AuthorizationInput {
  readonly view: ClusterView;
  readonly addRecheck: (recheck: Recheck) => void;
}

/** Which claim an interface may use. */
export type AuthorizationDecision =
  | { readonly kind: 'claim'; readonly claim: IPAMClaim }
  /** No claim: the interface gets its own addresses. */
  | { readonly kind: 'none' }
  /** `isOnItsWay`: worth waiting for. `isPredicted`: the claim will be created unless the namespace has opted out. */
  | { readonly kind: 'pending'; readonly reason: string; readonly isOnItsWay?: boolean; readonly isPredicted?: boolean }
  /** Refused until an object is changed. */
  | { readonly kind: 'refused'; readonly reason: string };
