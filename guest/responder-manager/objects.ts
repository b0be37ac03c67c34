import { type IPAMClaim, labelValue } from '../../api/ipam-claim.js';
import {
  IPAM_CLAIM_API_VERSION,
  IPAM_CLAIM_KIND,
  LEASE_POOL,
  NETWORKS_ANNOTATION,
  RESPONDERS_NAMESPACE,
  RESPONDER_CONTENT_ANNOTATION,
  shortHash,
} from '../../api/names.js';
import type { KubeObject } from '../../api/meta.js';
import { COMPONENT_LABEL } from '../../api/pod.js';
import { responderSetName } from '../../api/responders.js';
import type { Pool } from '../../addressing/pool/pool.js';
import type { Resources, ResponderTemplate } from '../../process/config/responder-template.js';

/** The objects of the responders of one pool. */

/** Two, so that one answers while the other one starts again. */
export const REPLICAS = 2;
/** Of the responders in their pod. */
export const RESPONDER_INTERFACE = 'guest0';

/** Of all objects of responders. */
export const RESPONDER_LABELS = { 'app.kubernetes.io/name': 'holdfast', [COMPONENT_LABEL]: 'responder' };
/** An image of Holdfast has both programs. */
const PACKETS_PROGRAM = '/opt/holdfast/dist/packets/holdfast-packets';
const SOCKET_DIRECTORY = '/run/holdfast-packets';
const SOCKET = `${SOCKET_DIRECTORY}/packets.sock`;
const TOKEN_DIRECTORY = '/var/run/secrets/kubernetes.io/serviceaccount';
/** The user of the image, and the group that both containers share for the socket. */
const USER = 1000;
/** As those of the Deployments: after a power failure all pods of a node start at the same time, and are slow. */
const LIVENESS_TIMES = { initialDelaySeconds: 30, periodSeconds: 20, timeoutSeconds: 10 };

/** What the pods of all responders have in common. */
export interface ResponderSettings {
  readonly image: string;
  readonly imagePullPolicy?: string;
  readonly imagePullSecrets?: readonly { readonly name: string }[];
  readonly maxStalenessMs: number;
  readonly logLevel: string;
  readonly template: ResponderTemplate;
}

export interface StatefulSet extends KubeObject {
  spec: { replicas: number; selector: object; template: { metadata: object; spec: object } } & Record<string, unknown>;
}

export interface PodDisruptionBudget extends KubeObject {
  spec: Record<string, unknown>;
}

/** The names of the set's pods, and of the claims with their addresses, which `isResponderClaim` recognizes. */
export function responderNames(set: string): string[] {
  return Array.from({ length: REPLICAS }, (_, ordinal) => `${set}-${ordinal}`);
}

/** Returns the StatefulSet of a pool. An annotation holds a hash of it, because the API server adds defaults to what it stores. */
export function responderSet(pool: Pool, attachment: string, settings: ResponderSettings): StatefulSet {
  const name = responderSetName(pool);
  const labels = { ...RESPONDER_LABELS, [LEASE_POOL]: labelValue(pool.name) };
  const spec = {
    replicas: REPLICAS,
    serviceName: '',
    // responders need not wait for each other
    podManagementPolicy: 'Parallel',
    updateStrategy: { type: 'RollingUpdate' },
    selector: { matchLabels: labels },
    template: {
      metadata: {
        labels: { ...settings.template.podLabels, ...labels },
        annotations: {
          ...settings.template.podAnnotations,
          [NETWORKS_ANNOTATION]: JSON.stringify([
            { name: attachment, namespace: RESPONDERS_NAMESPACE, interface: RESPONDER_INTERFACE },
          ]),
        },
      },
      spec: podSpec(pool, labels, settings),
    },
  };
  const annotations = { [RESPONDER_CONTENT_ANNOTATION]: shortHash(JSON.stringify(spec), 16) };
  const metadata = { name, namespace: RESPONDERS_NAMESPACE, labels, annotations };
  return { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata, spec };
}

/** A drain of nodes evicts one responder of a pool at a time. */
export function responderBudget({ metadata }: StatefulSet): PodDisruptionBudget {
  const { name, namespace = '', labels = {} } = metadata;
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace, labels },
    spec: { maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow', selector: { matchLabels: labels } },
  };
}

/** The claim with the addresses of one responder. ipam allocates and releases them like those of a VM. */
export function serverClaim(name: string, { network }: Pick<Pool, 'network'>): IPAMClaim {
  return {
    apiVersion: IPAM_CLAIM_API_VERSION,
    kind: IPAM_CLAIM_KIND,
    metadata: { name, namespace: RESPONDERS_NAMESPACE, labels: RESPONDER_LABELS },
    spec: { network, interface: RESPONDER_INTERFACE },
  };
}

function podSpec(pool: Pool, labels: object, settings: ResponderSettings): object {
  const { imagePullSecrets = [], template } = settings;
  const { tolerations = [], priorityClassName = 'system-cluster-critical' } = template;
  return {
    serviceAccountName: 'holdfast-responder',
    // only one of the containers gets the token
    automountServiceAccountToken: false,
    priorityClassName,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: 10,
    ...(imagePullSecrets.length > 0 && { imagePullSecrets }),
    nodeSelector: { 'kubernetes.io/os': 'linux', ...template.nodeSelector, ...pool.nodeSelector },
    ...(tolerations.length > 0 && { tolerations }),
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: 'kubernetes.io/hostname',
        whenUnsatisfiable: 'DoNotSchedule',
        labelSelector: { matchLabels: labels },
      },
    ],
    securityContext: { fsGroup: USER, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [tableContainer(pool, settings), packetsContainer(settings)],
    volumes: [
      { name: 'socket', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
      { name: 'token', projected: { defaultMode: 0o440, sources: tokenSources() } },
    ],
  };
}

/** Reads the cluster, and gives the table to the other container. It has no capability. */
function tableContainer(pool: Pool, settings: ResponderSettings) {
  const { image, imagePullPolicy, maxStalenessMs, logLevel, template } = settings;
  return {
    name: 'table',
    image,
    ...(imagePullPolicy !== undefined && { imagePullPolicy }),
    args: [
      'responder',
      `--pool=${pool.name}`,
      `--packet-socket=${SOCKET}`,
      `--max-staleness=${maxStalenessMs}ms`,
      `--log-level=${logLevel}`,
      '--health-bind-address=:8081',
      '--metrics-bind-address=:8443',
    ],
    env: [fieldVariable('POD_NAME', 'metadata.name'), fieldVariable('POD_NAMESPACE', 'metadata.namespace')],
    ports: [
      { name: 'metrics', containerPort: 8443 },
      { name: 'health', containerPort: 8081 },
    ],
    livenessProbe: { httpGet: { path: '/healthz', port: 'health' }, ...LIVENESS_TIMES },
    readinessProbe: { httpGet: { path: '/readyz', port: 'health' }, periodSeconds: 5, timeoutSeconds: 5 },
    resources: added({ requests: { cpu: '20m', memory: '96Mi' }, limits: { memory: '256Mi' } }, template.resources),
    securityContext: { runAsNonRoot: true, runAsUser: USER, runAsGroup: USER, ...hardened([]) },
    volumeMounts: [
      { name: 'socket', mountPath: SOCKET_DIRECTORY },
      { name: 'token', mountPath: TOKEN_DIRECTORY, readOnly: true },
    ],
  };
}

/** Reads packets of guests. It has no credentials, and only root may have a capability in Kubernetes. */
function packetsContainer({ image, imagePullPolicy, template }: ResponderSettings) {
  return {
    name: 'packets',
    image,
    ...(imagePullPolicy !== undefined && { imagePullPolicy }),
    command: [PACKETS_PROGRAM],
    args: [`--socket=${SOCKET}`],
    resources: added(
      { requests: { cpu: '20m', memory: '32Mi' }, limits: { memory: '128Mi' } },
      template.packetsResources,
    ),
    securityContext: { runAsUser: 0, runAsGroup: USER, ...hardened(['NET_RAW']) },
    volumeMounts: [{ name: 'socket', mountPath: SOCKET_DIRECTORY }],
  };
}

function added(defaults: Required<Resources>, { requests, limits }: Resources = {}): Resources {
  return { requests: { ...defaults.requests, ...requests }, limits: { ...defaults.limits, ...limits } };
}

function hardened(capabilities: readonly string[]) {
  const added = capabilities.length > 0 ? { add: capabilities } : {};
  return { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'], ...added } };
}

/** What the kubelet mounts for a pod that does not opt out. */
function tokenSources(): object[] {
  return [
    { serviceAccountToken: { path: 'token', expirationSeconds: 3607 } },
    { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
    {
      downwardAPI: { items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }] },
    },
  ];
}

function fieldVariable(name: string, fieldPath: string): object {
  return { name, valueFrom: { fieldRef: { fieldPath } } };
}
