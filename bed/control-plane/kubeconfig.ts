import { rename, writeFile } from 'node:fs/promises';
import { stringify } from 'yaml';

/** URL and CA of an API server. */
export interface ClusterAccess {
  readonly server: string;
  /** PEM in base64. */
  readonly caBundle: string;
}

/** Writes a kubeconfig with `token` atomically. @returns its path */
export async function writeKubeconfig(path: string, cluster: ClusterAccess, token: string): Promise<string> {
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'bed', cluster: { server: cluster.server, 'certificate-authority-data': cluster.caBundle } }],
    users: [{ name: 'user', user: { token } }],
    contexts: [{ name: 'bed', context: { cluster: 'bed', user: 'user' } }],
    'current-context': 'bed',
  };
  await writeFile(`${path}.new`, stringify(config), { mode: 0o600 });
  await rename(`${path}.new`, path);
  return path;
}
