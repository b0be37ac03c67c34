import { randomBytes } from 'node:crypto';
import type { Client } from '../../kube/client.js';
import { generateKeys, makeAuthority, makeServingCertificate } from '../../tls/certificates.js';
import { type Manifest, resourceOf } from '../control-plane/objects.js';
import { applyManifests } from './manifests.js';

const DAY_MS = 24 * 3_600_000;
const INJECT = 'cert-manager.io/inject-ca-from';

interface Certificate extends Manifest {
  readonly spec: { readonly secretName: string; readonly dnsNames: readonly string[] };
}

interface WebhookConfiguration extends Manifest {
  readonly webhooks: readonly object[];
}

/** Does what cert-manager does with shipped objects, without its kinds: one CA signs all certificates, with RSA keys. */
export class SimulatedCertManager {
  readonly #client: Client;
  readonly #authority: { cert: string; key: string };

  private constructor(client: Client, authority: { cert: string; key: string }) {
    this.#client = client;
    this.#authority = authority;
  }

  static async create(client: Client): Promise<SimulatedCertManager> {
    const input = await newInput();
    return new SimulatedCertManager(client, { cert: makeAuthority(input), key: input.keys.privateKey });
  }

  /** Writes the Secret of a Certificate, with a new key each time. */
  async issue(certificate: Manifest): Promise<void> {
    const { metadata, spec } = certificate as Certificate;
    const input = await newInput();
    const files = {
      'tls.crt': makeServingCertificate(input, this.#authority, spec.dnsNames),
      'tls.key': input.keys.privateKey,
      'ca.crt': this.#authority.cert,
    };
    const { namespace } = metadata;
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: spec.secretName, namespace } };
    await applyManifests(this.#client, [{ ...secret, type: 'kubernetes.io/tls', stringData: files } as Manifest]);
  }

  /** Writes the CA into a webhook configuration that asks for it, as the cainjector does. */
  async inject(configuration: Manifest): Promise<void> {
    if (configuration.metadata.annotations?.[INJECT] === undefined) return;
    const { name } = configuration.metadata;
    const { webhooks } = configuration as WebhookConfiguration;
    const value = Buffer.from(this.#authority.cert).toString('base64');
    const operations = webhooks.map((_webhook, index) => {
      return { op: 'add' as const, path: `/webhooks/${String(index)}/clientConfig/caBundle`, value };
    });
    await this.#client.patch(resourceOf(configuration), { name }, { type: 'json', operations });
  }
}

async function newInput() {
  const now = Date.now();
  const serial = `01${randomBytes(8).toString('hex')}`;
  return { keys: await generateKeys(), notBefore: now - DAY_MS, notAfter: now + 90 * DAY_MS, serial };
}
