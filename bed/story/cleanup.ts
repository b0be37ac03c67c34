import type { Client } from '../../kube/client.js';
import type { Resource } from '../../kube/resource.js';
import {
  IPAM_CLAIMS,
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
} from '../../kube/resources.js';

/** Limited because a benchmark leaves hundreds of objects. */
const CONCURRENT_DELETES = 20;

/**
 * Deletes namespaces. VMs are deleted first because the namespace controller deletes in no order. Claims and NADs are deleted here too: a
 * kube-apiserver that has just started does not serve all kinds, and the namespace controller skips kinds that it cannot discover.
 */
export async function removeNamespaces(client: Client, names: readonly string[]): Promise<void> {
  for (const resource of [VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES]) await deleteAll(client, resource, names);
  await Promise.all(names.map((name) => client.delete(NAMESPACES, { name })));
  for (const resource of [IPAM_CLAIMS, NETWORK_ATTACHMENT_DEFINITIONS]) await deleteAll(client, resource, names);
}

async function deleteAll(client: Client, resource: Resource, namespaces: readonly string[]): Promise<void> {
  for (const namespace of namespaces) {
    const { items } = await client.list(resource, { namespace });
    for (let from = 0; from < items.length; from += CONCURRENT_DELETES) {
      const some = items.slice(from, from + CONCURRENT_DELETES);
      await Promise.all(some.map(({ metadata: { name } }) => client.delete(resource, { namespace, name })));
    }
  }
}
