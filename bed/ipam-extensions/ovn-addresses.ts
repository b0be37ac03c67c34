import type { IPAMClaim } from '../../api/ipam-claim.js';
import { objectKey } from '../../api/meta.js';
import { CLAIM_OWNER_UID } from '../../api/names.js';
import { IPAM_CLAIMS } from '../../kube/resources.js';
import { untilValue } from '../processes/wait.js';
import type { Environment } from '../environment.js';
import { OvnClusterManager } from '../ovn-kubernetes/cluster-manager.js';
import { references } from '../story/claims.js';
import type { Story } from '../story/story.js';

/** The NADs `blue` and `green`, whose addresses OVN-Kubernetes allocates. */
export class OvnAddresses {
  readonly #story: Story;
  readonly #managers: readonly OvnClusterManager[];

  private constructor(story: Story, managers: readonly OvnClusterManager[]) {
    this.#story = story;
    this.#managers = managers;
  }

  static async open(story: Story, environment: Environment): Promise<OvnAddresses> {
    const managers: OvnClusterManager[] = [];
    for (const [name, subnet] of Object.entries({ blue: '10.128.0.0/22', green: '10.129.0.0/22' })) {
      const network = `ovn-${name}`;
      const config = { cniVersion: '0.4.0', type: 'ovn-k8s-cni-overlay', topology: 'layer2', subnets: subnet };
      await story.network(name, { config: { ...config, name: network, allowPersistentIPs: true } });
      const nad = { namespace: story.namespace, name };
      managers.push(await OvnClusterManager.start(environment, { nad, network, subnets: [subnet] }));
    }
    return new OvnAddresses(story, managers);
  }

  async close(): Promise<void> {
    await Promise.all(this.#managers.map((manager) => manager.stop()));
  }

  /** Addresses that were released while a pod used them or a claim had them. */
  get releasedInUse(): string[] {
    return this.#managers.flatMap(({ journal }) => journal.releasedInUse);
  }

  /**
   * Waits until the one launcher of a VM has the address of the claim to which it refers, on each interface.
   * @returns the addresses by claim
   */
  waitServed(vm: string, interfaces: number): Promise<Record<string, string>> {
    return untilValue(
      `VM ${vm} to have ${String(interfaces)} addresses`,
      () => this.#servedAddresses(vm),
      (served) => Object.keys(served).length === interfaces,
    );
  }

  /** The claims with an address, as `<UID> <addresses>` by name. */
  async claims(): Promise<Record<string, string>> {
    const claims = (await this.#listClaims()).filter((claim) => addressesOf(claim) !== '');
    return Object.fromEntries(
      claims.map((claim) => [claim.metadata.name, `${claim.metadata.uid ?? ''} ${addressesOf(claim)}`]),
    );
  }

  /** Waits until Holdfast has adopted all claims. */
  async waitAdopted(): Promise<void> {
    await untilValue(
      'all claims to be adopted',
      async () => (await this.#listClaims()).filter((claim) => !isAdopted(claim)).map(objectKey),
      (others) => others.length === 0,
      { timeoutMs: 60_000 },
    );
  }

  async #servedAddresses(vm: string): Promise<Record<string, string>> {
    const [launcher, ...others] = await this.#story.launchers(vm);
    if (launcher === undefined || others.length > 0)
      throw new Error(`${vm} has ${String(others.length + 1)} launchers`);
    const annotated = this.#managers.flatMap((manager) => manager.addressesOf(launcher)).map(String);
    const claims = new Map((await this.#listClaims()).map((claim) => [claim.metadata.name, addressesOf(claim)]));
    const served = Object.values(references(launcher)).map((name) => [name, claims.get(name) ?? ''] as const);
    return Object.fromEntries(served.filter(([, address]) => annotated.includes(address)));
  }

  async #listClaims(): Promise<IPAMClaim[]> {
    const { items } = await this.#story.client.list(IPAM_CLAIMS, { namespace: this.#story.namespace });
    return items;
  }
}

function addressesOf({ status }: IPAMClaim): string {
  return String(status?.ips ?? '');
}

function isAdopted({ metadata }: IPAMClaim): boolean {
  return metadata.annotations?.[CLAIM_OWNER_UID] !== undefined;
}
