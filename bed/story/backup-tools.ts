import type { KubeObject } from '../../api/meta.js';
import { EXCLUDE_FROM_BACKUP_LABEL, VELERO_RESTORE_STATUS } from '../../api/names.js';
import type { Client } from '../../kube/client.js';
import { isConflict } from '../../kube/errors.js';
import { type Resource, clusterResource } from '../../kube/resource.js';
import {
  IPAM_CLAIMS,
  NETWORK_ATTACHMENT_DEFINITIONS,
  SECRETS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
} from '../../kube/resources.js';
import { until } from '../processes/wait.js';
import type { ResourceModifiers } from './resource-modifiers.js';
import type { PolicyRule } from './users/role.js';
import { serviceAccountClient } from './users/service-account.js';

const RBAC = 'rbac.authorization.k8s.io/v1';
const CLUSTER_ROLES = clusterResource(RBAC, 'clusterroles', 'ClusterRole');
const CLUSTER_ROLE_BINDINGS = clusterResource(RBAC, 'clusterrolebindings', 'ClusterRoleBinding');
const ALL_RIGHTS: readonly PolicyRule[] = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }];
/** The order in which Velero restores these kinds: Secrets have a priority, and those without one are sorted by name. */
const KINDS: readonly Resource[] = [
  SECRETS,
  IPAM_CLAIMS,
  NETWORK_ATTACHMENT_DEFINITIONS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
];

/** The saved objects of one namespace, in the order in which they are restored. */
export type Backup = readonly { resource: Resource; object: KubeObject }[];

/**
 * Saves the objects of a namespace that are not being deleted, as Velero without those that have its label. VMIs that a VM owns are left out, as by
 * kubevirt-velero-plugin.
 */
export async function backUp(client: Client, namespace: string): Promise<Backup> {
  const saved: { resource: Resource; object: KubeObject }[] = [];
  for (const resource of KINDS) {
    const { items } = await client.list(resource, { namespace });
    for (const object of items) {
      const { deletionTimestamp, ownerReferences = [], labels } = object.metadata;
      if (labels?.[EXCLUDE_FROM_BACKUP_LABEL] === 'true') continue;
      const isOfVm = resource === VIRTUAL_MACHINE_INSTANCES && ownerReferences.length > 0;
      if (deletionTimestamp === undefined && !isOfVm) saved.push({ resource, object });
    }
  }
  return saved;
}

export interface RestoreOptions {
  /** Default: all. */
  kinds?: readonly Resource[];
  modifiers?: ResourceModifiers;
}

/** Restores backups as Velero 1.16 does. */
export class Velero {
  readonly #admin: Client;
  readonly #client: Client;
  readonly #role: string;

  private constructor(admin: Client, client: Client, role: string) {
    this.#admin = admin;
    this.#client = client;
    this.#role = role;
  }

  /**
   * @param namespace the namespace of its service account
   * @param rules its rights in the cluster. Default: those of a cluster administrator, which Velero has
   */
  static async install(
    admin: { client: Client; kubeconfig: string },
    namespace: string,
    rules = ALL_RIGHTS,
  ): Promise<Velero> {
    const client = await serviceAccountClient(admin, { namespace, name: 'velero' });
    const name = `velero-${namespace}`;
    await admin.client.create(CLUSTER_ROLES, { metadata: { name }, rules } as never);
    await admin.client.create(CLUSTER_ROLE_BINDINGS, {
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ kind: 'ServiceAccount', namespace, name: 'velero' }],
    } as never);
    await until('Velero to have its rights', () => client.list(IPAM_CLAIMS, { namespace }));
    return new Velero(admin.client, client, name);
  }

  async remove(): Promise<void> {
    await this.#client.transport.close();
    for (const resource of [CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES]) {
      await this.#admin.delete(resource, { name: this.#role });
    }
  }

  /** Restores objects into a namespace. One that exists is left alone. */
  async restore(backup: Backup, namespace: string, { kinds = KINDS, modifiers }: RestoreOptions = {}): Promise<void> {
    for (const { resource, object } of backup) {
      if (!kinds.includes(resource)) continue;
      const changed = modifiers?.apply(`${resource.plural}.${resource.group}`, object) ?? object;
      await this.#restore(resource, changed, namespace);
    }
  }

  async #restore(resource: Resource, object: KubeObject, namespace: string): Promise<void> {
    const { status, ...rest } = object as KubeObject & { status?: object };
    const { name, labels, annotations, finalizers } = object.metadata;
    const metadata = {
      name,
      namespace,
      labels: { ...labels, 'velero.io/backup-name': 'nightly', 'velero.io/restore-name': 'nightly-1' },
      ...(annotations && { annotations }),
      ...(finalizers && { finalizers }),
    };
    if ((await this.#client.find(resource, { namespace, name })) !== undefined) return;
    let created = await this.#client.create(resource, { ...rest, metadata });
    if (annotations?.[VELERO_RESTORE_STATUS] !== 'true' || status === undefined) return;
    for (;;) {
      try {
        await this.#client.replace(resource, { ...created, status } as KubeObject, { subresource: 'status' });
        return;
      } catch (error) {
        if (!isConflict(error)) throw error;
        created = await this.#client.get(resource, { namespace, name });
      }
    }
  }
}
