import { AUDIT_SETTINGS, BLOCK_SETTINGS, LEAK_SETTINGS, RIGHTS_SETTINGS } from './ipam-config.js';
import { CLIENT_SETTINGS, PRIMARY_NETWORK_SETTINGS, VALIDATION_SETTINGS } from './admission-config.js';
import { DEFAULT_FEATURE_GATES, FEATURE_GATE_NAMES, formatFeatureGates, parseFeatureGates } from './feature-gates.js';
import {
  type ConfigOf,
  BIND_ADDRESS,
  BOOLEAN,
  DIRECTORY_PATH,
  FILE_PATH,
  HTTPS_URL,
  OBJECT_NAME,
  duration,
  oneOf,
  settings,
  wholeNumber,
} from './setting.js';
import { METRICS_SETTINGS } from './metrics-config.js';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type TlsVersion = 'TLSv1.2' | 'TLSv1.3';

const HOUR_MS = 3_600_000;
/** The configuration that every process has. */
export const COMMON_SETTINGS = settings({
  kubeconfig: {
    flag: 'kubeconfig',
    description: 'kubeconfig file for the cluster',
    defaultValue: undefined,
    defaultText: 'KUBECONFIG, the service account of the pod, ~/.kube/config',
    ...FILE_PATH,
  },
  namespace: {
    flag: 'namespace',
    description: "Holdfast's own namespace, with its Leases and Secrets",
    defaultValue: 'holdfast-system',
    alternativeVariable: 'POD_NAMESPACE',
    ...OBJECT_NAME,
  },
  healthBindAddress: {
    flag: 'health-bind-address',
    description: 'address for /healthz and /readyz; 0 disables them',
    defaultValue: ':8081',
    ...BIND_ADDRESS,
  },
  ...METRICS_SETTINGS,
  leaderElect: {
    flag: 'leader-elect',
    isValueOptional: true,
    description: 'elect a leader: only the replica that holds the Lease is active',
    defaultValue: false,
    ...BOOLEAN,
  },
  featureGates: {
    flag: 'feature-gates',
    placeholder: 'Gate=true|false,...',
    description: `feature gates to enable or disable; known gates: ${FEATURE_GATE_NAMES.join(', ')}`,
    defaultValue: DEFAULT_FEATURE_GATES,
    defaultText: formatFeatureGates(DEFAULT_FEATURE_GATES),
    parse: parseFeatureGates,
  },
  featureGatesFromKubevirt: {
    flag: 'feature-gates-from-kubevirt',
    isValueOptional: true,
    description:
      "enable PersistentIPs if the KubeVirt object's feature gates list it, and ignore its value in --feature-gates. While it is closed, controller, webhook and guest do not watch what only new claims need",
    defaultValue: false,
    ...BOOLEAN,
  },
  logLevel: {
    flag: 'log-level',
    placeholder: 'level',
    description: 'debug, info, warn or error',
    defaultValue: 'info',
    parse: oneOf('debug', 'info', 'warn', 'error'),
  },
  tlsMinVersion: {
    flag: 'tls-min-version',
    placeholder: 'version',
    description: 'minimum TLS version of all HTTPS servers, TLSv1.2 or TLSv1.3',
    defaultValue: 'TLSv1.3',
    parse: oneOf('TLSv1.2', 'TLSv1.3'),
  },
});
export type CommonConfig = ConfigOf<typeof COMMON_SETTINGS>;

export const CONTROLLER_SETTINGS = settings({
  ...COMMON_SETTINGS,
  unhonouredAfterMs: {
    flag: 'unhonoured-after',
    description:
      'how long a claim may have no addresses before an event reports that its IPAM ignores it, or that ipam does not answer',
    ...duration('60s', 100, 24 * HOUR_MS),
  },
  workers: {
    flag: 'workers',
    description: 'number of VMs that are reconciled at the same time',
    defaultValue: 64, // a worker mostly waits for other deletions, to share a list of launchers with them
    ...wholeNumber(1, 256),
  },
  maxClaimsPerVm: {
    flag: 'max-claims-per-vm',
    description: 'maximum number of claims that are created for one VM; existing claims stay',
    defaultValue: 32, // the slots of a PCI bus: no running VM has as many interfaces
    ...wholeNumber(1, 1_024),
  },
  restoreWaitMs: {
    flag: 'restore-wait',
    description:
      'how long a claim that was restored from a backup keeps its addresses for its VM; 0s releases it at once',
    ...duration('24h', 0, 14 * 24 * HOUR_MS),
  },
});
export type ControllerConfig = ConfigOf<typeof CONTROLLER_SETTINGS>;

export const WEBHOOK_SETTINGS = settings({
  ...COMMON_SETTINGS,
  ...CLIENT_SETTINGS,
  ...PRIMARY_NETWORK_SETTINGS,
  webhookBindAddress: {
    flag: 'webhook-bind-address',
    description: 'address for admission reviews, over HTTPS',
    defaultValue: ':9443',
    ...BIND_ADDRESS,
  },
  webhookCertDir: {
    flag: 'webhook-cert-dir',
    description:
      'directory with tls.crt and tls.key; if set, no certificate is created and no webhook configuration is changed',
    defaultValue: undefined,
    defaultText: 'none, the webhook creates and renews its own certificate',
    ...DIRECTORY_PATH,
  },
  webhookConfiguration: {
    flag: 'webhook-configuration',
    description: 'MutatingWebhookConfiguration whose caBundle is kept up to date',
    defaultValue: 'holdfast-webhook',
    ...OBJECT_NAME,
  },
  webhookCapacityConfiguration: {
    flag: 'webhook-capacity-configuration',
    description:
      'MutatingWebhookConfiguration that adds capacity requests to pods; its caBundle is also kept up to date',
    defaultValue: 'holdfast-webhook-capacity',
    ...OBJECT_NAME,
  },
  webhookServiceName: {
    flag: 'webhook-service-name',
    description: 'Service of the webhook, whose name is in its certificate',
    defaultValue: 'holdfast-webhook',
    ...OBJECT_NAME,
  },
  webhookUrl: {
    flag: 'webhook-url',
    description: 'URL of the webhook if the API server does not use the Service',
    defaultValue: undefined,
    defaultText: 'none, the Service is used',
    ...HTTPS_URL,
  },
});
export type WebhookConfig = ConfigOf<typeof WEBHOOK_SETTINGS>;

export const IPAM_SETTINGS = settings({
  ...COMMON_SETTINGS,
  ...AUDIT_SETTINGS,
  ...BLOCK_SETTINGS,
  ...CLIENT_SETTINGS,
  ...LEAK_SETTINGS,
  ...RIGHTS_SETTINGS,
  ...VALIDATION_SETTINGS,
  claimWorkers: {
    flag: 'claim-workers',
    description: 'number of claims that are reconciled at the same time',
    defaultValue: 64, // a worker mostly waits for the API server
    ...wholeNumber(1, 256),
  },
  maxStalenessMs: {
    flag: 'max-staleness',
    description:
      'how long agents may answer from their caches while the API server is away; released addresses cool down for at least twice that time',
    ...duration('30s', 100, HOUR_MS),
  },
  unhonouredAfterMs: CONTROLLER_SETTINGS.unhonouredAfterMs,
  poolStatusIntervalMs: {
    flag: 'pool-status-interval',
    description:
      "minimum time between two updates of the counts in a pool's status, for up to 60 pools; longer with more pools. Conditions are updated at once",
    ...duration('60s', 1_000, HOUR_MS),
  },
  maxDerivedPoolMetrics: {
    flag: 'max-derived-pool-metrics',
    description:
      'number of pools derived from NADs that have metrics, at most 10 of one namespace; pools of administrators always have them, unless they set publishMetrics to false',
    defaultValue: 500,
    ...wholeNumber(0, 10_000),
  },
});
export type IpamConfig = ConfigOf<typeof IPAM_SETTINGS>;

/** The configuration of the process that shows free addresses on nodes. */
export const CAPACITY_SETTINGS = settings({
  ...COMMON_SETTINGS,
  maxStalenessMs: IPAM_SETTINGS.maxStalenessMs,
  maxPublishedPools: {
    flag: 'max-published-pools',
    description: 'maximum number of pools whose free addresses nodes show: first those already shown, then the oldest',
    defaultValue: 64, // every resource is in each heartbeat of each node
    ...wholeNumber(1, 1_024),
  },
  publishIntervalMs: {
    flag: 'publish-interval',
    description: 'minimum time between two updates of the free addresses on nodes',
    ...duration('1s', 100, 60_000),
  },
  settleMs: {
    flag: 'publish-settle',
    description: 'maximum time until schedulers see an update: until then, the previous number also counts as used',
    ...duration('3s', 100, 60_000),
  },
  offerTimeoutMs: {
    flag: 'publish-offer-timeout',
    description:
      'how long a node keeps an address for a pending pod that could use it, before another node gets the address',
    ...duration('20s', 100, 600_000), // schedulers retry a pod after at most 10 s
  },
});
export type CapacityConfig = ConfigOf<typeof CAPACITY_SETTINGS>;
