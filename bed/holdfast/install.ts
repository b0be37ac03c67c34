import type { Bed } from '../bed.js';
import { capture } from '../processes/processes.js';
import type { Manifest } from '../control-plane/objects.js';
import { applyManifests, readInstallation } from './manifests.js';

/** The namespace of Holdfast in the shipped manifests. */
export const HOLDFAST_NAMESPACE = 'holdfast-system';
/** The namespace of the agents, the only pods that may mount folders of their nodes. */
export const AGENTS_NAMESPACE = 'holdfast-agents';

/** The ports of 127.0.0.1 on which webhooks listen. */
export interface ServicePorts {
  readonly webhook: number;
  readonly ipam: number;
}

/** Kinds that are not installed, because Holdfast's processes run on this machine and not in pods. */
const RUN_BY_US = new Set(['Deployment', 'DaemonSet', 'PodDisruptionBudget', 'NetworkPolicy']);

/** Builds the processes and the CNI plugin from this tree. */
export async function buildHoldfast(): Promise<void> {
  await capture(process.execPath, ['build.js']);
}

/** Applies the shipped manifests to a bed, and points the Services of webhooks at ports of this machine. */
export async function installHoldfast(bed: Bed, { webhook, ipam }: ServicePorts): Promise<void> {
  const shipped = await readInstallation();
  await applyManifests(bed.client, shipped.filter(({ kind }) => !RUN_BY_US.has(kind)).map(withoutSelector));
  await applyManifests(bed.client, [endpointOf('holdfast-webhook', webhook), endpointOf('holdfast-ipam', ipam)]);
}

/** Removes the selector of a Service, so that Kubernetes does not manage its endpoints. */
export function withoutSelector(object: Manifest): Manifest {
  if (object.kind !== 'Service') return object;
  const { selector: _selector, ...spec } = object.spec as Record<string, unknown>;
  return { ...object, spec };
}

/**
 * Connects a Service to a port of this machine. The address type is FQDN because an IPv4 address may not be in the loopback range.
 * @param replica of several, each with a port of its own
 */
export function endpointOf(service: string, port: number, replica = { name: 'bed', ready: true }): Manifest {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${service}-${replica.name}`,
      namespace: HOLDFAST_NAMESPACE,
      labels: { 'kubernetes.io/service-name': service },
    },
    addressType: 'FQDN',
    ports: [{ name: 'https', port }],
    endpoints: [{ addresses: ['127.0.0.1'], conditions: { ready: replica.ready } }],
  };
}
