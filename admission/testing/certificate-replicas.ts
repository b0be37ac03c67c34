import { X509Certificate } from 'node:crypto';
import { Client } from '../../kube/client.js';
import { silentLogger } from '../../kube/log.js';
import type { Resource } from '../../kube/resource.js';
import { MUTATING_WEBHOOK_CONFIGURATIONS, type Secret, type WebhookConfigurationObject } from '../../kube/resources.js';
import { splitPem } from '../../tls/pem.js';
import type { ServingPair } from '../../tls/certificate-source.js';
import { CertificateStore } from '../certificate-store.js';
import { type PemKeyPair, generateKeys } from '../../tls/certificates.js';
import { ManualClock } from '../../test/manual-clock.js';
import { MemoryApi } from '../../test/memory-api.js';

/** When the clock starts. */
export const START = Date.UTC(2030, 0, 1);
/** The path of the Secret. */
export const SECRET = '/api/v1/namespaces/holdfast-system/secrets/holdfast-webhook-tls';

/** Making RSA keys takes long: these go round. */
let keys: readonly PemKeyPair[] = [];

export async function makeKeys(): Promise<void> {
  keys = await Promise.all(Array.from({ length: 5 }, generateKeys));
}

/** Replicas of a server on one API server and one clock. */
export class CertificateReplicas {
  readonly api = new MemoryApi();
  readonly clock = new ManualClock(START);
  readonly stores: CertificateStore[] = [];
  #used = 0;
  /** What each replica shows. */
  readonly served: (ServingPair | undefined)[] = [];

  readonly #resource: Resource<WebhookConfigurationObject>;
  /** Its path. */
  readonly configuration: string;

  constructor(resource = MUTATING_WEBHOOK_CONFIGURATIONS) {
    this.#resource = resource;
    this.configuration = `/apis/admissionregistration.k8s.io/v1/${resource.plural}/holdfast-webhook`;
    const webhooks = ['a', 'b'].map((name) => ({ name, clientConfig: { service: { name: 'holdfast-webhook' } } }));
    const configuration = { metadata: { name: 'holdfast-webhook', resourceVersion: '1' }, webhooks };
    this.api.objects.set(this.configuration, configuration);
    // as it is shipped
    this.api.objects.set(SECRET, {
      metadata: { namespace: 'holdfast-system', name: 'holdfast-webhook-tls', resourceVersion: '0' },
    });
  }

  start(api: MemoryApi = this.api): void {
    const index = this.stores.length;
    const store = new CertificateStore({
      client: new Client(api),
      secret: { namespace: 'holdfast-system', name: 'holdfast-webhook-tls' },
      configuration: { resource: this.#resource, name: 'holdfast-webhook' },
      moreConfigurations: [{ resource: this.#resource, name: 'another' }],
      names: ['holdfast-webhook.holdfast-system.svc'],
      clock: this.clock,
      random: () => 0,
      log: silentLogger,
      metrics: { certificateExpires: () => undefined },
      generateKeys: () => Promise.resolve(keys[this.#used++ % keys.length]!),
    });
    this.stores.push(store);
    store.start((pair) => (this.served[index] = pair));
  }

  /** Everything that is due now is done. */
  async settle(): Promise<void> {
    await this.clock.untilAlarmsSet(this.stores.length);
    // who lost a race waits for a moment and looks again
    while ((this.clock.next ?? Infinity) <= this.clock.now() + 1000) await this.advanceTo(this.clock.next ?? 0);
  }

  async advanceTo(to: number): Promise<void> {
    this.clock.advanceTo(to);
    await this.clock.untilAlarmsSet(this.stores.length);
  }

  /** Everybody looks again after that time, and at what it leads to. */
  async advance(ms: number): Promise<void> {
    await this.advanceTo(this.clock.now() + ms);
    await this.settle();
  }

  async stop(): Promise<void> {
    await Promise.all(this.stores.map((store) => store.stop()));
  }

  get secret(): Secret {
    return this.api.objects.get(SECRET) as Secret;
  }

  /** Of the other configuration that leads here. */
  get otherConfiguration(): string {
    return this.configuration.replace(/[^/]+$/, 'another');
  }

  get bundles(): string[][] {
    return this.bundlesOf(this.configuration);
  }

  bundlesOf(configuration: string): string[][] {
    const { webhooks = [] } = this.api.objects.get(configuration) as WebhookConfigurationObject;
    return webhooks.map(({ clientConfig }) => splitPem(Buffer.from(clientConfig.caBundle ?? '', 'base64').toString()));
  }

  /** An API server that trusts these CAs would talk to this replica. */
  isTrusted(replica: number, bundle = this.bundles[0] ?? []): boolean {
    const serving = new X509Certificate(this.served[replica]?.cert ?? '');
    return bundle.some((ca) => serving.verify(new X509Certificate(ca).publicKey));
  }

  writes(from = 0): string[] {
    const written = this.api.requests.slice(from).filter(({ method }) => method !== 'GET');
    return written.map(({ method, path }) => `${method} ${path.split('/').at(-2) ?? ''}`);
  }
}
