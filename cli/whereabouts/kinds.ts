import type { KubeObject } from '../../api/meta.js';
import type { Resource } from '../../kube/resource.js';

/**
 * What whereabouts keeps in the API (whereabouts.cni.cncf.io/v1alpha1). Nothing of it is typed further: versions differ, people edit it, and
 * what cannot be read is named in the plan.
 */
export interface WhereaboutsObject extends KubeObject {
  spec?: unknown;
  status?: unknown;
}

const GROUP = { group: 'whereabouts.cni.cncf.io', version: 'v1alpha1', namespaced: true } as const;

/** The addresses in use of one range, and of one node where ranges are sliced. */
export const IP_POOLS: Resource<WhereaboutsObject> = { ...GROUP, plural: 'ippools', kind: 'IPPool' };

/** An address in use, so that no other range gives it out. */
export const IP_RESERVATIONS: Resource<WhereaboutsObject> = {
  ...GROUP,
  plural: 'overlappingrangeipreservations',
  kind: 'OverlappingRangeIPReservation',
};

/** Which slice of a range is which node's. */
export const NODE_SLICE_POOLS: Resource<WhereaboutsObject> = {
  ...GROUP,
  plural: 'nodeslicepools',
  kind: 'NodeSlicePool',
};
