import { rename, writeFile } from 'node:fs/promises';
import { stringify } from 'yaml';

/** URL and CA of an API server. */
export interface ClusterAccess {
  readonly server: string;
  /** PEM in base64. */
  readonly caBundle: string;
}

/** How a user is known: by a token, or by a certificate with its key, both PEM. */
type Credential = string | { readonly certificate: string; readonly privateKey: string };

/** Writes a kubeconfig atomically. @returns its path */
export async function writeKubeconfig(path: string, cluster: ClusterAccess, credential: Credential): Promise<string> {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const user =
    typeof credential === 'string'
      ? { token: credential }
      : { 'client-certificate-data': base64(credential.certificate), 'client-key-data': base64(credential.privateKey) };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'bed', cluster: { server: cluster.server, 'certificate-authority-data': cluster.caBundle } }],
    users: [{ name: 'user', user }],
    contexts: [{ name: 'bed', context: { cluster: 'bed', user: 'user' } }],
    'current-context': 'bed',
  };
  await writeFile(`${path}.new`, stringify(config), { mode: 0o600 });
  await rename(`${path}.new`, path);
  return path;
}
