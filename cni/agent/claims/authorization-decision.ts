import type { IPAMClaim } from '../../../api/ipam-claim.js';
import type { NetworkSelection } from '../../../api/network-selection.js';
import type { ClusterView, Recheck } from '../../../cluster/cluster-view.js';
import type { Attachment } from '../attachment.js';

/** An interface that Multus attaches, of a pod that may have a claim for it. */
export interface AttachmentRequest extends Pick<Attachment, 'pod' | 'network'> {
  readonly selection: NetworkSelection;
}

/** What a judgement is made from. `doubt` is told of each object that a younger look could show differently. */
export interface AuthorizationInput {
  readonly view: ClusterView;
  readonly doubt: (doubt: Recheck) => void;
}

/** Whose addresses an interface may have. */
export type AuthorizationDecision =
  | { readonly kind: 'claim'; readonly claim: IPAMClaim }
  /** Its own. */
  | { readonly kind: 'none' }
  /** `isOnItsWay`: it is about to change, and worth waiting for. `isPredicted`: the claim is not there, and will be unless the namespace has opted out. */
  | { readonly kind: 'pending'; readonly reason: string; readonly isOnItsWay?: boolean; readonly isPredicted?: boolean }
  /** Nobody's, until somebody changes something. */
  | { readonly kind: 'refused'; readonly reason: string };
