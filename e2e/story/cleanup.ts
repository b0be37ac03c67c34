import type { Client } from '../../kube/client.js';
import type { Resource } from '../../kube/resource.js';
import {
  IPAM_CLAIMS,
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
} from '../../kube/resources.js';

/** Deleted at a time: a bench leaves hundreds. */
const CONCURRENT_DELETES = 20;

/**
 * Deletes namespaces. VMs first: a namespace's end deletes in no order, which is another story. Nor are claims and NADs left to it: while a
 * kube-apiserver that was killed is new it does not tell all kinds, and kube-controller-manager lets a namespace go without what it is not told of.
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
