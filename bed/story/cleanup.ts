import type { Client } from '../../kube/client.js';
import type { Resource } from '../../kube/resource.js';
import {
  IPAM_CLAIMS,
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
} from '../../kube/resources.js';
import { until } from '../processes/wait.js';

/** Groups of kinds that have finalizers. */
const GROUPS = ['kubevirt.io', 'k8s.cni.cncf.io'];
/** In the form in which the namespace controller reads it. */
const DISCOVERY = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

interface Discovery {
  readonly items?: readonly { readonly metadata: { readonly name: string }; readonly versions: readonly object[] }[];
}

/** Limited because a benchmark leaves hundreds of objects. */
const CONCURRENT_DELETES = 20;

/**
 * Deletes namespaces. VMs are deleted first because the namespace controller deletes in no order. It skips kinds that a kube-apiserver does not list
 * after its start, and nobody could release claims that are left in a namespace that is gone. Claims and NADs end sooner if they are deleted here.
 */
export async function removeNamespaces(client: Client, names: readonly string[]): Promise<void> {
  for (const resource of [VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES]) await deleteAll(client, resource, names);
  await until('the API server to list the kinds of claims and VMs', () => listsGroups(client));
  await Promise.all(names.map((name) => client.delete(NAMESPACES, { name })));
  for (const resource of [IPAM_CLAIMS, NETWORK_ATTACHMENT_DEFINITIONS]) await deleteAll(client, resource, names);
}

async function listsGroups({ transport }: Client): Promise<boolean> {
  const { items = [] } = (await transport.request({ method: 'GET', path: '/apis', accept: DISCOVERY })) as Discovery;
  return GROUPS.every((group) =>
    items.some(({ metadata, versions }) => metadata.name === group && versions.length > 0),
  );
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
