import { join } from 'node:path';
import type { Client } from '../../kube/client.js';
import { type ObjectRef, namespacedResource } from '../../kube/resource.js';
import type { Manifest } from './objects.js';
import { writeKubeconfig, type ClusterAccess } from './kubeconfig.js';

export const SERVICE_ACCOUNTS = namespacedResource('v1', 'serviceaccounts', 'ServiceAccount');
const TOKEN_SECONDS = 24 * 3600;

/** Gives a service account a ClusterRole in all namespaces. @param name of the binding */
export function clusterRoleBindingOf(
  account: { namespace: string; name: string },
  role: string,
  name = account.name,
): Manifest {
  const apiGroup = 'rbac.authorization.k8s.io';
  return {
    apiVersion: `${apiGroup}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup, kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'ServiceAccount', ...account }],
  };
}

/** The object to which a token is bound. Policies see the node of such a token. */
export type TokenBinding =
  /** The name of an existing Node. */
  | { readonly node: string }
  /** The name of a pod of the service account, in its namespace. */
  | { readonly pod: string };

/** Requests a token of an existing service account, valid for a day. */
export async function requestToken(client: Client, account: ObjectRef, binding?: TokenBinding): Promise<string> {
  const boundObjectRef = binding && { apiVersion: 'v1', ...boundTo(binding) };
  const request = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: TOKEN_SECONDS, ...(boundObjectRef && { boundObjectRef }) },
  };
  const answer = await client.createSubresource(SERVICE_ACCOUNTS, account, 'token', request);
  return (answer as { status: { token: string } }).status.token;
}

/** The path to which `writeServiceAccountKubeconfig` writes. */
export function serviceAccountKubeconfigPath(
  folder: string,
  account: { namespace: string; name: string },
  binding?: TokenBinding,
): string {
  const parts = [account.namespace, account.name, ...(binding ? [boundTo(binding).name] : [])];
  return join(folder, `${parts.join('.')}.kubeconfig`);
}

/** Writes the kubeconfig of a service account, with a new token, into the work folder. @returns its path */
export async function writeServiceAccountKubeconfig(
  cluster: ClusterAccess & { client: Client; workDir: string },
  account: { namespace: string; name: string },
  binding?: TokenBinding,
): Promise<string> {
  const path = serviceAccountKubeconfigPath(cluster.workDir, account, binding);
  return writeKubeconfig(path, cluster, await requestToken(cluster.client, account, binding));
}

function boundTo(binding: TokenBinding): { kind: string; name: string } {
  return 'node' in binding ? { kind: 'Node', name: binding.node } : { kind: 'Pod', name: binding.pod };
}
