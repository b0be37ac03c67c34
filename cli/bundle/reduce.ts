import { isCapacityResource } from '../../api/capacity.js';
import { asRecord, isRecord } from '../../api/json.js';
import type { KubeObject } from '../../api/meta.js';

/** Annotations of tenants' objects that concern their networks or addresses. Others may contain anything. */
const RELEVANT_ANNOTATION = /(?:^|\.)(?:cncf\.io|holdfast\.dev|k8s\.io|kubernetes\.io|kubevirt\.io|ovn\.org)\//;

/** Keeps only the fields with these paths, and of the annotations those about networks and addresses. */
export function reduceTo(...paths: readonly string[]): (object: KubeObject) => KubeObject {
  return (object) => {
    const kept: Record<string, unknown> = {};
    for (const path of paths) copyField(object as unknown as Record<string, unknown>, kept, path.split('.'));
    const { apiVersion, kind, metadata } = object;
    const { annotations = {}, ...rest } = metadata;
    const relevant = Object.entries(annotations).filter(([name]) => RELEVANT_ANNOTATION.test(name));
    return {
      apiVersion,
      kind,
      metadata: { ...rest, annotations: Object.fromEntries(relevant) },
      ...kept,
    } as KubeObject;
  };
}

/** A node, with the resources of pools only. */
export function reduceNode(node: KubeObject): KubeObject {
  const reduced = reduceTo('spec.taints', 'spec.unschedulable', 'status.conditions', 'status.nodeInfo')(node);
  const { status } = node as { status?: unknown };
  const { capacity, allocatable } = asRecord(status);
  const kept = asRecord((reduced as { status?: unknown }).status);
  const ofPools = { capacity: resourcesOfPools(capacity), allocatable: resourcesOfPools(allocatable) };
  return { ...reduced, status: { ...kept, ...ofPools } } as KubeObject;
}

function resourcesOfPools(resources: unknown): object {
  return Object.fromEntries(Object.entries(asRecord(resources)).filter(([name]) => isCapacityResource(name)));
}

/** Whether a VM or VMI has a network of Multus. */
export function hasSecondaryNetwork(object: KubeObject): boolean {
  const { spec } = object as { spec?: unknown };
  const own = asRecord(spec);
  const networks = own.networks ?? asRecord(asRecord(own.template).spec).networks;
  return Array.isArray(networks) && networks.some((network) => isRecord(network) && network.multus !== undefined);
}

function copyField(from: Record<string, unknown>, to: Record<string, unknown>, [key = '', ...rest]: string[]): void {
  const value = from[key];
  if (value === undefined) return;
  if (rest.length === 0) to[key] = value;
  else if (isRecord(value)) copyField(value, (to[key] ??= {}) as Record<string, unknown>, rest);
}
