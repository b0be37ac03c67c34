import { X509Certificate } from 'node:crypto';
import { Client } from '../../kube/client.js';
import { silentLogger } from '../../kube/log.js';
import type { Resource } from '../../kube/resource.js';
import {
  MUTATING_WEBHOOK_CONFIGURATIONS,
  SECRETS,
  type Secret,
  type WebhookConfigurationObject,
} from '../../kube/resources.js';
import { splitPem } from '../../tls/pem.js';
import type { ServingPair } from '../../tls/certificate-source.js';
import { CertificateStore } from '../certificate-store.js';
import { type PemKeyPair, generateKeys } from '../../tls/certificates.js';
import { ManualClock } from '../../test/manual-clock.js';
import { MemoryTransport } from '../../kube/testing/memory-transport.js';

/** When the clock starts. */
export const START = Date.UTC(2030, 0, 1);
export const SECRET = { namespace: 'holdfast-system', name: 'holdfast-webhook-tls' };

/** Making RSA keys takes long: these go round. */
let keys: readonly PemKeyPair[] = [];

/** The stores of all replicas of the current test. */
const started: CertificateStore[] = [];

/** Gives each test of the suite new replicas, and stops all that it started. */
export function useReplicas(suite: Mocha.Suite, onCreate: (replicas: CertificateReplicas) => void): void {
  suite.timeout(30_000); // RSA keys
  before(async () => (keys = await Promise.all(Array.from({ length: 5 }, generateKeys))));
  beforeEach(() => onCreate(new CertificateReplicas()));
  afterEach(() => Promise.all(started.splice(0).map((store) => store.stop())));
}

/** Replicas of a server on one API server and one clock. */
export class CertificateReplicas {
  readonly api = new MemoryTransport();
  readonly clock = new ManualClock(START);
  readonly stores: CertificateStore[] = [];
  #used = 0;
  /** What each replica shows. */
  readonly served: (ServingPair | undefined)[] = [];

  readonly #resource: Resource<WebhookConfigurationObject>;

  constructor(resource = MUTATING_WEBHOOK_CONFIGURATIONS) {
    this.#resource = resource;
    const webhooks = ['a', 'b'].map((name) => ({ name, clientConfig: { service: { name: 'holdfast-webhook' } } }));
    this.putConfiguration({ metadata: { name: 'holdfast-webhook' }, webhooks });
    // as it is shipped
    this.api.tracker.put(SECRETS, { metadata: SECRET });
  }

  /**
   * @param aheadMs how much later than the clock of the others that of this replica is
   * @param hosts names besides that of the Service
   */
  start({ aheadMs = 0, hosts = [] }: { aheadMs?: number; hosts?: string[] } = {}): void {
    const { clock } = this;
    const index = this.stores.length;
    const store = new CertificateStore({
      client: new Client(this.api),
      secret: SECRET,
      configuration: { resource: this.#resource, name: 'holdfast-webhook' },
      moreConfigurations: [{ resource: this.#resource, name: 'another' }],
      names: ['holdfast-webhook.holdfast-system.svc', ...hosts],
      clock: {
        now: () => clock.now(),
        wall: () => clock.wall() + aheadMs,
        sleep: (...options) => clock.sleep(...options),
        setTimer: (...options) => clock.setTimer(...options),
      },
      random: () => 0,
      log: silentLogger,
      metrics: { certificateExpires: () => undefined },
      generateKeys: () => Promise.resolve(keys[this.#used++ % keys.length]!),
    });
    this.stores.push(store);
    started.push(store);
    store.start((pair) => (this.served[index] = pair));
  }

  /** Starts a replica, and lets all replicas do what is due then. */
  async startAndSettle(given?: Parameters<CertificateReplicas['start']>[0]): Promise<void> {
    this.start(given);
    await this.settle();
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

  get secret(): Secret {
    return this.api.tracker.get(SECRETS, SECRET);
  }

  get configuration(): WebhookConfigurationObject {
    return this.api.tracker.get(this.#resource, { name: 'holdfast-webhook' });
  }

  putConfiguration(configuration: WebhookConfigurationObject): void {
    this.api.tracker.put(this.#resource, configuration);
  }

  removeConfiguration(): void {
    this.api.tracker.remove(this.#resource, { name: 'holdfast-webhook' });
  }

  get bundles(): string[][] {
    return this.bundlesOf('holdfast-webhook');
  }

  /** @param name also `another`: of the other configuration that leads here */
  bundlesOf(name: string): string[][] {
    const { webhooks = [] } = this.api.tracker.get(this.#resource, { name });
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
