import { isIP } from 'node:net';
import type { KubeObject } from '../api/meta.js';
import { SECRETS } from '../kube/resources.js';
import type { ProcessContext } from '../process/context.js';
import { CertificateDirectory } from './certificate-dir.js';
import type { CertificateSource } from './certificate-source.js';
import { CertificateStore, type WebhookConfigurationRef } from './certificate-store.js';
import type { AdmissionMetrics } from './metrics.js';

export interface ServingCertificateOptions {
  /** Holds tls.crt and tls.key that somebody else renews. Without it the certificate is made here. */
  directory?: string | undefined;
  /** Of the Service and of the Secret in which the certificate is kept: `<service>-tls`. */
  namespace: string;
  /** The Service whose name the certificate is for. */
  service: string;
  /** Where API servers find us when not by Service; its host is in the certificate. */
  url?: string | undefined;
  /** Whose caBundle is kept true. */
  configuration: WebhookConfigurationRef;
  /** Others that lead to the same server: theirs, too, where they are there. */
  moreConfigurations?: readonly WebhookConfigurationRef[];
  metrics: Pick<AdmissionMetrics, 'certificateEnds'>;
}

/** Where an admission server has its certificate from. What has to be watched for it is asked for now, and started with all else. */
export function createCertificateSource(
  context: ProcessContext,
  { directory, metrics, ...options }: ServingCertificateOptions,
): CertificateSource {
  const { client, clock, random, log, informers } = context;
  if (directory !== undefined) return new CertificateDirectory({ directory, clock, log, metrics });
  const { configuration, moreConfigurations = [], namespace } = options;
  const secret = { namespace, name: `${options.service}-tls` };
  const names = namesOf(options);
  const store = new CertificateStore({
    client,
    secret,
    configuration,
    moreConfigurations,
    names,
    clock,
    random,
    log,
    metrics,
  });
  const secrets = {
    resource: SECRETS,
    namespace,
    fieldSelector: `metadata.name=${secret.name}`,
    shrink: transformToIdentity,
  };
  informers.get(secrets).onChange(() => store.wake());
  for (const { resource, name } of [configuration, ...moreConfigurations]) {
    const watched = { resource, fieldSelector: `metadata.name=${name}`, shrink: transformToIdentity };
    informers.get(watched).onChange(() => store.wake());
  }
  return store;
}

/** Enough to be woken by: what they hold is read live. */
function transformToIdentity({ metadata: { name, namespace, resourceVersion = '' } }: KubeObject): KubeObject {
  return { metadata: { name, resourceVersion, ...(namespace === undefined ? {} : { namespace }) } };
}

/** Under which names API servers call: the Service's, and the host of the URL where one is given. */
function namesOf({
  service,
  namespace,
  url,
}: Pick<ServingCertificateOptions, 'service' | 'namespace' | 'url'>): string[] {
  const name = `${service}.${namespace}.svc`;
  const host = url === undefined ? undefined : new URL(url).hostname.replace(/^\[(.*)\]$/, '$1');
  return host === undefined ? [name] : [name, isIP(host) === 0 ? host.toLowerCase() : host];
}
