// `npm run reference` writes this file from manifests/crds.
import type { KubeObject } from './meta.js';

/**
 * An aligned slice of a pool, assigned to one node, whose agent picks addresses for pods from it. It keeps nodes
 * from picking the same address. Leases alone guarantee that no address is allocated twice.
 */
export interface AddressBlock extends KubeObject {
  spec: AddressBlockSpec;
  status?: AddressBlockStatus;
}

/** Which slice is assigned to which node. It cannot be changed. */
export interface AddressBlockSpec {
  /** The name of the AddressPool. */
  pool: string;
  /** The slice, without host bits, like 10.1.0.64/26 or 2001:db8::40/122. */
  cidr: string;
  /** The name of the node. */
  node: string;
}

/** The state of the release handshake. */
export interface AddressBlockStatus {
  /**
   * The ipam process writes marked-for-release; the agent of the node answers ready-for-release or do-not-release;
   * then ipam writes released. Absent while the node keeps the block. Blocks with an unknown value are left
   * unchanged.
   */
  release?: string;
  /** Why ipam reclaims the block: ExcessAddresses, PoolExhausted, NodeGone or Withdrawn. */
  reason?: string;
}
