import { hostname } from 'node:os';
import { parseBindAddress } from '../process/bind-address.js';
import type { TlsVersion } from '../process/config.js';
import type { ProcessContext } from '../process/context.js';
import type { MetricsConfig } from '../process/metrics-config.js';
import type { ReadinessCheck } from '../process/probes.js';
import { CertificateDirectory } from '../tls/certificate-dir.js';
import type { CertificateSource } from '../tls/certificate-source.js';
import { SelfSignedCertificate } from '../tls/self-signed.js';
import { createMonitoringMetrics } from './metrics.js';
import { ScraperAccess } from './scraper-access.js';
import { MetricsServer } from './server.js';

export interface SecureMetrics {
  /** Undefined if metrics are disabled. */
  readonly port: number | undefined;
  /** Never fails: a process works without metrics. Its notice says if there is no certificate. */
  readonly check: ReadinessCheck;
  close(): Promise<void>;
}

/**
 * Serves metrics over HTTPS to clients that the API server allows.
 * @throws {Error} if it cannot listen on the address; names the address
 */
export async function serveSecureMetrics(
  context: Pick<ProcessContext, 'client' | 'clock' | 'log' | 'metrics'>,
  config: MetricsConfig & { readonly tlsMinVersion: TlsVersion },
): Promise<SecureMetrics> {
  const { client, clock } = context;
  const log = context.log.child({ part: 'metrics' });
  const address = parseBindAddress(config.metricsBindAddress);
  const check = { name: 'metrics', run: () => undefined };
  if (address === undefined) return { port: undefined, check, close: () => Promise.resolve() };
  const metrics = createMonitoringMetrics(context.metrics);
  const access = new ScraperAccess({ client, clock, log, audiences: config.metricsAudiences });
  const { registry } = context.metrics;
  const server = new MetricsServer({ address, minVersion: config.tlsMinVersion, access, registry, metrics, log });
  const { metricsCertDir: directory } = config;
  const certificates: CertificateSource =
    directory === undefined
      ? new SelfSignedCertificate({ names: ['localhost', '127.0.0.1', hostname()], clock, log, metrics })
      : new CertificateDirectory({ directory, clock, log, metrics });
  await server.listen();
  certificates.start((pair) => server.setCertificate(pair));
  log.info({ metricsPort: server.port }, 'metrics are served over HTTPS');
  return {
    port: server.port,
    check: { ...check, notice: () => certificates.ready() },
    close: async () => {
      await Promise.all([server.close(), certificates.stop()]);
    },
  };
}
