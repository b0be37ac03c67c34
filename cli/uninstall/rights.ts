import { isAllowed, type Right } from '../doctor/probe.js';
import type { Client } from '../../kube/client.js';
import type { Resource } from '../../kube/resource.js';
import { IPAM_CLAIMS, NAMESPACES, NODES } from '../../kube/resources.js';
import { CommandError } from '../exit-code.js';
import { qualifiedResource } from '../forbidden.js';
import { CLUSTER_ROLE_BINDINGS, CRDS } from '../installation.js';
import { type InstalledObject, OWN_KINDS, type ObservedData, type ObservedInstallation } from './plan.js';

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
  const allowed = await Promise.all(rights.map((right) => isAllowed(client, right)));
  const missing = rights
    .filter((_, index) => !allowed[index])
    .map(({ verb, group, resource }) => `${verb} ${qualifiedResource(resource, group)}`);
  if (missing.length === 0) return;
  throw new CommandError(
    `you may not ${missing.join(', ')} in the whole cluster: run the command as a cluster administrator. Nothing has been removed`,
  );
}

function rightsOnInstallation(installed: readonly InstalledObject[]): Right[] {
  if (installed.length === 0) return [];
  const kinds = new Set([...installed.map(({ resource }) => resource), NAMESPACES, CLUSTER_ROLE_BINDINGS]);
  return [...kinds].map((kind) => rightOn('delete', kind));
}

function rightsOnData({ claims, crds, nodes, keptPolicy }: ObservedData): Right[] {
  const rights: Right[] = [];
  const cleared = [...(claims > 0 ? [IPAM_CLAIMS] : []), ...(crds.length > 0 ? OWN_KINDS : [])];
  for (const kind of cleared) rights.push(rightOn('patch', kind), rightOn('delete', kind));
  if (crds.length > 0) rights.push(rightOn('delete', CRDS));
  for (const { resource } of keptPolicy) rights.push(rightOn('delete', resource));
  if (nodes.length > 0) rights.push({ ...rightOn('patch', NODES), resource: 'nodes/status' });
  return rights;
}

function rightOn(verb: string, { group, plural }: Resource): Right {
  return { verb, group, resource: plural };
}
