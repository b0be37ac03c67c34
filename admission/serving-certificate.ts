import { isIP } from 'node:net';
import type { KubeObject } from '../api/meta.js';
import { SECRETS } from '../kube/resources.js';
import type { ProcessContext } from '../process/context.js';
import { CertificateDirectory } from '../tls/certificate-dir.js';
import type { CertificateSource } from '../tls/certificate-source.js';
import { CertificateStore, type WebhookConfigurationRef } from './certificate-store.js';
import type { AdmissionMetrics } from './metrics.js';

export interface ServingCertificateOptions {
  /** Directory with tls.crt and tls.key that another program renews. Absent: the certificate is created here. */
  directory?: string | undefined;
  /** Namespace of the Service, and of the Secret with the certificate, `<service>-tls`. */
  namespace: string;
  /** The Service whose name the certificate is for. */
  service: string;
  /** URL of the webhook if API servers do not use the Service; its host is in the certificate. */
  url?: string | undefined;
  /** The configuration whose caBundle is kept up to date. */
  configuration: WebhookConfigurationRef;
  /** Other configurations for the same server, whose caBundle is kept up to date if they exist. */
  moreConfigurations?: readonly WebhookConfigurationRef[];
  metrics: Pick<AdmissionMetrics, 'certificateExpires'>;
}

/** Creates the source of an admission server's certificate, and its informers, which the component starts. */
export function createCertificateSource(
  context: ProcessContext,
  { directory, metrics, ...options }: ServingCertificateOptions,
): CertificateSource {
  const { client, clock, random, log, informers } = context;
  if (directory !== undefined) return new CertificateDirectory({ directory, clock, log, metrics });
  const { configuration, moreConfigurations = [], namespace } = options;
  const secret = { namespace, name: `${options.service}-tls` };
  const settings = { secret, configuration, moreConfigurations, names: namesOf(options) };
  const store = new CertificateStore({ ...settings, client, clock, random, log, metrics });
  const fieldSelector = `metadata.name=${secret.name}`;
  const secrets = { resource: SECRETS, namespace, fieldSelector, transform: transformToIdentity };
  informers.get(secrets).onChange(() => store.wake());
  for (const { resource, name } of [configuration, ...moreConfigurations]) {
    const watched = { resource, fieldSelector: `metadata.name=${name}`, transform: transformToIdentity };
    informers.get(watched).onChange(() => store.wake());
  }
  return store;
}

/** Keeps only the identity, because the objects are read live. */
function transformToIdentity({ metadata: { name, namespace, resourceVersion = '' } }: KubeObject): KubeObject {
  return { metadata: { name, resourceVersion, ...(namespace === undefined ? {} : { namespace }) } };
}

/** Returns the names that API servers use: the Service's, and the host of the URL if there is one. */
function namesOf({ service, namespace, url }: Omit<ServingCertificateOptions, 'metrics'>): string[] {
  const name = `${service}.${namespace}.svc`;
  const host = url === undefined ? undefined : new URL(url).hostname.replace(/^\[(.*)\]$/, '$1');
  return host === undefined ? [name] : [name, isIP(host) === 0 ? host.toLowerCase() : host];
}
