import type { Client } from '../../../kube/client.js';
import { PODS } from '../../../kube/resources.js';
import { until } from '../../processes/wait.js';
import { ROLE_BINDINGS } from './role.js';
import { serviceAccountClient } from './service-account.js';

/** A service account that has a ClusterRole in its namespace only. The caller closes the client's transport. */
export async function namespaceUser(
  admin: { client: Client; kubeconfig: string },
  account: { namespace: string; name: string },
  clusterRole: 'view' | 'cluster-admin',
): Promise<Client> {
  const { namespace } = account;
  const client = await serviceAccountClient(admin, account);
  await admin.client.create(ROLE_BINDINGS, {
    metadata: account,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: clusterRole },
    subjects: [{ kind: 'ServiceAccount', ...account }],
  } as never);
  // the API server applies a binding some time after it has stored it
  await until(`${account.name} to have its rights`, () => client.list(PODS, { namespace }));
  return client;
}
