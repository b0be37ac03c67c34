import { isIP } from 'node:net';
import { MUTATING_WEBHOOK_CONFIGURATIONS, SECRETS } from '../kube/resources.js';
import { parseBindAddress } from '../process/bind-address.js';
import type { WebhookConfig } from '../process/config.js';
import type { ProcessContext } from '../process/context.js';
import { gateByFlag, gateByKubeVirt } from '../process/gates.js';
import type { Part } from '../process/part.js';
import { ALL_NAMESPACES, CLAIMS, KUBEVIRT_OBJECTS, NADS, VMIS, VMS } from '../process/watched.js';
import { Admission } from './admission.js';
import { CertificateDirectory } from './certificate-dir.js';
import type { CertificateSource } from './certificate-source.js';
import { CertificateStore } from './certificate-store.js';
import { Lookup } from './lookup.js';
import { type WebhookMetrics, createWebhookMetrics } from './metrics.js';
import { AdmissionServer } from './server.js';

const MUTATE_LAUNCHER_PODS = '/mutate-launcher-pods';

/** Launcher pods → references to their claims. Any number of replicas serve at once. */
export function createWebhook(context: ProcessContext, config: WebhookConfig): Part & { readonly port: number } {
  return new Webhook(context, config);
}

class Webhook implements Part {
  readonly name = 'webhook';
  readonly #context: ProcessContext;
  readonly #metrics: WebhookMetrics;
  readonly #server: AdmissionServer;
  readonly #certificates: CertificateSource;

  constructor(context: ProcessContext, config: WebhookConfig) {
    const log = context.log.child({ part: this.name });
    this.#context = { ...context, log };
    this.#metrics = createWebhookMetrics(context.metrics);
    this.#server = this.#createServer(config);
    this.#certificates =
      config.webhookCertDir === undefined ? this.#keepSecret(config) : this.#followDirectory(config.webhookCertDir);
  }

  /** The port that is listened on, once started. */
  get port(): number {
    return this.#server.port;
  }

  async start(): Promise<void> {
    this.#context.informers.start();
    this.#certificates.start((pair) => this.#server.use(pair));
    await this.#server.listen();
    this.#context.log.info({ port: this.#server.port }, 'admission reviews are served');
  }

  ready(): string | undefined {
    const { missing } = this.#context.informers;
    if (missing.length > 0) return `not listed yet: ${missing.join(', ')}`;
    return this.#certificates.ready();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#server.stop(), this.#certificates.stop()]);
  }

  #createServer({
    webhookBindAddress,
    tlsMinVersion,
    featureGates,
    featureGatesFromKubevirt,
  }: WebhookConfig): AdmissionServer {
    const { informers, client, clock, log } = this.#context;
    const lookup = new Lookup({
      listers: {
        vmis: informers.get(VMIS).cache,
        vms: informers.get(VMS).cache,
        claims: informers.get(CLAIMS).cache,
        networks: informers.get(NADS).cache,
        namespaces: informers.get(ALL_NAMESPACES).cache,
      },
      client,
      gate: featureGatesFromKubevirt ? gateByKubeVirt(informers.get(KUBEVIRT_OBJECTS).cache) : gateByFlag(featureGates),
      clock,
      onLiveRead: this.#metrics.readLive,
    });
    const admission = new Admission({ lookup, log, metrics: this.#metrics, clock });
    const address = parseBindAddress(webhookBindAddress);
    if (address === undefined) throw new Error('--webhook-bind-address is 0: the webhook has to listen somewhere');
    return new AdmissionServer({
      address,
      minVersion: tlsMinVersion,
      routes: { [MUTATE_LAUNCHER_PODS]: (body) => this.#answer(admission, body) },
      log,
      onRejected: this.#metrics.rejected,
      clock,
    });
  }

  /** Before the caches are filled, nothing that they say would be true. */
  async #answer(admission: Admission, body: unknown): Promise<string> {
    if (this.#context.informers.missing.length > 0) await this.#context.informers.synced();
    return admission.answer(body);
  }

  #followDirectory(directory: string): CertificateSource {
    const { clock, log } = this.#context;
    return new CertificateDirectory({ directory, clock, log, metrics: this.#metrics });
  }

  #keepSecret(config: WebhookConfig): CertificateSource {
    const { client, clock, random, log, informers } = this.#context;
    const secret = { namespace: config.namespace, name: `${config.webhookServiceName}-tls` };
    const configuration = config.webhookConfiguration;
    const names = namesOf(config);
    const store = new CertificateStore({
      client,
      secret,
      configuration,
      names,
      clock,
      random,
      log,
      metrics: this.#metrics,
    });
    const onlyNames = ({
      metadata: { name, namespace, resourceVersion = '' },
    }: {
      metadata: { name: string; namespace?: string; resourceVersion?: string };
    }) => ({
      metadata: { name, resourceVersion, ...(namespace === undefined ? {} : { namespace }) },
    });
    informers
      .get({
        resource: SECRETS,
        namespace: secret.namespace,
        fieldSelector: `metadata.name=${secret.name}`,
        shrink: onlyNames,
      })
      .onChange(() => store.wake());
    informers
      .get({
        resource: MUTATING_WEBHOOK_CONFIGURATIONS,
        fieldSelector: `metadata.name=${configuration}`,
        shrink: onlyNames,
      })
      .onChange(() => store.wake());
    return store;
  }
}

/** Under which names API servers call: the Service's, and the host of the URL where one is given. */
function namesOf({ webhookServiceName, namespace, webhookUrl }: WebhookConfig): string[] {
  const service = `${webhookServiceName}.${namespace}.svc`;
  const host = webhookUrl === undefined ? undefined : new URL(webhookUrl).hostname.replace(/^\[(.*)\]$/, '$1');
  return host === undefined ? [service] : [service, isIP(host) === 0 ? host.toLowerCase() : host];
}
