import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeAuthority, makeClientCertificate } from '../../test/https/certificate.js';

/**
 * Makes the API server call webhooks with a client certificate, as docs/how-to/install.md shows it.
 * @param folder for the files that the API server reads
 * @param server host name of the webhook's Service
 * @returns flags of kube-apiserver
 */
export async function identifyApiServer(folder: string, server: string): Promise<string[]> {
  const authority = makeAuthority('webhook-clients');
  const client = makeClientCertificate(authority, 'kube-apiserver');
  const user = { 'client-certificate': join(folder, 'client.crt'), 'client-key': join(folder, 'client.key') };
  const kubeConfigFile = join(folder, 'webhooks.kubeconfig');
  const plugins = ['MutatingAdmissionWebhook', 'ValidatingAdmissionWebhook'].map((name) => ({
    name,
    configuration: { apiVersion: 'apiserver.config.k8s.io/v1', kind: 'WebhookAdmissionConfiguration', kubeConfigFile },
  }));
  const files = {
    'ca.crt': authority.cert,
    'client.crt': client.cert,
    'client.key': client.key,
    'webhooks.kubeconfig': JSON.stringify({ apiVersion: 'v1', kind: 'Config', users: [{ name: server, user }] }),
    'admission.yaml': JSON.stringify({
      apiVersion: 'apiserver.config.k8s.io/v1',
      kind: 'AdmissionConfiguration',
      plugins,
    }),
  };
  for (const [file, content] of Object.entries(files)) await writeFile(join(folder, file), content, { mode: 0o600 });
  return [`--admission-control-config-file=${join(folder, 'admission.yaml')}`];
}
