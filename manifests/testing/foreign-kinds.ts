import { namespacedKind } from '../../bed/control-plane/crds.js';
import type { Manifest } from '../../bed/control-plane/objects.js';

/** The kinds of other software that variants use, with the fields of those variants: strict validation refuses others. */

const TEXT = { type: 'string' };
const TEXTS = { type: 'array', items: TEXT };
const TEXT_BY_KEY = { type: 'object', additionalProperties: TEXT };
const FLAG = { type: 'boolean' };

function objectOf(properties: Readonly<Record<string, object>>, ...required: string[]): object {
  return { type: 'object', properties, ...(required.length > 0 && { required }) };
}

function listOf(properties: Readonly<Record<string, object>>, ...required: string[]): object {
  return { type: 'array', items: objectOf(properties, ...required) };
}

const ISSUER = objectOf({ selfSigned: { type: 'object' }, ca: objectOf({ secretName: TEXT }, 'secretName') });

const CERTIFICATE = objectOf(
  {
    secretName: TEXT,
    secretTemplate: objectOf({ labels: TEXT_BY_KEY }),
    commonName: TEXT,
    duration: TEXT,
    isCA: FLAG,
    dnsNames: TEXTS,
    privateKey: objectOf({
      algorithm: { ...TEXT, enum: ['RSA', 'ECDSA', 'Ed25519'] },
      rotationPolicy: { ...TEXT, enum: ['Never', 'Always'] },
    }),
    issuerRef: objectOf({ name: TEXT, kind: TEXT, group: TEXT }, 'name'),
  },
  ...['issuerRef', 'secretName'],
);

const SERVICE_MONITOR = objectOf(
  {
    jobLabel: TEXT,
    targetLabels: TEXTS,
    selector: objectOf({
      matchLabels: TEXT_BY_KEY,
      matchExpressions: listOf({ key: TEXT, operator: TEXT, values: TEXTS }),
    }),
    endpoints: listOf({
      ...{ port: TEXT, path: TEXT, scheme: TEXT, bearerTokenFile: TEXT },
      tlsConfig: objectOf({ insecureSkipVerify: FLAG }),
      relabelings: listOf({ sourceLabels: TEXTS, targetLabel: TEXT }),
    }),
  },
  ...['endpoints', 'selector'],
);

const RULE = { alert: TEXT, for: TEXT, labels: TEXT_BY_KEY, annotations: TEXT_BY_KEY };
const EXPRESSION = { 'x-kubernetes-int-or-string': true };
const PROMETHEUS_RULE = objectOf({
  groups: listOf({ name: TEXT, rules: listOf({ ...RULE, expr: EXPRESSION }, 'expr') }, 'name'),
});

/** The flags without which OpenShift refuses it. */
const REQUIRED_FLAGS = [
  ...['allowHostDirVolumePlugin', 'allowHostIPC', 'allowHostNetwork', 'allowHostPID', 'allowHostPorts'],
  ...['allowPrivilegedContainer', 'readOnlyRootFilesystem'],
];
const STRATEGIES = ['runAsUser', 'seLinuxContext', 'fsGroup', 'supplementalGroups'];
const LISTS = [
  ...['allowedCapabilities', 'defaultAddCapabilities', 'requiredDropCapabilities'],
  ...['seccompProfiles', 'volumes', 'users', 'groups'],
];
const SECURITY_CONTEXT_CONSTRAINTS = objectOf(
  Object.fromEntries([
    ...[...REQUIRED_FLAGS, 'allowPrivilegeEscalation'].map((name) => [name, FLAG]),
    ...STRATEGIES.map((name) => [name, objectOf({ type: TEXT })]),
    ...LISTS.map((name) => [name, TEXTS]),
  ]) as Record<string, object>,
  ...REQUIRED_FLAGS,
);

function securityContextConstraints(): Manifest {
  const name = 'securitycontextconstraints.security.openshift.io';
  const { metadata, spec, ...rest } = namespacedKind(name, 'SecurityContextConstraints', SECURITY_CONTEXT_CONSTRAINTS);
  const annotations = { 'api-approved.kubernetes.io': 'unapproved, in a test' };
  return { ...rest, metadata: { ...metadata, annotations }, spec: { ...(spec as object), scope: 'Cluster' } };
}

export const FOREIGN_KINDS: readonly Manifest[] = [
  securityContextConstraints(),
  namespacedKind('issuers.cert-manager.io', 'Issuer', objectOf({ spec: ISSUER })),
  namespacedKind('certificates.cert-manager.io', 'Certificate', objectOf({ spec: CERTIFICATE })),
  namespacedKind('servicemonitors.monitoring.coreos.com', 'ServiceMonitor', objectOf({ spec: SERVICE_MONITOR })),
  namespacedKind('prometheusrules.monitoring.coreos.com', 'PrometheusRule', objectOf({ spec: PROMETHEUS_RULE })),
];
