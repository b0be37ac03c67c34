import type { Manifest } from '../../bed/control-plane/objects.js';

const RBAC = 'rbac.authorization.k8s.io';

/** A person's right to a role in one namespace, as the administrator of that namespace grants it. */
export function namespacedRoleBindingOf(user: string, role: string, namespace: string): Manifest {
  return { ...roleBindingOf(user, role), kind: 'RoleBinding', metadata: { name: `${user}-${role}`, namespace } };
}

/** A person's right to a role in all namespaces, as an administrator of the cluster grants it. */
export function roleBindingOf(user: string, role: string): Manifest {
  return {
    apiVersion: `${RBAC}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name: user },
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: role },
    subjects: [{ apiGroup: RBAC, kind: 'User', name: user }],
  };
}
