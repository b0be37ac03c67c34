import { isOnePort } from '../listening.js';
import { type ConfigOf, BIND_ADDRESS, BOOLEAN, DIRECTORY_PATH, settings, textList } from './setting.js';

/** How metrics are served. */
export const METRICS_SETTINGS = settings({
  metricsBindAddress: {
    flag: 'metrics-bind-address',
    description: 'address for /metrics; 0 disables it. Without --metrics-secure it may be that of the probes',
    defaultValue: ':8443',
    ...BIND_ADDRESS,
  },
  metricsSecure: {
    flag: 'metrics-secure',
    isValueOptional: true,
    description:
      'serve metrics over HTTPS, and only to users who may get /metrics: the API server reviews their bearer tokens. false: over HTTP, to everyone',
    defaultValue: true,
    ...BOOLEAN,
  },
  metricsCertDir: {
    flag: 'metrics-cert-dir',
    description: 'directory with tls.crt and tls.key for metrics; read again when they change',
    defaultValue: undefined,
    defaultText: 'none, the process creates and renews a self-signed certificate',
    ...DIRECTORY_PATH,
  },
  metricsAudiences: {
    flag: 'metrics-audiences',
    placeholder: 'audience,...',
    description: 'audiences for tokens that read metrics; a token must be for one of them',
    defaultValue: Object.freeze([]),
    defaultText: "the API server's own",
    parse: textList('audiences'),
  },
});
export type MetricsConfig = ConfigOf<typeof METRICS_SETTINGS>;

/** @returns why the values cannot be combined; undefined if they can */
export function findMetricsConfigProblem(
  config: Partial<MetricsConfig> & { readonly healthBindAddress?: string },
): string | undefined {
  const {
    metricsBindAddress = '',
    healthBindAddress = '',
    metricsSecure,
    metricsCertDir,
    metricsAudiences = [],
  } = config;
  if (!metricsSecure) {
    const useless = [
      ...(metricsCertDir === undefined ? [] : ['--metrics-cert-dir']),
      ...(metricsAudiences.length === 0 ? [] : ['--metrics-audiences']),
    ];
    if (useless.length === 0) return undefined;
    return `${useless.join(' and ')} ${useless.length === 1 ? 'has' : 'have'} no effect with --metrics-secure=false`;
  }
  if (!isOnePort(metricsBindAddress, healthBindAddress)) return undefined;
  return `--metrics-bind-address and --health-bind-address are both ${healthBindAddress}: metrics need an address of their own, because they are served over HTTPS`;
}
