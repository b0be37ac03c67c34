import type { KubeObject, ObjectMeta } from '../../api/meta.js';
import type { Client } from '../../kube/client.js';
import { type Resource, clusterResource } from '../../kube/resource.js';
import { IPAM_CLAIMS, NAMESPACES, NODES } from '../../kube/resources.js';
import { CommandError } from '../exit-code.js';
import { qualifiedName } from '../forbidden.js';
import { CLUSTER_ROLE_BINDINGS, CRDS } from '../installation.js';
import { type InstalledObject, OWN_KINDS, type ObservedData, type ObservedInstallation } from './plan.js';

interface SelfSubjectAccessReview extends KubeObject {
  spec: { resourceAttributes: { verb: string; group: string; resource: string; subresource?: string } };
  status?: { allowed?: boolean };
}

const SELF_SUBJECT_ACCESS_REVIEWS = clusterResource<SelfSubjectAccessReview>(
  'authorization.k8s.io/v1',
  'selfsubjectaccessreviews',
  'SelfSubjectAccessReview',
);

interface Right {
  readonly verb: 'delete' | 'patch';
  readonly resource: Resource;
  readonly subresource?: string;
}

/**
 * Checks all rights before the first write, so that a removal does not stop halfway: those on the data with `everything`, otherwise those on the installation.
 * @throws {CommandError} naming the rights that the user lacks
 */
export async function requireRights(
  { installed, data }: ObservedInstallation,
  everything: boolean,
  client: Pick<Client, 'create'>,
): Promise<void> {
  const rights = everything ? rightsOnData(data) : rightsOnInstallation(installed);
  const allowed = await Promise.all(rights.map((right) => isAllowed(right, client)));
  const missing = rights.filter((_, index) => !allowed[index]).map(describeRight);
  if (missing.length === 0) return;
  throw new CommandError(
    `you may not ${missing.join(', ')} in the whole cluster: run the command as a cluster administrator. Nothing has been removed`,
  );
}

function rightsOnInstallation(installed: readonly InstalledObject[]): Right[] {
  if (installed.length === 0) return [];
  const kinds = new Set([...installed.map(({ resource }) => resource), NAMESPACES, CLUSTER_ROLE_BINDINGS]);
  return [...kinds].map((resource) => ({ verb: 'delete', resource }));
}

function rightsOnData({ claims, crds, nodes, keptPolicy }: ObservedData): Right[] {
  const rights: Right[] = [];
  const cleared = [...(claims.length > 0 ? [IPAM_CLAIMS] : []), ...(crds.length > 0 ? OWN_KINDS : [])];
  for (const resource of cleared) rights.push({ verb: 'patch', resource }, { verb: 'delete', resource });
  if (crds.length > 0) rights.push({ verb: 'delete', resource: CRDS });
  for (const { resource } of keptPolicy) rights.push({ verb: 'delete', resource });
  if (nodes.length > 0) rights.push({ verb: 'patch', resource: NODES, subresource: 'status' });
  return rights;
}

async function isAllowed({ verb, resource, subresource }: Right, client: Pick<Client, 'create'>): Promise<boolean> {
  const { group, plural } = resource;
  const resourceAttributes = { verb, group, resource: plural, ...(subresource !== undefined && { subresource }) };
  // the API server accepts no name in this kind
  const metadata = {} as ObjectMeta;
  const review = await client.create(SELF_SUBJECT_ACCESS_REVIEWS, { metadata, spec: { resourceAttributes } });
  return review.status?.allowed === true;
}

function describeRight({ verb, resource, subresource }: Right): string {
  return `${verb} ${qualifiedName(resource)}${subresource === undefined ? '' : `/${subresource}`}`;
}
