import type { KubeObject, ObjectMeta } from '../../api/meta.js';
import type { Resource } from '../resource.js';

/** Kinds with a status subresource and a generation. All others have neither. */
const WITH_STATUS = new Set([
  ...['addressblocks', 'addresspools', 'ipamclaims', 'virtualmachines', 'virtualmachineinstances'],
  ...['nodes', 'pods', 'daemonsets', 'deployments', 'statefulsets'],
]);

/** The fields by which objects of a kind can be selected, besides name and namespace. Other kinds: any field, unlike on a real server. */
const SELECTABLE: Readonly<Record<string, readonly string[]>> = {
  addressblocks: ['spec.pool', 'spec.node'],
  addressleases: ['spec.addressSpace', 'spec.pool', 'spec.node', 'spec.mac', 'spec.networkData.secret'],
  addresspools: ['spec.network'],
  ipamclaims: [],
};

export function canSelectBy({ plural }: Pick<Resource, 'plural'>, field: string): boolean {
  const fields = SELECTABLE[plural];
  return fields === undefined || ['metadata.name', 'metadata.namespace', ...fields].includes(field);
}

/** Whether the kind has a status subresource. */
export function hasStatus({ plural }: Pick<Resource, 'plural'>): boolean {
  return WITH_STATUS.has(plural);
}

/** Whether a deleted object is removed. */
export function isOver({ metadata: { deletionTimestamp, finalizers = [] } }: KubeObject): boolean {
  return deletionTimestamp !== undefined && finalizers.length === 0;
}

/** Changes metadata of a copy; undefined removes a field. */
export function withMeta<T extends KubeObject>(object: T, changes: Partial<Record<keyof ObjectMeta, unknown>>): T {
  const entries = Object.entries({ ...object.metadata, ...changes }).filter(([, value]) => value !== undefined);
  return { ...object, metadata: Object.fromEntries(entries) as unknown as ObjectMeta };
}

type WithStatus = KubeObject & { status?: unknown };

/** Returns the object with the status of another one, or without. */
export function withStatusOf(object: KubeObject, { status }: Partial<WithStatus> = {}): KubeObject {
  const { status: _status, ...rest } = object as WithStatus;
  return { ...rest, ...(status !== undefined && { status }) };
}

/** All but metadata and status. */
export function specOf(object: KubeObject): object {
  const { metadata: _metadata, status: _status, ...spec } = object as WithStatus;
  return spec;
}
