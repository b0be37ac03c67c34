import { IPAM_API_VERSION } from '../api/names.js';
import { type StatusError, isForbidden, messageOf } from '../kube/errors.js';
import type { Resource } from '../kube/resource.js';

/** The words of the API server's authorizer: k8s.io/apiserver, pkg/endpoints/handlers/responsewriters. */
const REFUSAL =
  /User "((?:[^"\\]|\\.)*)" cannot (\S+) resource "([^"]*)" in API group "([^"]*)" (?:at the cluster scope|in the namespace "([^"]*)")/;
/** In the message of a StatusError. */
const UNAUTHORIZED = ': 401 ';
const READING = ['get', 'list', 'watch'];
/** The ClusterRoles with the right to read kinds that are not Holdfast's own. */
const READ_ROLES: ReadonlyMap<string, string> = new Map([
  ['pods', 'view'],
  ['pods/log', 'view'],
  ['events', 'view'],
  ['ipamclaims.k8s.cni.cncf.io', 'holdfast-view-claims'],
  ['virtualmachines.kubevirt.io', 'kubevirt.io:view'],
  ['virtualmachineinstances.kubevirt.io', 'kubevirt.io:view'],
]);

/** Says why a read failed: which right the user lacks, to log in again, or the message of the error. */
export function reasonOf(error: unknown): string {
  const message = messageOf(error);
  return (isForbidden(error) ? describeForbidden(error) : describeUnauthorized(message)) ?? message;
}

/** Also of an error of which only the text is known. @returns undefined if the API server knows the user */
export function describeUnauthorized(message: string): string | undefined {
  if (!message.includes(UNAUTHORIZED)) return undefined;
  return `${message}: the API server does not accept the credentials of this kubeconfig, which may have expired: log in again`;
}

/** `addresspools.ipam.holdfast.dev`, as kubectl and the name of a CustomResourceDefinition write a kind. */
export function qualifiedName({ plural, group }: Pick<Resource, 'plural' | 'group'>): string {
  return group === '' ? plural : `${plural}.${group}`;
}

/** `addresspools.ipam.holdfast.dev/status`, as `kubectl auth can-i` reads it. @param resource with its subresource */
export function qualifiedResource(resource: string, group: string): string {
  const [plural = '', ...subresource] = resource.split('/');
  return [qualifiedName({ plural, group }), ...subresource].join('/');
}

/** Says in words which right the user lacks, and what to ask for; undefined if it is not about rights: a policy or a quota refuses. */
export function describeForbidden({ message }: Pick<StatusError, 'message'>): string | undefined {
  const [, user = '', verb = '', resource = '', group = '', namespace] = REFUSAL.exec(message) ?? [];
  if (verb === '') return undefined;
  const what = qualifiedResource(resource, group);
  const where = namespace === undefined ? 'the whole cluster' : `namespace ${namespace}`;
  return `user "${user}" may not ${verb} ${what} in ${where}: ask an administrator for this right${roleFor(verb, group, what)}`;
}

/** @param what the resource with its group */
function roleFor(verb: string, group: string, what: string): string {
  const isRead = READING.includes(verb);
  if (IPAM_API_VERSION.startsWith(`${group}/`)) return contains(isRead ? 'holdfast-view' : 'holdfast-pool-admin');
  if (!isRead) return '';
  if (what === 'network-attachment-definitions.k8s.cni.cncf.io') return ', for which Multus ships no role';
  const role = READ_ROLES.get(what);
  return role === undefined ? '' : contains(role);
}

function contains(role: string): string {
  return `, which the ClusterRole ${role} contains`;
}
