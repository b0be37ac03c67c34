/** The parts of Kubernetes' object metadata that Holdfast reads or writes. Unknown fields are never sent back. */

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

export interface ObjectMeta {
  name: string;
  namespace?: string;
  uid?: string;
  /** Compared for equality, or by {@link isNewer}. */
  resourceVersion?: string;
  /** Incremented with each change of the spec. */
  generation?: number;
  generateName?: string;
  /** RFC 3339. */
  creationTimestamp?: string;
  /** RFC 3339. Set when the object is being deleted and only finalizers keep it. */
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
}

export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

/** One write to an object. Its precondition is the state of the object on which the write was decided. */
export type ObjectWrite<O> =
  | ObjectCreation<O>
  | ObjectPatch
  | { readonly verb: 'delete'; readonly name: string; readonly uid: string; readonly resourceVersion: string };

/** The name is the lock: the API server lets one creator win. */
export interface ObjectCreation<O> {
  readonly verb: 'create';
  readonly object: O;
}

/** A merge patch (RFC 7386) with `metadata.uid` and `metadata.resourceVersion`: compare-and-swap. */
export interface ObjectPatch<Verb = 'patch'> {
  readonly verb: Verb;
  readonly name: string;
  readonly body: object;
}

/** Returns `namespace/name`, or the name of a cluster-scoped object. */
export function objectKey(object: { metadata: Pick<ObjectMeta, 'name' | 'namespace'> }): string {
  return joinKey(object.metadata.namespace, object.metadata.name);
}

export function joinKey(namespace: string | undefined, name: string): string {
  return namespace ? `${namespace}/${name}` : name;
}

export function splitKey(key: string): { namespace: string; name: string } {
  const slash = key.indexOf('/');
  return { namespace: slash < 0 ? '' : key.slice(0, slash), name: key.slice(slash + 1) };
}

/** RFC 1123. */
const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
export const MAX_NAME_LENGTH = 253;

/** True for a DNS label, which names of namespaces are. */
export function isNamespaceName(text: string): boolean {
  return LABEL.test(text);
}

/** True for a DNS subdomain, which names of objects are: most kinds allow no other. */
export function isObjectName(text: string): boolean {
  return text.length <= MAX_NAME_LENGTH && SUBDOMAIN.test(text);
}

/** True for the name of an object, also with its namespace: `lab/blue`. */
export function isObjectKey(text: string): boolean {
  const { namespace, name } = splitKey(text);
  return isObjectName(name) && (!text.includes('/') || isNamespaceName(namespace));
}

export function isBeingDeleted(object: KubeObject): boolean {
  return object.metadata.deletionTimestamp !== undefined;
}

/** Compares two objects, oldest first: by creationTimestamp, which has whole seconds, then by name. */
export function byAge(a: WithCreationTime, b: WithCreationTime): number {
  const { creationTimestamp: aBorn = '', name: aName } = a.metadata;
  const { creationTimestamp: bBorn = '', name: bName } = b.metadata;
  if (aBorn !== bBorn) return aBorn < bBorn ? -1 : 1;
  return aName < bName ? -1 : aName > bName ? 1 : 0;
}

/** The same for objects of several namespaces, which may have one name. */
export function byAgeAndKey(a: KubeObject, b: KubeObject): number {
  return byAge(a, b) || (objectKey(a) < objectKey(b) ? -1 : 1);
}

interface WithCreationTime {
  metadata: Pick<ObjectMeta, 'name' | 'creationTimestamp'>;
}

/** Returns the owner whose `controller` flag is set; undefined if there are several, which the API server does not store. */
export function controllerOf(object: KubeObject): OwnerReference | undefined {
  const controllers = object.metadata.ownerReferences?.filter((reference) => reference.controller === true) ?? [];
  return controllers.length === 1 ? controllers[0] : undefined;
}

/** metav1.Condition. */
export interface Condition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason: string;
  message: string;
  /** RFC 3339. */
  lastTransitionTime: string;
  observedGeneration?: number;
}

/** Returns since when a condition has its status. @param now milliseconds since the epoch, as it is written if the status is new */
export function transitionTimeOf(before: Condition | undefined, status: Condition['status'], now: number): string {
  return before?.status === status ? before.lastTransitionTime : timestampOf(now);
}

/** Formats milliseconds since the epoch as a metav1.Time, which has whole seconds. */
export function timestampOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** Compares resourceVersions of one kind: numbers of any length that grow with every write (KEP-5504). */
export function isNewer(version: string, than: string): boolean {
  return version.length === than.length ? version > than : version.length > than.length;
}

export function newerOf(one: string, other: string): string {
  return isNewer(one, other) ? one : other;
}
