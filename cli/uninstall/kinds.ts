import { ADDRESS_BLOCKS, ADDRESS_LEASES, ADDRESS_POOLS, PODS } from '../../kube/resources.js';
import type { Resource } from '../../kube/resource.js';
import { DAEMON_SETS, DEPLOYMENTS, POLICIES, POLICY_BINDINGS, STATEFUL_SETS, WEBHOOK_KINDS } from '../installation.js';

const POLICY_KINDS: readonly Resource[] = [POLICY_BINDINGS, POLICIES];

/**
 * The kinds of an installation that have to be gone before its data is removed: processes would write the data again, responders use addresses,
 * webhooks without a process deny writes of pools, and policies protect claims. Other objects do nothing without the processes.
 */
export const INSTALLED_KINDS: readonly Resource[] = [
  DAEMON_SETS,
  DEPLOYMENTS,
  STATEFUL_SETS,
  ...WEBHOOK_KINDS,
  ...POLICY_KINDS,
  PODS,
];

/** The kinds of Holdfast's own objects. A lease is removed last: as long as a pool exists, its leases keep addresses from being allocated twice. */
export const OWN_KINDS: readonly Resource[] = [ADDRESS_POOLS, ADDRESS_BLOCKS, ADDRESS_LEASES];

/**
 * A policy that stays with the kinds, so that API servers find the parameters of a new installation. It is removed last: API servers then
 * know that the other parameters are gone, and deny instead of using old ones.
 */
export const KEPT_POLICY = { name: 'holdfast-configmap-informer', kinds: POLICY_KINDS } as const;
