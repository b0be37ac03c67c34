import { LAUNCHER_LABEL, LAUNCHER_LABEL_VALUE } from '../api/names.js';
import type { ResourceQuota } from '../api/resource-quota.js';
import type { WatchSpec } from '../kube/informers.js';
import { PODS, RESOURCE_QUOTAS } from '../kube/resources.js';
import { LAUNCHER_INDEXES } from './indexes.js';
import { type ClaimQuota, transformLauncher, transformQuota } from './transforms.js';

/** The launchers, which only the controller watches with these fields. */
export const LAUNCHERS = {
  resource: PODS,
  labelSelector: `${LAUNCHER_LABEL}=${LAUNCHER_LABEL_VALUE}`,
  transform: transformLauncher,
  indexes: LAUNCHER_INDEXES,
};

/** Tells when a quota may have room for claims that it rejected. */
export const QUOTAS: WatchSpec<ResourceQuota, ClaimQuota> = { resource: RESOURCE_QUOTAS, transform: transformQuota };
