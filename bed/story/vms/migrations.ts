import type { VirtualMachineInstance } from '../../../api/kubevirt.js';
import type { KubeObject } from '../../../api/meta.js';
import type { Client } from '../../../kube/client.js';
import { StatusError } from '../../../kube/errors.js';
import { clusterResource, namespacedResource } from '../../../kube/resource.js';
import { PODS } from '../../../kube/resources.js';
import { references } from '../claims.js';
import { launchers, waitForVmi } from './vm.js';
import { until, untilValue } from '../../processes/wait.js';

export interface Migration extends KubeObject {
  spec: { vmiName: string };
  status?: { phase?: string };
}

export const MIGRATIONS = namespacedResource<Migration>(
  'kubevirt.io/v1',
  'virtualmachineinstancemigrations',
  'VirtualMachineInstanceMigration',
);

/** KubeVirt's settings for the migrations of some VMs. */
export const MIGRATION_POLICIES = clusterResource<KubeObject & { spec: object }>(
  'migrations.kubevirt.io/v1alpha1',
  'migrationpolicies',
  'MigrationPolicy',
);

/** A VMI with the node on which it runs, and how it moves to another one. */
interface VmiWithNode extends VirtualMachineInstance {
  status?: VirtualMachineInstance['status'] & { nodeName?: string; migrationState?: { mode?: string } };
}

/** Live migrations in one namespace. */
export class MigrationStory {
  readonly #client: Client;
  readonly #namespace: string;

  constructor(client: Client, namespace: string) {
    this.#client = client;
    this.#namespace = namespace;
  }

  /** @returns the migration's name */
  async start(vm: string): Promise<string> {
    const made = await this.#client.create(MIGRATIONS, {
      metadata: { name: '', generateName: `${vm}-`, namespace: this.#namespace },
      spec: { vmiName: vm },
    });
    return made.metadata.name;
  }

  /** Sets how VMs of the namespace migrate, by a MigrationPolicy, which the caller removes. */
  async setPolicy(settings: object): Promise<void> {
    const ref = { name: this.#namespace };
    const selectors = { namespaceSelector: { 'kubernetes.io/metadata.name': this.#namespace } };
    await this.#client.delete(MIGRATION_POLICIES, ref);
    await this.#client.create(MIGRATION_POLICIES, { metadata: ref, spec: { selectors, ...settings } });
  }

  /** Waits until KubeVirt has created a migration of the VM. @returns its name */
  waitCreated(vm: string): Promise<string> {
    return until(`KubeVirt to migrate ${vm}`, async () => {
      const { items } = await this.#client.list(MIGRATIONS, { namespace: this.#namespace });
      return items.find(({ spec }) => spec.vmiName === vm)?.metadata.name;
    });
  }

  /** Waits until a migration has ended. */
  async waitEnded(name: string): Promise<'Succeeded' | 'Failed'> {
    const phase = await untilValue(
      `migration ${name} to end`,
      async () => (await this.#client.get(MIGRATIONS, this.#ref(name))).status?.phase,
      (found) => found === 'Succeeded' || found === 'Failed',
      { timeoutMs: 60_000 },
    );
    return phase as 'Succeeded' | 'Failed';
  }

  /** Waits until the guest is copied. If a migration is aborted before that, KubeVirt may leave its target for minutes. */
  async waitCopying(name: string): Promise<void> {
    await untilValue(
      `migration ${name} to copy the guest`,
      async () => (await this.#client.get(MIGRATIONS, this.#ref(name))).status?.phase,
      (phase) => phase === 'Running',
    );
  }

  /** Waits until the guest runs on the target, and its memory follows. */
  async waitPostCopy({ metadata: { name } }: VirtualMachineInstance): Promise<void> {
    const isInPostCopy = ({ status }: VmiWithNode) => status?.migrationState?.mode === 'PostCopy';
    await waitForVmi(this.#client, this.#ref(name), 'to run on the target of its migration', isInPostCopy);
  }

  /** Deletes a migration in flight, and waits until KubeVirt has aborted it and the target is gone. */
  async abort(vm: string, name: string): Promise<void> {
    await this.#client.delete(MIGRATIONS, this.#ref(name));
    await until(`migration ${name} to be gone`, async () => {
      return (await this.#client.find(MIGRATIONS, this.#ref(name))) === undefined;
    });
    await this.waitForOneLauncher(vm);
  }

  /** Waits until source and target exist. @returns the claims that each of them references */
  async waitForBothReferences(vm: string): Promise<Record<string, string>[]> {
    const pods = await untilValue(
      `two launchers of ${vm}`,
      () => launchers(this.#client, this.#ref(vm)),
      (found) => found.length === 2,
    );
    return pods.map(references);
  }

  /** Waits until only one launcher runs. */
  async waitForOneLauncher(vm: string): Promise<void> {
    await untilValue(
      `one launcher of ${vm}`,
      () => launchers(this.#client, this.#ref(vm)),
      (found) => found.length === 1,
    );
  }

  /** Waits until the VMI runs on another node, with one launcher. */
  async waitMovedFrom(vm: string, before: VmiWithNode): Promise<void> {
    const hasMoved = (vmi: VmiWithNode) => vmi.status?.nodeName !== before.status?.nodeName;
    await waitForVmi(this.#client, this.#ref(vm), 'to move to another node', hasMoved);
    await this.waitForOneLauncher(vm);
  }

  /** Asks the API server to evict the launcher, as a drain does; KubeVirt answers with a migration. */
  async evict(vm: string): Promise<void> {
    const [pod] = await launchers(this.#client, this.#ref(vm));
    const ref = this.#ref(pod?.metadata.name ?? '');
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: ref };
    const evict = () => this.#client.createSubresource(PODS, ref, 'eviction', body);
    // 429: KubeVirt rejects the eviction, and migrates the VMI
    const isEvicted = (error: unknown) => error instanceof StatusError && error.status === 429;
    await until('KubeVirt to be asked for an eviction', () =>
      evict().then(
        () => true,
        (error: unknown) => isEvicted(error) || Promise.reject(error as Error),
      ),
    );
  }

  #ref(name: string): { namespace: string; name: string } {
    return { namespace: this.#namespace, name };
  }
}
