import { makeServingCertificate } from '../../test/https/certificate.js';
import { POLICY_NAMES } from '../doctor/check-admission.js';
import { crdFieldsOf } from '../doctor/check-cluster.js';
import { CLAIM_CRD, CRD_FIELDS } from '../doctor/crd-fields.js';
import type { ObservedCluster } from '../doctor/observe.js';
import type { Crd, JsonSchema, ProcessPod, InstalledWorkload } from '../installation.js';

export const NOW = Date.now();
const SYSTEM = 'holdfast-system';

export function ago(ms: number): string {
  return new Date(NOW - ms).toISOString();
}

export function crdOf(name: string, fields: readonly string[]): Crd {
  const schema: JsonSchema = {};
  for (const path of fields) {
    let at = schema;
    for (const part of path.split('.')) {
      const parent = at.items ?? at;
      parent.properties = { ...parent.properties, [part]: parent.properties?.[part] ?? {} };
      at = parent.properties[part]!;
    }
  }
  return {
    metadata: { name },
    spec: { versions: [{ name: 'v1alpha1', served: true, schema: { openAPIV3Schema: schema } }] },
    status: { conditions: [{ type: 'Established', status: 'True' }] },
  };
}

function metadataOf(component: string) {
  const namespace = component === 'agent' ? 'holdfast-agents' : SYSTEM;
  const labels = { 'app.kubernetes.io/name': 'holdfast', 'app.kubernetes.io/component': component };
  return { name: `holdfast-${component}`, namespace, labels };
}

export function workloadOf(component: string, version = '0.1.0', ready = 2): InstalledWorkload {
  const containers = [{ name: component, image: `registry.example.com:5000/holdfast:${version}`, args: [component] }];
  const volumes = [{ name: 'cni-bin', hostPath: { path: '/opt/cni/bin' } }];
  const template = { spec: { containers, ...(component === 'agent' && { volumes }) } };
  return {
    metadata: metadataOf(component),
    spec: { ...(component !== 'agent' && { replicas: 2 }), template },
    status: component === 'agent' ? { desiredNumberScheduled: 2, numberReady: ready } : { readyReplicas: ready },
  };
}

export function unreadyPod(component: string, node: string): ProcessPod {
  const state = { waiting: { reason: 'CrashLoopBackOff', message: 'back-off' } };
  const lastState = { terminated: { message: 'cannot install the CNI plugin as /opt/cni/bin/holdfast: EROFS' } };
  return {
    metadata: { ...metadataOf(component), name: `holdfast-${component}-x` },
    spec: { nodeName: node },
    status: { phase: 'Pending', initContainerStatuses: [{ name: 'install-plugin', state, lastState }] },
  };
}

function configurationOf(name: string, kind: string) {
  const caBundle = Buffer.from(makeServingCertificate().ca).toString('base64');
  const clientConfig = { caBundle, service: { namespace: SYSTEM, name } };
  return { kind, metadata: { name }, webhooks: [{ name: `${name}.example`, failurePolicy: 'Fail', clientConfig }] };
}

function readySlice(name: string) {
  const metadata = { namespace: SYSTEM, name: `${name}-x`, labels: { 'kubernetes.io/service-name': name } };
  return { metadata, endpoints: [{ conditions: { ready: true } }] };
}

/** A cluster in which the doctor finds nothing. */
export const HEALTHY: ObservedCluster = {
  now: NOW,
  crds: [...Object.keys(CRD_FIELDS).map((name) => crdOf(name, crdFieldsOf(name))), crdOf(CLAIM_CRD, [])],
  workloads: ['controller', 'webhook', 'ipam', 'agent'].map((component) => workloadOf(component)),
  pods: [],
  leaders: ['holdfast-controller', 'holdfast-ipam'].map((name) => ({
    metadata: { namespace: SYSTEM, name },
    spec: { holderIdentity: `${name}-x`, renewTime: ago(2_000) },
  })),
  configurations: [
    configurationOf('holdfast-webhook', 'MutatingWebhookConfiguration'),
    configurationOf('holdfast-ipam', 'ValidatingWebhookConfiguration'),
  ],
  endpointSlices: ['holdfast-webhook', 'holdfast-ipam'].map(readySlice),
  trialCalls: [{ configuration: 'holdfast-webhook' }, { configuration: 'holdfast-ipam' }],
  policies: POLICY_NAMES.map((name) => ({ metadata: { name } })),
  policyBindings: POLICY_NAMES.map((name) => ({ metadata: { name } })),
  parameters: { kubevirtNamespace: 'kubevirt' },
  servedNetworks: { complete: 'true' },
  kubevirts: [{ metadata: { namespace: 'kubevirt', name: 'kubevirt' } }],
  missingRights: [],
  multus: [],
  nodes: [{ metadata: { name: 'node-1' }, status: { conditions: [{ type: 'Ready', status: 'True' }] } }],
  nodeLeases: [{ metadata: { name: 'node-1' }, spec: { renewTime: ago(9_000) } }],
  pools: [],
  nads: [],
  responderSets: [],
  claims: [],
  ownerlessLeases: [],
  lockedLeases: [],
  refused: [],
};
