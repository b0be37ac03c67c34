import { join } from 'node:path';
import type { Client } from '../../kube/client.js';
import type { ObjectRef, Resource } from '../../kube/resource.js';
import { writeKubeconfig, type ClusterAccess } from './kubeconfig.js';

export const SERVICE_ACCOUNTS: Resource = {
  group: '',
  version: 'v1',
  plural: 'serviceaccounts',
  kind: 'ServiceAccount',
  namespaced: true,
};
const TOKEN_SECONDS = 24 * 3600;

/** A token of an existing service account, good for a day. */
export async function requestToken(client: Client, account: ObjectRef): Promise<string> {
  const request = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: TOKEN_SECONDS },
  };
  const answer = await client.createSubresource(SERVICE_ACCOUNTS, account, 'token', request);
  return (answer as { status: { token: string } }).status.token;
}

/** Where `writeServiceAccountKubeconfig` writes. */
export function serviceAccountKubeconfigPath(folder: string, account: { namespace: string; name: string }): string {
  return join(folder, `${account.namespace}.${account.name}.kubeconfig`);
}

/** Writes the kubeconfig of a service account, with a fresh token, into the work folder. @returns its path */
export async function writeServiceAccountKubeconfig(
  cluster: ClusterAccess & { client: Client; workDir: string },
  account: { namespace: string; name: string },
): Promise<string> {
  const path = serviceAccountKubeconfigPath(cluster.workDir, account);
  return writeKubeconfig(path, cluster, await requestToken(cluster.client, account));
}
