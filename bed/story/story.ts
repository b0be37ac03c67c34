import { randomBytes } from 'node:crypto';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { Client } from '../../kube/client.js';
import { KUBEVIRTS, NAMESPACES, NETWORK_ATTACHMENT_DEFINITIONS } from '../../kube/resources.js';
import type { Environment } from '../environment.js';
import { AddressStory } from './addresses.js';
import { claimNames, ClaimStory, waitForClaims } from './claims.js';
import { type StoryEvent, waitForEvent } from './events.js';
import { removeNamespaces } from './cleanup.js';
import { MigrationStory } from './vms/migrations.js';
import { Kubectl } from './kubectl/kubectl.js';
import { type NetworkOptions, putNetwork } from './networks.js';
import { Tenant } from './tenant.js';
import { VmActions } from './vms/vm-actions.js';
import { SERVICE_ACCOUNTS } from '../control-plane/service-accounts.js';
import { until } from '../processes/wait.js';

/** The namespace of one test, with the actions of a user in it. Runs on any cluster. */
export class Story extends VmActions {
  readonly claims: ClaimStory;
  readonly migrations: MigrationStory;
  readonly addresses: AddressStory;
  readonly #environment: Environment;
  readonly #otherNamespaces: string[] = [];
  #tenant: Tenant | undefined;
  #kubectl: Kubectl | undefined;

  private constructor(environment: Environment, namespace: string) {
    super(environment.client, namespace);
    this.#environment = environment;
    this.claims = new ClaimStory(this.client, namespace);
    this.migrations = new MigrationStory(this.client, namespace);
    this.addresses = new AddressStory(environment, namespace);
  }

  static async begin(environment: Environment, namespace = randomName()): Promise<Story> {
    await createNamespace(environment.client, namespace);
    return new Story(environment, namespace);
  }

  /** Deletes all objects that were created. */
  async end(): Promise<void> {
    await this.#tenant?.close();
    await this.#kubectl?.close();
    await removeNamespaces(this.client, [this.namespace, ...this.#otherNamespaces]);
    await this.addresses.end();
  }

  async otherNamespace(): Promise<string> {
    const name = `${this.namespace}-other`;
    this.#otherNamespaces.push(name);
    await createNamespace(this.client, name);
    return name;
  }

  async labelNamespace(labels: Record<string, string | null>): Promise<void> {
    await this.client.patch(NAMESPACES, { name: this.namespace }, { type: 'merge', body: { metadata: { labels } } });
  }

  async tenant(): Promise<Tenant> {
    this.#tenant ??= await Tenant.create(this.#environment, this.namespace);
    return this.#tenant;
  }

  /** kubectl of an administrator, in the namespace. */
  async kubectl(): Promise<Kubectl> {
    this.#kubectl ??= await Kubectl.open(this.#environment.kubeconfig, this.namespace);
    return this.#kubectl;
  }

  async network(name: string, options: NetworkOptions = {}): Promise<void> {
    await putNetwork(this.client, name, { namespace: this.namespace, ...options });
  }

  async removeNetwork(name: string): Promise<void> {
    await this.client.delete(NETWORK_ATTACHMENT_DEFINITIONS, this.ref(name));
  }

  claimNames(): Promise<string[]> {
    return claimNames(this.client, this.namespace);
  }

  waitForClaims(names: readonly string[]): Promise<void> {
    return waitForClaims(this.client, this.namespace, names);
  }

  waitForClaim(name: string): Promise<IPAMClaim> {
    return this.claims.get(name);
  }

  /** Waits for an event about the VM or VMI of this name. */
  waitForEvent(name: string, reason: string, words?: RegExp): Promise<StoryEvent> {
    return waitForEvent(this.client, this.ref(name), reason, words);
  }

  /**
   * Waits until the controller has handled all earlier events: creates another VM, waits for its claim, deletes the VM, and waits
   * until the claim is gone.
   */
  async waitControllerIdle(): Promise<void> {
    await this.network('canary');
    await this.createVm('canary', { canary: 'canary' }, { running: false });
    await this.waitForClaim('canary.canary');
    await this.deleteVm('canary', 'Background');
    await this.claims.waitGone('canary.canary');
  }

  /**
   * Migrates a VM and waits for the end.
   * @param meanwhile runs while both launchers exist
   */
  async migrate(name: string, end: 'Succeeded' | 'Failed', meanwhile?: () => Promise<void>): Promise<void> {
    const migration = await this.migrations.start(name);
    await meanwhile?.();
    const phase = await this.migrations.waitEnded(migration);
    if (phase !== end) throw new Error(`migration ${migration} of ${name} ended as ${phase}, not as ${end}`);
    await this.migrations.waitForOneLauncher(name);
  }

  /** Whether KubeVirt has the feature gate. */
  async hasFeatureGate(gate: string): Promise<boolean> {
    const { items } = await this.client.list(KUBEVIRTS);
    return items.some((one) => one.spec?.configuration?.developerConfiguration?.featureGates?.includes(gate));
  }
}

function randomName(): string {
  return `story-${randomBytes(4).toString('hex')}`;
}

/** Creates a namespace and waits for its service account: before that the API server rejects pods. */
export async function createNamespace(client: Client, name: string): Promise<void> {
  await client.create(NAMESPACES, { metadata: { name } });
  const account = { namespace: name, name: 'default' };
  // Kubernetes' controllers reconnect late after the API server was down
  await until('the namespace to have its service account', () => client.find(SERVICE_ACCOUNTS, account), {
    timeoutMs: 90_000,
  });
}
