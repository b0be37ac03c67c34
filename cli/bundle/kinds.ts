import { LEASE_OWNER_NAMESPACE } from '../../api/names.js';
import { LAUNCHER_SELECTOR } from '../../api/pod.js';
import type { KubeObject } from '../../api/meta.js';
import { EVENTS } from '../../kube/events.js';
import { LEASES } from '../../kube/leader-election.js';
import type { Resource } from '../../kube/resource.js';
import {
  ADDRESS_BLOCKS,
  ADDRESS_LEASES,
  ADDRESS_POOLS,
  CONFIG_MAPS,
  IPAM_CLAIMS,
  KUBEVIRTS,
  NETWORK_ATTACHMENT_DEFINITIONS,
  NODES,
  PODS,
  VIRTUAL_MACHINES,
  VIRTUAL_MACHINE_INSTANCES,
} from '../../kube/resources.js';
import { isCapacityResource } from '../../api/capacity.js';
import { asRecord, isRecord } from '../../api/json.js';
import {
  CRDS,
  DAEMON_SETS,
  DEPLOYMENTS,
  ENDPOINT_SLICES,
  INSTALLED,
  POLICIES,
  POLICY_BINDINGS,
  WEBHOOK_KINDS,
} from '../installation.js';

/** A list of objects in a bundle. */
export interface BundledKind {
  readonly resource: Resource;
  /** In the archive; default: the plural. */
  readonly name?: string;
  /**
   * `cluster`: all namespaces. `tenants`: all namespaces, or that of `-n`. `installation`: the namespaces of Holdfast, where nobody else
   * may create objects.
   */
  readonly from: 'cluster' | 'tenants' | 'installation';
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** The label with the namespace of the tenant, on kinds without namespaces. */
  readonly namespaceLabel?: string;
  readonly isKept?: (object: KubeObject) => boolean;
  readonly reduce?: (object: KubeObject) => KubeObject;
}

const VM_FIELDS = ['spec.networks', 'spec.domain.devices.interfaces'];

/** Secrets are not among them. */
export const BUNDLED_KINDS: readonly BundledKind[] = [
  { resource: ADDRESS_POOLS, from: 'cluster' },
  { resource: ADDRESS_BLOCKS, from: 'cluster' },
  { resource: ADDRESS_LEASES, from: 'cluster', namespaceLabel: LEASE_OWNER_NAMESPACE },
  { resource: IPAM_CLAIMS, from: 'tenants' },
  // also those that misspell Holdfast's name, or cannot be read
  { resource: NETWORK_ATTACHMENT_DEFINITIONS, from: 'tenants' },
  {
    ...{ resource: VIRTUAL_MACHINES, from: 'tenants', isKept: hasSecondaryNetwork },
    reduce: reduceTo(
      ...['spec.running', 'spec.runStrategy', 'spec.template.metadata.labels', 'spec.template.metadata.annotations'],
      ...VM_FIELDS.map((field) => field.replace('spec', 'spec.template.spec')),
      ...['status.created', 'status.ready', 'status.printableStatus', 'status.conditions'],
    ),
  },
  {
    ...{ resource: VIRTUAL_MACHINE_INSTANCES, from: 'tenants', isKept: hasSecondaryNetwork },
    reduce: reduceTo(
      ...VM_FIELDS,
      ...['status.phase', 'status.interfaces', 'status.conditions', 'status.nodeName'],
      ...['status.migrationState', 'status.activePods'],
    ),
  },
  {
    ...{ resource: PODS, name: 'launchers', from: 'tenants', labelSelector: LAUNCHER_SELECTOR },
    reduce: reduceTo('spec.nodeName', 'status.phase', 'status.podIPs', 'status.conditions', 'status.reason'),
  },
  { resource: NODES, from: 'cluster', reduce: reduceNode },
  ...labelled('installation', DEPLOYMENTS, PODS, CONFIG_MAPS, LEASES, DAEMON_SETS),
  { resource: ENDPOINT_SLICES, from: 'installation' },
  ...labelled('cluster', ...WEBHOOK_KINDS, POLICIES, POLICY_BINDINGS),
  {
    ...{ resource: CRDS, from: 'cluster' },
    isKept: ({ metadata }) => /(?:holdfast\.dev|k8s\.cni\.cncf\.io)$/.test(metadata.name),
    reduce: reduceTo('status'),
  },
  { resource: KUBEVIRTS, from: 'cluster', reduce: reduceTo('spec.configuration.developerConfiguration', 'status') },
  { resource: EVENTS, name: 'events', from: 'installation' },
  ...['VirtualMachine', 'VirtualMachineInstance', 'IPAMClaim', 'NetworkAttachmentDefinition', 'AddressPool'].map(
    (kind): BundledKind => ({
      ...{ resource: EVENTS, name: `events-of-${kind}`, from: 'tenants' },
      fieldSelector: `involvedObject.kind=${kind}`,
    }),
  ),
  {
    ...{ resource: EVENTS, name: 'events-of-sandboxes', from: 'tenants' },
    fieldSelector: 'reason=FailedCreatePodSandBox',
  },
];

function labelled(from: BundledKind['from'], ...resources: readonly Resource[]): BundledKind[] {
  return resources.map((resource) => ({ resource, from, labelSelector: INSTALLED }));
}

/** Annotations of tenants' objects that concern their networks or addresses. Others may contain anything. */
const RELEVANT_ANNOTATION = /(?:^|\.)(?:cncf\.io|holdfast\.dev|k8s\.io|kubernetes\.io|kubevirt\.io|ovn\.org)\//;

/** Keeps only the fields with these paths, and of the annotations those about networks and addresses. */
function reduceTo(...paths: readonly string[]): (object: KubeObject) => KubeObject {
  return (object) => {
    const kept: Record<string, unknown> = {};
    for (const path of paths) copyField(object as unknown as Record<string, unknown>, kept, path.split('.'));
    const { apiVersion, kind, metadata } = object;
    const { annotations = {}, ...rest } = metadata;
    return { apiVersion, kind, metadata: { ...rest, annotations: relevantIn(annotations) }, ...kept } as KubeObject;
  };
}

function relevantIn(annotations: object): object {
  return entriesWith(annotations, (name) => RELEVANT_ANNOTATION.test(name));
}

/** A node, with the resources of pools only. */
function reduceNode(node: KubeObject): KubeObject {
  const reduced = reduceTo('spec.taints', 'spec.unschedulable', 'status.conditions', 'status.nodeInfo')(node);
  const { capacity, allocatable } = asRecord((node as { status?: unknown }).status);
  const kept = asRecord((reduced as { status?: unknown }).status);
  const ofPools = (resources: unknown) => entriesWith(asRecord(resources), isCapacityResource);
  const status = { ...kept, capacity: ofPools(capacity), allocatable: ofPools(allocatable) };
  return { ...reduced, status } as KubeObject;
}

function entriesWith(entries: object, isKept: (name: string) => boolean): object {
  return Object.fromEntries(Object.entries(entries).filter(([name]) => isKept(name)));
}

/** Whether a VM or VMI has a network of Multus. */
function hasSecondaryNetwork(object: KubeObject): boolean {
  const { spec } = object as { spec?: unknown };
  const own = asRecord(spec);
  const networks = own.networks ?? asRecord(asRecord(own.template).spec).networks;
  return Array.isArray(networks) && networks.some((network) => isRecord(network) && network.multus !== undefined);
}

function copyField(from: Record<string, unknown>, to: Record<string, unknown>, [key = '', ...rest]: string[]): void {
  const value = from[key];
  if (value === undefined) return;
  if (rest.length === 0) to[key] = key === 'annotations' ? relevantIn(asRecord(value)) : value;
  else if (isRecord(value)) copyField(value, (to[key] ??= {}) as Record<string, unknown>, rest);
}
