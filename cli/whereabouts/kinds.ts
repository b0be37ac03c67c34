import type { KubeObject } from '../../api/meta.js';
import { namespacedResource } from '../../kube/resource.js';

/**
 * An object of whereabouts (whereabouts.cni.cncf.io/v1alpha1). Its content is not typed because versions differ and users edit it. The plan names
 * invalid content.
 */
export interface WhereaboutsObject extends KubeObject {
  spec?: unknown;
  status?: unknown;
}

const API_VERSION = 'whereabouts.cni.cncf.io/v1alpha1';

/** The allocated addresses of one range, or of the slice of one node. */
export const IP_POOLS = namespacedResource<WhereaboutsObject>(API_VERSION, 'ippools', 'IPPool');

/** An allocated address that no other range may allocate. */
export const IP_RESERVATIONS = namespacedResource<WhereaboutsObject>(
  API_VERSION,
  'overlappingrangeipreservations',
  'OverlappingRangeIPReservation',
);

/** The slices of a range and their nodes. */
export const NODE_SLICE_POOLS = namespacedResource<WhereaboutsObject>(API_VERSION, 'nodeslicepools', 'NodeSlicePool');
