import type { Client } from '../../../kube/client.js';
import { namespacedResource } from '../../../kube/resource.js';

export const ROLES = namespacedResource('rbac.authorization.k8s.io/v1', 'roles', 'Role');
export const ROLE_BINDINGS = namespacedResource('rbac.authorization.k8s.io/v1', 'rolebindings', 'RoleBinding');

export interface PolicyRule {
  apiGroups: readonly string[];
  resources: readonly string[];
  verbs: readonly string[];
}

/** Gives a service account rights in its own namespace, by a role of its name. */
export async function grantRole(
  client: Client,
  account: { namespace: string; name: string },
  rules: readonly PolicyRule[],
): Promise<void> {
  const metadata = { ...account };
  await client.create(ROLES, { metadata, rules } as never);
  await client.create(ROLE_BINDINGS, {
    metadata,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: account.name },
    subjects: [{ kind: 'ServiceAccount', ...account }],
  } as never);
}
