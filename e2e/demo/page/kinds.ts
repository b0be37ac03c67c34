import type { KubeObject } from '../../../api/meta.js';
import type { Resource } from '../../../kube/resource.js';
import {
  ADDRESS_LEASES,
  ADDRESS_POOLS,
  IPAM_CLAIMS,
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  NODES,
  PODS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
} from '../../../kube/resources.js';

const EVENTS: Resource = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };
export const MIGRATIONS: Resource = {
  group: 'kubevirt.io',
  version: 'v1',
  plural: 'virtualmachineinstancemigrations',
  kind: 'VirtualMachineInstanceMigration',
  namespaced: true,
};
const KINDS: Resource = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  namespaced: false,
};

/** Names of kinds that kubectl understands. */
const BY_NAME: Readonly<Record<string, Resource>> = {
  pod: PODS,
  pods: PODS,
  namespace: NAMESPACES,
  nodes: NODES,
  events: EVENTS,
  crd: KINDS,
  'net-attach-def': NETWORK_ATTACHMENT_DEFINITIONS,
  vm: VIRTUAL_MACHINES,
  vmi: VIRTUAL_MACHINE_INSTANCES,
  vmim: MIGRATIONS,
  ipamclaim: IPAM_CLAIMS,
  ipamclaims: IPAM_CLAIMS,
  apool: ADDRESS_POOLS,
  apools: ADDRESS_POOLS,
  aleases: ADDRESS_LEASES,
};

export function kindCalled(name: string): Resource {
  const found = BY_NAME[name];
  if (found === undefined)
    throw new Error(`the demo does not know the kind "${name}", only ${Object.keys(BY_NAME).join(', ')}`);
  return found;
}

export function kindOf({ apiVersion, kind }: Pick<KubeObject, 'apiVersion' | 'kind'>): Resource {
  const found = Object.values(BY_NAME).find(
    (one) => one.kind === kind && (one.group === '' ? one.version : `${one.group}/${one.version}`) === apiVersion,
  );
  if (found === undefined) throw new Error(`the demo does not know the kind ${String(kind)} of ${String(apiVersion)}`);
  return found;
}

/** Resolves a name in the current namespace. */
export function refTo(resource: Resource, name: string, namespace: string): { namespace?: string; name: string } {
  return resource.namespaced ? { namespace, name } : { name };
}

/** An object as kubectl names it in its output. */
export function callOf({ kind, group }: Resource, name: string): string {
  return `${kind.toLowerCase()}${group === '' ? '' : `.${group}`}/${name}`;
}
