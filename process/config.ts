import { BLOCK_SETTINGS, type BlockConfig } from './block-config.js';
import { CLIENT_SETTINGS, type ClientConfig } from './client-config.js';
import type { NadRightsConfig } from '../api/nad-rights.js';
import { RIGHTS_SETTINGS } from './network-rights-config.js';
import { DEFAULT_FEATURE_GATES, FEATURE_GATE_NAMES, formatFeatureGates, parseFeatureGates } from './feature-gates.js';
import type { FeatureGates } from './feature-gates.js';
import {
  duration,
  oneOf,
  parseBindText,
  parseBoolean,
  parseHttpsUrl,
  parseObjectName,
  parseText,
  wholeNumber,
} from './setting.js';
import type { Settings } from './setting.js';
import { VALIDATION_SETTINGS, type ValidationServerConfig } from './validation-config.js';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type TlsVersion = 'TLSv1.2' | 'TLSv1.3';

/** What every process is told. */
export interface CommonConfig {
  readonly kubeconfig?: string | undefined;
  /** As parseBindAddress reads it. */
  readonly healthBindAddress: string;
  readonly metricsBindAddress: string;
  readonly leaderElect: boolean;
  /** Holdfast's own namespace: of its Lease and its Secret. */
  readonly namespace: string;
  readonly featureGates: FeatureGates;
  /** The gate PersistentIPs follows the KubeVirt object. */
  readonly featureGatesFromKubevirt: boolean;
  readonly logLevel: LogLevel;
}

export interface ControllerConfig extends CommonConfig {
  /** How long claims may wait for an IPAM that honours them, or for an answer of ipam, until an event says so. */
  readonly unhonouredAfterMs: number;
  /** How many workloads are worked on at once. */
  readonly workers: number;
  readonly maxClaimsPerVm: number;
}

export interface WebhookConfig extends CommonConfig, ClientConfig {
  readonly webhookBindAddress: string;
  /** Holds tls.crt and tls.key that somebody else renews. Without it the webhook makes its own certificate. */
  readonly webhookCertDir?: string | undefined;
  readonly tlsMinVersion: TlsVersion;
  /** The MutatingWebhookConfiguration whose caBundle is kept true. */
  readonly webhookConfiguration: string;
  /** Another one that leads here, by which pods come to ask for addresses. */
  readonly webhookCapacityConfiguration: string;
  /** The Service whose name the certificate is for. */
  readonly webhookServiceName: string;
  /** Where the API server finds the webhook when not by Service; its host is in the certificate. */
  readonly webhookUrl?: string | undefined;
}

export interface IpamConfig
  extends
    CommonConfig,
    BlockConfig,
    ClientConfig,
    NadRightsConfig,
    ValidationServerConfig,
    Pick<ControllerConfig, 'unhonouredAfterMs'> {
  /** How many claims are worked on at once. */
  readonly claimWorkers: number;
  /** For how long agents may answer from their caches while the API server is away; a released address cools down for twice that. */
  readonly maxStalenessMs: number;
  /** How long a lease must look leaked before it is collected. */
  readonly collectAfterMs: number;
  /** Between two writes of one pool's counts, for up to 60 pools. */
  readonly poolStatusIntervalMs: number;
  readonly tlsMinVersion: TlsVersion;
}

/** Controller, webhook and IPAM in one. */
export type AllConfig = ControllerConfig & WebhookConfig & IpamConfig;

const HOUR_MS = 3_600_000;
export const COMMON_SETTINGS: Settings<CommonConfig> = {
  kubeconfig: {
    flag: 'kubeconfig',
    placeholder: 'file',
    description: 'kubeconfig file of the cluster',
    defaultValue: undefined,
    defaultText: 'KUBECONFIG, the service account of the pod, ~/.kube/config',
    parse: parseText,
  },
  namespace: {
    flag: 'namespace',
    placeholder: 'name',
    description: 'namespace of Holdfast itself: of its Lease and its Secret',
    defaultValue: 'holdfast-system',
    alternativeVariable: 'POD_NAMESPACE',
    parse: parseObjectName,
  },
  healthBindAddress: {
    flag: 'health-bind-address',
    placeholder: 'host:port',
    description: 'where /healthz and /readyz are served; 0: nowhere',
    defaultValue: ':8081',
    parse: parseBindText,
  },
  metricsBindAddress: {
    flag: 'metrics-bind-address',
    placeholder: 'host:port',
    description: 'where /metrics is served, which may be the address of the probes; 0: nowhere',
    defaultValue: ':8080',
    parse: parseBindText,
  },
  leaderElect: {
    flag: 'leader-elect',
    placeholder: 'true|false',
    isValueOptional: true,
    description: 'of several replicas only the holder of the Lease works',
    defaultValue: false,
    parse: parseBoolean,
  },
  featureGates: {
    flag: 'feature-gates',
    placeholder: 'Gate=true|false,...',
    description: `what is switched on or off as a whole; gates: ${FEATURE_GATE_NAMES.join(', ')}`,
    defaultValue: DEFAULT_FEATURE_GATES,
    defaultText: formatFeatureGates(DEFAULT_FEATURE_GATES),
    parse: parseFeatureGates,
  },
  featureGatesFromKubevirt: {
    flag: 'feature-gates-from-kubevirt',
    placeholder: 'true|false',
    isValueOptional: true,
    description: "PersistentIPs is on while the KubeVirt object's feature gates list it, whatever --feature-gates says",
    defaultValue: false,
    parse: parseBoolean,
  },
  logLevel: {
    flag: 'log-level',
    placeholder: 'level',
    description: 'debug, info, warn or error',
    defaultValue: 'info',
    parse: oneOf('debug', 'info', 'warn', 'error'),
  },
};

export const CONTROLLER_SETTINGS: Settings<ControllerConfig> = {
  ...COMMON_SETTINGS,
  unhonouredAfterMs: {
    flag: 'unhonoured-after',
    placeholder: 'duration',
    description: 'how long a claim may wait for an IPAM that honours it, or for ipam, until an event says so',
    defaultValue: 60_000,
    defaultText: '60s',
    parse: duration(100, 24 * HOUR_MS),
  },
  workers: {
    flag: 'workers',
    placeholder: 'number',
    description: 'how many VMs are worked on at once',
    defaultValue: 64, // a worker mostly waits: for other deletions to share a list of launchers with
    parse: wholeNumber(1, 256),
  },
  maxClaimsPerVm: {
    flag: 'max-claims-per-vm',
    placeholder: 'number',
    description: 'how many claims are made for one VM at most; claims that exist stay',
    defaultValue: 32, // the slots of a PCI bus: no VM that runs has as many interfaces
    parse: wholeNumber(1, 1_024),
  },
};

export const WEBHOOK_SETTINGS: Settings<WebhookConfig> = {
  ...COMMON_SETTINGS,
  ...CLIENT_SETTINGS,
  webhookBindAddress: {
    flag: 'webhook-bind-address',
    placeholder: 'host:port',
    description: 'where admission reviews are served, over HTTPS',
    defaultValue: ':9443',
    parse: parseBindText,
  },
  webhookCertDir: {
    flag: 'webhook-cert-dir',
    placeholder: 'directory',
    description: 'holds tls.crt and tls.key; then no certificate is made and no webhook configuration is changed',
    defaultValue: undefined,
    defaultText: 'the webhook makes and renews its own certificate',
    parse: parseText,
  },
  tlsMinVersion: {
    flag: 'tls-min-version',
    placeholder: 'version',
    description: 'TLSv1.2 or TLSv1.3',
    defaultValue: 'TLSv1.3',
    parse: oneOf('TLSv1.2', 'TLSv1.3'),
  },
  webhookConfiguration: {
    flag: 'webhook-configuration',
    placeholder: 'name',
    description: 'the MutatingWebhookConfiguration whose caBundle is kept true',
    defaultValue: 'holdfast-webhook',
    parse: parseObjectName,
  },
  webhookCapacityConfiguration: {
    flag: 'webhook-capacity-configuration',
    placeholder: 'name',
    description: 'the MutatingWebhookConfiguration by which pods ask for addresses: its caBundle is kept true, too',
    defaultValue: 'holdfast-webhook-capacity',
    parse: parseObjectName,
  },
  webhookServiceName: {
    flag: 'webhook-service-name',
    placeholder: 'name',
    description: 'the Service that leads to the webhook: the name in its certificate',
    defaultValue: 'holdfast-webhook',
    parse: parseObjectName,
  },
  webhookUrl: {
    flag: 'webhook-url',
    placeholder: 'url',
    description: 'where the API server finds the webhook when not by Service',
    defaultValue: undefined,
    defaultText: 'by Service',
    parse: parseHttpsUrl,
  },
};

export const IPAM_SETTINGS: Settings<IpamConfig> = {
  ...COMMON_SETTINGS,
  ...BLOCK_SETTINGS,
  ...CLIENT_SETTINGS,
  ...RIGHTS_SETTINGS,
  ...VALIDATION_SETTINGS,
  tlsMinVersion: WEBHOOK_SETTINGS.tlsMinVersion,
  claimWorkers: {
    flag: 'claim-workers',
    placeholder: 'number',
    description: 'how many claims are worked on at once',
    defaultValue: 64, // a worker mostly waits for the API server
    parse: wholeNumber(1, 256),
  },
  maxStalenessMs: {
    flag: 'max-staleness',
    placeholder: 'duration',
    description:
      'for how long agents may answer from their caches while the API server is away: released addresses cool down for at least twice that',
    defaultValue: 30_000,
    defaultText: '30s',
    parse: duration(100, HOUR_MS),
  },
  collectAfterMs: {
    flag: 'collect-after',
    placeholder: 'duration',
    description: 'how long a lease must look leaked before it is released',
    defaultValue: 60_000,
    defaultText: '60s',
    parse: duration(100, 24 * HOUR_MS),
  },
  unhonouredAfterMs: CONTROLLER_SETTINGS.unhonouredAfterMs,
  poolStatusIntervalMs: {
    flag: 'pool-status-interval',
    placeholder: 'duration',
    description:
      "how often the counts in one pool's status are written at most, for up to 60 pools; with more of them less often. Conditions are written at once",
    defaultValue: 60_000,
    defaultText: '60s',
    parse: duration(1_000, HOUR_MS),
  },
};

export const ALL_SETTINGS: Settings<AllConfig> = { ...CONTROLLER_SETTINGS, ...WEBHOOK_SETTINGS, ...IPAM_SETTINGS };
