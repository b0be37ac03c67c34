import { DEFAULT_FEATURE_GATES, FEATURE_GATE_NAMES, formatFeatureGates, parseFeatureGates } from './feature-gates.js';
import type { FeatureGates } from './feature-gates.js';
import {
  oneOf,
  parseBindText,
  parseBoolean,
  parseHttpsUrl,
  parseObjectName,
  parseText,
  wholeNumber,
} from './setting.js';
import type { Settings } from './setting.js';

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
  /** How many workloads are worked on at once. */
  readonly workers: number;
}

export interface WebhookConfig extends CommonConfig {
  readonly webhookBindAddress: string;
  /** Holds tls.crt and tls.key that somebody else renews. Without it the webhook makes its own certificate. */
  readonly webhookCertDir?: string | undefined;
  readonly tlsMinVersion: TlsVersion;
  /** The MutatingWebhookConfiguration whose caBundle is kept true. */
  readonly webhookConfiguration: string;
  /** The Service whose name the certificate is for. */
  readonly webhookServiceName: string;
  /** Where the API server finds the webhook when not by Service; its host is in the certificate. */
  readonly webhookUrl?: string | undefined;
}

/** Both processes in one. */
export type AllConfig = ControllerConfig & WebhookConfig;

const COMMON: Settings<CommonConfig> = {
  kubeconfig: {
    flag: 'kubeconfig',
    placeholder: 'file',
    description: 'kubeconfig file of the cluster',
    fallback: undefined,
    fallbackText: 'KUBECONFIG, the service account of the pod, ~/.kube/config',
    parse: parseText,
  },
  namespace: {
    flag: 'namespace',
    placeholder: 'name',
    description: 'namespace of Holdfast itself: of its Lease and its Secret',
    fallback: 'holdfast-system',
    alsoVariable: 'POD_NAMESPACE',
    parse: parseObjectName,
  },
  healthBindAddress: {
    flag: 'health-bind-address',
    placeholder: 'host:port',
    description: 'where /healthz and /readyz are served; 0: nowhere',
    fallback: ':8081',
    parse: parseBindText,
  },
  metricsBindAddress: {
    flag: 'metrics-bind-address',
    placeholder: 'host:port',
    description: 'where /metrics is served, which may be the address of the probes; 0: nowhere',
    fallback: ':8080',
    parse: parseBindText,
  },
  leaderElect: {
    flag: 'leader-elect',
    placeholder: 'true|false',
    bare: true,
    description: 'of several controllers only the holder of the Lease works',
    fallback: false,
    parse: parseBoolean,
  },
  featureGates: {
    flag: 'feature-gates',
    placeholder: 'Gate=true|false,...',
    description: `what is switched on or off as a whole; gates: ${FEATURE_GATE_NAMES.join(', ')}`,
    fallback: DEFAULT_FEATURE_GATES,
    fallbackText: formatFeatureGates(DEFAULT_FEATURE_GATES),
    parse: parseFeatureGates,
  },
  featureGatesFromKubevirt: {
    flag: 'feature-gates-from-kubevirt',
    placeholder: 'true|false',
    bare: true,
    description: "PersistentIPs is on while the KubeVirt object's feature gates list it, whatever --feature-gates says",
    fallback: false,
    parse: parseBoolean,
  },
  logLevel: {
    flag: 'log-level',
    placeholder: 'level',
    description: 'debug, info, warn or error',
    fallback: 'info',
    parse: oneOf('debug', 'info', 'warn', 'error'),
  },
};

export const CONTROLLER_SETTINGS: Settings<ControllerConfig> = {
  ...COMMON,
  workers: {
    flag: 'workers',
    placeholder: 'number',
    description: 'how many VMs are worked on at once',
    fallback: 64, // a worker mostly waits: for other deletions to share a list of launchers with
    parse: wholeNumber(1, 256),
  },
};

export const WEBHOOK_SETTINGS: Settings<WebhookConfig> = {
  ...COMMON,
  webhookBindAddress: {
    flag: 'webhook-bind-address',
    placeholder: 'host:port',
    description: 'where admission reviews are served, over HTTPS',
    fallback: ':9443',
    parse: parseBindText,
  },
  webhookCertDir: {
    flag: 'webhook-cert-dir',
    placeholder: 'directory',
    description: 'holds tls.crt and tls.key; then no certificate is made and no webhook configuration is changed',
    fallback: undefined,
    fallbackText: 'the webhook makes and renews its own certificate',
    parse: parseText,
  },
  tlsMinVersion: {
    flag: 'tls-min-version',
    placeholder: 'version',
    description: 'TLSv1.2 or TLSv1.3',
    fallback: 'TLSv1.3',
    parse: oneOf('TLSv1.2', 'TLSv1.3'),
  },
  webhookConfiguration: {
    flag: 'webhook-configuration',
    placeholder: 'name',
    description: 'the MutatingWebhookConfiguration whose caBundle is kept true',
    fallback: 'holdfast-webhook',
    parse: parseObjectName,
  },
  webhookServiceName: {
    flag: 'webhook-service-name',
    placeholder: 'name',
    description: 'the Service that leads to the webhook: the name in its certificate',
    fallback: 'holdfast-webhook',
    parse: parseObjectName,
  },
  webhookUrl: {
    flag: 'webhook-url',
    placeholder: 'url',
    description: 'where the API server finds the webhook when not by Service',
    fallback: undefined,
    fallbackText: 'by Service',
    parse: parseHttpsUrl,
  },
};

export const ALL_SETTINGS: Settings<AllConfig> = { ...CONTROLLER_SETTINGS, ...WEBHOOK_SETTINGS };
