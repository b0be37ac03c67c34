const RBAC = 'rbac.authorization.k8s.io';
const WRITING = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'];

/** A role that allows all writes of claims, and its bindings in the namespace default and in all. */
export function grantClaims(name: string, users: string[], resources: string[]) {
  const roleRef = { apiGroup: RBAC, kind: 'ClusterRole', name };
  const subjects = users.map((user) => ({ apiGroup: RBAC, kind: 'User', name: user }));
  return {
    role: {
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRole',
      metadata: { name },
      rules: [{ apiGroups: ['k8s.cni.cncf.io'], resources, verbs: WRITING }],
    },
    here: {
      apiVersion: `${RBAC}/v1`,
      kind: 'RoleBinding',
      metadata: { name, namespace: 'default' },
      roleRef,
      subjects,
    },
    everywhere: { apiVersion: `${RBAC}/v1`, kind: 'ClusterRoleBinding', metadata: { name }, roleRef, subjects },
  };
}
