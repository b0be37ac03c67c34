import type { KubeObject } from '../../api/meta.js';
import type { Resource } from '../../kube/resource.js';

/**
 * An object of whereabouts (whereabouts.cni.cncf.io/v1alpha1). Its content is not typed because versions differ and users edit it. The plan names
 * invalid content.
 */
export interface WhereaboutsObject extends KubeObject {
  spec?: unknown;
  status?: unknown;
}

const GROUP = { group: 'whereabouts.cni.cncf.io', version: 'v1alpha1', namespaced: true } as const;

/** The allocated addresses of one range, or of the slice of one node. */
export const IP_POOLS: Resource<WhereaboutsObject> = { ...GROUP, plural: 'ippools', kind: 'IPPool' };

/** An allocated address that no other range may allocate. */
export const IP_RESERVATIONS: Resource<WhereaboutsObject> = {
  ...GROUP,
  plural: 'overlappingrangeipreservations',
  kind: 'OverlappingRangeIPReservation',
};

/** The slices of a range and their nodes. */
export const NODE_SLICE_POOLS: Resource<WhereaboutsObject> = {
  ...GROUP,
  plural: 'nodeslicepools',
  kind: 'NodeSlicePool',
};
