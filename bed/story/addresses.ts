import type { AddressLease, LeaseOwner } from '../../api/address-lease.js';
import type { AddressPool, AddressPoolSpec, PoolSubnet } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { Condition } from '../../api/meta.js';
import { IPS_ALLOCATED, LEASE_OWNER_NAMESPACE, POOL_NAD_NAMESPACE } from '../../api/names.js';
import { HOLDFAST_NAMESPACE } from '../holdfast/install.js';
import { parseAddress } from '../../addressing/address/address.js';
import { leaseName } from '../../addressing/lease/lease-name.js';
import { leaseLabels } from '../../addressing/lease/lease-record.js';
import type { Client } from '../../kube/client.js';
import { ADDRESS_LEASES, ADDRESS_POOLS, IPAM_CLAIMS } from '../../kube/resources.js';
import { clientAs } from './users/service-account.js';
import { putNetwork } from './networks.js';
import { admitted } from './patience.js';
import { until, untilValue } from '../processes/wait.js';

/** A new API server learns of our kinds after half a minute, and its policies reject writes of a claim's status until then. */
const STATUS_TIMEOUT_MS = 75_000;

/** Creates pools and networks, and reads the addresses and leases of the claims of one namespace. */
export class AddressStory {
  readonly #client: Client;
  readonly #namespace: string;
  readonly #admin: { client: Client; kubeconfig: string };
  readonly #pools: string[] = [];
  #pastValidation: Client | undefined;

  constructor(admin: { client: Client; kubeconfig: string }, namespace: string) {
    this.#admin = admin;
    this.#client = admin.client;
    this.#namespace = namespace;
  }

  /** A client with ipam's identity, whose pools are not validated: for pools that passed while admission was down. */
  async unvalidatedClient(): Promise<Client> {
    this.#pastValidation ??= await clientAs(this.#admin, { namespace: HOLDFAST_NAMESPACE, name: 'holdfast-ipam' });
    return this.#pastValidation;
  }

  /** Creates a NAD that delegates IPAM to Holdfast. @returns the network's name, which no other test uses */
  async createNetwork(nad: string, subnets: readonly (string | PoolSubnet)[], ipam: object = {}): Promise<string> {
    const network = `${this.#namespace}-${nad}`;
    const list = subnets.map((subnet) => (typeof subnet === 'string' ? { cidr: subnet } : subnet));
    await putNetwork(this.#client, nad, { namespace: this.#namespace, network, subnets: list, ipam });
    return network;
  }

  /** Waits until a claim has addresses. @returns them, with prefix lengths */
  async waitForIPs(claim: string): Promise<string[]> {
    return (await this.#claimWith(claim, 'to have addresses', hasAddresses)).status?.ips ?? [];
  }

  /** Waits until a claim has exactly these addresses. */
  async waitForExactIPs(claim: string, addresses: readonly string[]): Promise<IPAMClaim> {
    const wanted = addresses.join(' ');
    return this.#claimWith(
      claim,
      `to have ${wanted}`,
      (found) => hasAddresses(found) && found.status?.ips?.join(' ') === wanted,
    );
  }

  /** Waits until the claim's condition has this reason for its lack of addresses. */
  async waitForRefusal(claim: string, reason: string): Promise<Condition> {
    const found = await this.#claimWith(claim, `to be refused: ${reason}`, (one) => {
      const condition = conditionOf(one);
      return condition?.status === 'False' && condition.reason === reason;
    });
    return conditionOf(found)!;
  }

  /** Waits for a condition of a claim. */
  async waitForCondition(claim: string, type: string, status: Condition['status']): Promise<Condition> {
    const found = await this.#claimWith(claim, `to be ${type}=${status}`, (one) => {
      return conditionOf(one, type)?.status === status;
    });
    return conditionOf(found, type)!;
  }

  /** The leases of owners in this namespace, by address. */
  async leases(): Promise<Map<string, AddressLease>> {
    const labelSelector = `${LEASE_OWNER_NAMESPACE}=${this.#namespace}`;
    const { items } = await this.#client.list(ADDRESS_LEASES, { labelSelector });
    return new Map(items.map((lease) => [lease.spec.address, lease]));
  }

  /** The addresses that are held in this namespace, sorted. */
  async heldAddresses(): Promise<string[]> {
    const leases = [...(await this.leases()).values()];
    return leases
      .filter(({ spec }) => spec.releasedAt === undefined)
      .map(({ spec }) => spec.address)
      .sort();
  }

  async waitHeld(addresses: readonly string[]): Promise<void> {
    await untilValue(
      `the leases to be [${addresses.join(' ')}]`,
      () => this.heldAddresses(),
      (held) => held.join(' ') === [...addresses].sort().join(' '),
    );
  }

  /** Creates a pool as an administrator does. It is deleted after the test. */
  async createPool(name: string, spec: AddressPoolSpec, client = this.#client): Promise<AddressPool> {
    const pool = await admitted(() => client.create(ADDRESS_POOLS, { metadata: { name }, spec }));
    this.#pools.push(name);
    return pool;
  }

  /** Waits for the pool that is derived from this namespace's NADs of the network. */
  async waitForDerivedPool(network: string): Promise<AddressPool> {
    return until(`the pool of network ${network}`, async () => {
      const { items } = await this.#client.list(ADDRESS_POOLS);
      return items.find(({ metadata, spec }) => {
        return spec.network === network && metadata.annotations?.[POOL_NAD_NAMESPACE] === this.#namespace;
      });
    });
  }

  /** Waits until a pool is as described. */
  async waitForPool(name: string, description: string, isRight: (pool: AddressPool) => boolean): Promise<AddressPool> {
    const pool = await untilValue(
      `AddressPool ${name} ${description}`,
      () => this.#client.find(ADDRESS_POOLS, { name }),
      (found) => found !== undefined && isRight(found),
    );
    return pool!;
  }

  /** Deletes all pools that were created. */
  async end(): Promise<void> {
    await this.#pastValidation?.transport.close();
    await Promise.all(this.#pools.map((name) => this.#removePool(name)));
  }

  /** Waits until no address of the pool is leased, because its deletion is rejected before. A launcher may take a minute to end. */
  async #removePool(name: string): Promise<void> {
    const isGone = async () => {
      await this.#client.delete(ADDRESS_POOLS, { name });
      return (await this.#client.find(ADDRESS_POOLS, { name })) === undefined;
    };
    await until(`pool ${name} to be gone`, isGone, { timeoutMs: 120_000 });
  }

  async #claimWith(name: string, description: string, isRight: (claim: IPAMClaim) => boolean): Promise<IPAMClaim> {
    const claim = await untilValue(
      `IPAMClaim ${name} ${description}`,
      () => this.#client.find(IPAM_CLAIMS, { namespace: this.#namespace, name }),
      (found) => found !== undefined && isRight(found),
      { timeoutMs: STATUS_TIMEOUT_MS },
    );
    return claim!;
  }
}

export function conditionOf(claim: IPAMClaim, type = IPS_ALLOCATED): Condition | undefined {
  return claim.status?.conditions?.find((condition) => condition.type === type);
}

function hasAddresses(claim: IPAMClaim): boolean {
  return (claim.status?.ips?.length ?? 0) > 0 && conditionOf(claim)?.status === 'True';
}

/** A lease that Holdfast did not create. */
export function leaseNamed(
  addressSpace: string,
  address: string,
  { pool, owner }: { pool: string; owner?: LeaseOwner },
): AddressLease {
  const name = leaseName(addressSpace, parseAddress(address));
  const spec = { address, addressSpace, pool, ...(owner && { owner }) };
  return { metadata: { name, labels: leaseLabels(spec) }, spec };
}
