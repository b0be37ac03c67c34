import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { VirtualMachine } from '../../api/kubevirt.js';
import { controllerOf } from '../../api/meta.js';
import { CLAIM_FINALIZER, CLAIM_REFERENCE_KEY, CLAIM_VM_LABEL } from '../../api/names.js';
import { interfaceNameOf, networkSelectionsOf } from '../../api/networks/network-selection.js';
import type { Pod } from '../../api/pod.js';
import type { Client } from '../../kube/client.js';
import { CONFIG_MAPS, IPAM_CLAIMS } from '../../kube/resources.js';
import { until, untilValue } from '../processes/wait.js';

/** The sorted names of a namespace's claims. */
export async function claimNames(client: Client, namespace: string): Promise<string[]> {
  const { items } = await client.list(IPAM_CLAIMS, { namespace });
  return items.map(({ metadata }) => metadata.name).sort();
}

export async function waitForClaims(client: Client, namespace: string, names: readonly string[]): Promise<void> {
  const wanted = [...names].sort();
  await untilValue(
    `the claims of ${namespace} to be [${wanted.join(' ')}]`,
    () => claimNames(client, namespace),
    (found) => found.join(' ') === wanted.join(' '),
  );
}

/** The claims that a launcher pod references, by interface name. */
export function references(pod: Pod): Record<string, string> {
  return Object.fromEntries(
    networkSelectionsOf(pod).flatMap((one) =>
      one.claimReference === undefined ? [] : [[interfaceNameOf(one), one.claimReference]],
    ),
  );
}

/** The networks annotation without references to claims. */
export function withoutReferences(networks: string): string {
  const elements = JSON.parse(networks) as Record<string, unknown>[];
  return JSON.stringify(elements.map(({ [CLAIM_REFERENCE_KEY]: _reference, ...rest }) => rest));
}

/** Reads and changes the claims of one namespace, as users and other software do. */
export class ClaimStory {
  readonly #client: Client;
  readonly #namespace: string;

  constructor(client: Client, namespace: string) {
    this.#client = client;
    this.#namespace = namespace;
  }

  /** Waits for a claim. */
  get(name: string): Promise<IPAMClaim> {
    return this.waitFor(name, 'to be there', () => true);
  }

  /** Waits until a claim exists and is as described. */
  async waitFor(name: string, description: string, isRight: (claim: IPAMClaim) => boolean): Promise<IPAMClaim> {
    const claim = await untilValue(
      `IPAMClaim ${name} ${description}`,
      () => this.#client.find(IPAM_CLAIMS, this.#ref(name)),
      (found) => found !== undefined && isRight(found),
    );
    return claim!;
  }

  /** Waits until the claim's controller is this one. */
  waitForOwner(name: string, kind: string, uid: string | undefined): Promise<IPAMClaim> {
    const isOwned = (claim: IPAMClaim) => controllerOf(claim)?.kind === kind && controllerOf(claim)?.uid === uid;
    return this.waitFor(name, `to belong to ${kind} ${String(uid)}`, isOwned);
  }

  /** Waits for another claim of that name. */
  waitForSuccessor(claim: IPAMClaim): Promise<IPAMClaim> {
    return this.waitFor(claim.metadata.name, 'to be replaced', ({ metadata }) => metadata.uid !== claim.metadata.uid);
  }

  /** Waits for the claim of a CNI network. */
  async ofNetwork(network: string): Promise<IPAMClaim> {
    return until(`a claim for the network ${network}`, async () => {
      const { items } = await this.#client.list(IPAM_CLAIMS, { namespace: this.#namespace });
      return items.find(({ spec }) => spec.network === network);
    });
  }

  /** Waits until the namespace has so many claims. @returns their names, sorted */
  waitForCount(count: number): Promise<string[]> {
    return untilValue(
      `${count} claims in ${this.#namespace}`,
      () => claimNames(this.#client, this.#namespace),
      (names) => names.length === count,
    );
  }

  async waitGone(name: string): Promise<void> {
    await until(`IPAMClaim ${name} to be gone`, async () => {
      return (await this.#client.find(IPAM_CLAIMS, this.#ref(name))) === undefined;
    });
  }

  async remove(name: string): Promise<void> {
    await this.#client.delete(IPAM_CLAIMS, this.#ref(name));
  }

  /** Creates a claim without an owner. */
  createPlain(name: string, network: string): Promise<IPAMClaim> {
    const claim = { metadata: this.#ref(name), spec: { network, interface: '' } };
    return this.#client.create(IPAM_CLAIMS, claim);
  }

  /** Creates a claim without an owner and with the addresses it had, as tools do that restore backups. */
  async createRestored(name: string, network: string, ips: string[]): Promise<void> {
    // on a network that does not exist, so that the IPAM ignores the claim until its status is written
    await this.createPlain(name, `${network}-being-restored`);
    await this.writeAddresses(name, ips);
    const patch = { type: 'merge', body: { spec: { network } } } as const;
    await this.#client.patch(IPAM_CLAIMS, this.#ref(name), patch);
  }

  /** Creates a claim whose controller is a ConfigMap with the name somebody-else. */
  async createForeign(name: string, network: string): Promise<IPAMClaim> {
    const owner = await this.#client.create(CONFIG_MAPS, { metadata: this.#ref('somebody-else') });
    const { uid = '' } = owner.metadata;
    const reference = { apiVersion: 'v1', kind: 'ConfigMap', name: 'somebody-else', uid, controller: true };
    const metadata = { ...this.#ref(name), ownerReferences: [reference] };
    return this.#client.create(IPAM_CLAIMS, { metadata, spec: { network, interface: '' } });
  }

  /** Creates a claim as kubevirt/ipam-extensions does. */
  createAsIpamExtensions(name: string, network: string, vm: VirtualMachine): Promise<IPAMClaim> {
    const { name: vmName, uid = '' } = vm.metadata;
    const metadata = {
      ...this.#ref(name),
      labels: { [CLAIM_VM_LABEL]: vmName },
      finalizers: [CLAIM_FINALIZER],
      ownerReferences: [
        {
          apiVersion: 'kubevirt.io/v1',
          kind: 'VirtualMachine',
          name: vmName,
          uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    };
    return this.#client.create(IPAM_CLAIMS, { metadata, spec: { network, interface: '' } });
  }

  /** Adds a finalizer to a claim, or removes it. */
  async setFinalizer(name: string, finalizer: string, present: boolean): Promise<void> {
    const { metadata } = await this.#client.get(IPAM_CLAIMS, this.#ref(name));
    const others = (metadata.finalizers ?? []).filter((one) => one !== finalizer);
    const body = { metadata: { finalizers: present ? [...others, finalizer] : others } };
    await this.#client.patch(IPAM_CLAIMS, this.#ref(name), { type: 'merge', body });
  }

  /** Writes the status as an IPAM does. */
  async writeAddresses(name: string, ips: string[]): Promise<void> {
    const patch = { type: 'merge', body: { status: { ips } } } as const;
    await this.#client.patch(IPAM_CLAIMS, this.#ref(name), patch, { subresource: 'status' });
  }

  #ref(name: string): { namespace: string; name: string } {
    return { namespace: this.#namespace, name };
  }
}
