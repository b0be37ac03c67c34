import type { Bed } from '../bed/bed.js';
import { capture } from '../bed/processes.js';
import type { Manifest } from '../bed/objects.js';
import { applyManifests, readKustomization } from './manifests.js';

/** Where the shipped manifests put Holdfast. */
export const HOLDFAST_NAMESPACE = 'holdfast-system';
/** And its agents, which alone may mount folders of their nodes. */
export const AGENTS_NAMESPACE = 'holdfast-agents';

/** Where on 127.0.0.1 what the API server calls will listen. */
export interface ServicePorts {
  readonly webhook: number;
  readonly ipam: number;
}

/** Kinds that would make the simulated nodes play our own processes, which run for real beside the bed. */
const RUN_BY_US = new Set(['Deployment', 'DaemonSet', 'PodDisruptionBudget', 'NetworkPolicy']);

/** Builds what is run and what nodes get, from this tree. */
export async function buildHoldfast(): Promise<void> {
  await capture(process.execPath, ['build.js']);
}

/** Applies the shipped manifests to a bed, and points the Services of webhooks at ports of this machine. */
export async function installHoldfast(bed: Bed, { webhook, ipam }: ServicePorts): Promise<void> {
  const shipped = await readKustomization();
  await applyManifests(bed.client, shipped.filter(({ kind }) => !RUN_BY_US.has(kind)).map(withoutSelector));
  await applyManifests(bed.client, [endpointOf('holdfast-webhook', webhook), endpointOf('holdfast-ipam', ipam)]);
}

/** Without a selector, Kubernetes leaves the Service's endpoints to us. */
export function withoutSelector(object: Manifest): Manifest {
  if (object.kind !== 'Service') return object;
  const { selector: _selector, ...spec } = object.spec as Record<string, unknown>;
  return { ...object, spec };
}

/** Leads a Service to a port of this machine: by an address of type FQDN, since one of type IPv4 may not be in the loopback range. */
export function endpointOf(service: string, port: number): Manifest {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${service}-bed`,
      namespace: HOLDFAST_NAMESPACE,
      labels: { 'kubernetes.io/service-name': service },
    },
    addressType: 'FQDN',
    ports: [{ name: 'https', port }],
    endpoints: [{ addresses: ['127.0.0.1'], conditions: { ready: true } }],
  };
}
