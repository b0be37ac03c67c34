import type { ObjectMeta } from '../../api/meta.js';
import { KUBEVIRT_API_VERSION, MIGRATION_LABEL, NETWORKS_ANNOTATION } from '../../api/names.js';
import type { Pod } from '../../api/pod.js';
import type { Client } from '../../kube/client.js';
import { ADDRESS_LEASES, IPAM_CLAIMS, PODS, VIRTUAL_MACHINES } from '../../kube/resources.js';
import { withoutReferences } from './claims.js';
import { namespaceUser } from './users/namespace-user.js';
import { type NetworkOptions, putNetwork } from './networks.js';
import { rejectionMessage } from './rejection.js';
import { grantRole } from './users/role.js';
import { serviceAccountClient } from './users/service-account.js';
import { vmManifest } from './vms/vm.js';
import { until } from '../processes/wait.js';
import { ORDINARY_IMAGE } from '../real-nodes/images/images.js';

/** A user with all rights in one namespace. */
export class Tenant {
  readonly #client: Client;
  readonly #namespace: string;

  private constructor(client: Client, namespace: string) {
    this.#client = client;
    this.#namespace = namespace;
  }

  /** Creates a service account with all rights in the namespace. */
  static async create(admin: { client: Client; kubeconfig: string }, namespace: string): Promise<Tenant> {
    return new Tenant(await namespaceUser(admin, { namespace, name: 'tenant' }, 'cluster-admin'), namespace);
  }

  /** Creates a service account that may only create pods in the namespace. */
  static async createPodCreator(
    admin: { client: Client; kubeconfig: string },
    namespace: string,
    name = 'pod-creator',
  ): Promise<Tenant> {
    const metadata = { name, namespace };
    const client = await serviceAccountClient(admin, metadata);
    await grantRole(admin.client, metadata, [{ apiGroups: [''], resources: ['pods'], verbs: ['create'] }]);
    const tenant = new Tenant(client, namespace);
    const pod = podOf({ generateName: 'rights-', name: '', namespace });
    await until('the tenant to have its rights', () => client.create(PODS, pod));
    return tenant;
  }

  async createPod(name: string, annotations: Record<string, string>): Promise<Pod> {
    return this.#client.create(PODS, podOf({ name, namespace: this.#namespace, annotations }));
  }

  /** Creates a copy of a launcher, as the target of a migration. */
  copyLauncher(launcher: Pod, apiVersion = KUBEVIRT_API_VERSION): Promise<Pod> {
    const { labels, annotations, ownerReferences = [] } = launcher.metadata;
    const metadata = {
      name: 'forged',
      namespace: this.#namespace,
      labels: { ...labels, [MIGRATION_LABEL]: 'm1' },
      annotations: { [NETWORKS_ANNOTATION]: withoutReferences(annotations?.[NETWORKS_ANNOTATION] ?? '[]') },
      ownerReferences: ownerReferences.map((owner) => ({ ...owner, apiVersion })),
    };
    return this.#client.create(PODS, podOf(metadata));
  }

  /** @returns the message with which the copy was rejected */
  launcherCopyRejection(launcher: Pod, apiVersion: string): Promise<string> {
    return rejectionMessage(this.copyLauncher(launcher, apiVersion));
  }

  /** Tries to write the status of a claim, as a dry run: nothing changes if it is not rejected. */
  async statusRejection(name: string, status: object): Promise<string> {
    const ref = { namespace: this.#namespace, name };
    const options = { subresource: 'status', dryRun: true };
    return rejectionMessage(this.#client.patch(IPAM_CLAIMS, ref, { type: 'merge', body: { status } }, options));
  }

  async leaseDeletionRejection(name: string): Promise<string> {
    return rejectionMessage(this.#client.delete(ADDRESS_LEASES, { name }));
  }

  async claimRejection(name: string, metadata: Partial<ObjectMeta>): Promise<string> {
    const claim = {
      metadata: { ...metadata, name, namespace: this.#namespace },
      spec: { network: 'net', interface: 'x' },
    };
    return rejectionMessage(this.#client.create(IPAM_CLAIMS, claim));
  }

  /** Creates a stopped VM. @param networks name in the VM → NAD (`[namespace/]name`) */
  async createVm(name: string, networks: Readonly<Record<string, string>>): Promise<void> {
    const manifest = vmManifest({ name, namespace: this.#namespace, networks, running: false });
    await this.#client.create(VIRTUAL_MACHINES, manifest);
  }

  async putNetwork(name: string, options: NetworkOptions): Promise<void> {
    await putNetwork(this.#client, name, { ...options, namespace: this.#namespace });
  }

  async deleteClaim(name: string): Promise<void> {
    await this.#client.delete(IPAM_CLAIMS, { namespace: this.#namespace, name });
  }

  async close(): Promise<void> {
    await this.#client.transport.close();
  }
}

function podOf(metadata: ObjectMeta): Pod {
  return { metadata, spec: { containers: [{ name: 'c', image: ORDINARY_IMAGE }] } } as Pod;
}
