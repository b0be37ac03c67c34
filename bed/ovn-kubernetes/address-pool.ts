import { formatAddress } from '../../addressing/address/address.js';
import { type Cidr, firstOf, lastOf, parseCidr } from '../../addressing/address/cidr.js';

/** No address of the subnet is free. The message is the one of OVN-Kubernetes. */
export class SubnetExhausted extends Error {
  override readonly name = 'SubnetExhausted';
}

/** The addresses of one network in the memory of OVN-Kubernetes' cluster manager. They are allocated round robin, one of each subnet. */
export class OvnAddressPool {
  readonly #subnets: readonly { readonly cidr: Cidr; next: bigint }[];
  readonly #allocated = new Set<string>();

  constructor(subnets: readonly string[]) {
    this.#subnets = subnets.map((text) => {
      const cidr = parseCidr(text);
      return { cidr, next: firstOf(cidr) + 1n };
    });
  }

  /**
   * @returns addresses with prefix length
   * @throws {SubnetExhausted} and allocates none
   */
  allocateNext(): string[] {
    const found = this.#subnets.map((subnet) => this.#findFree(subnet.cidr, subnet.next));
    this.#subnets.forEach((subnet, index) => (subnet.next = (found[index] ?? 0n) + 1n));
    const ips = this.#subnets.map(({ cidr }, index) => {
      const address = formatAddress({ family: cidr.family, value: found[index] ?? 0n });
      return `${address}/${String(cidr.prefixLength)}`;
    });
    this.allocate(ips);
    return ips;
  }

  /** Allocates addresses that may be allocated already. */
  allocate(ips: readonly string[]): void {
    for (const ip of ips) this.#allocated.add(ip);
  }

  release(ips: readonly string[]): void {
    for (const ip of ips) this.#allocated.delete(ip);
  }

  #findFree(cidr: Cidr, from: bigint): bigint {
    const [first, last] = [firstOf(cidr) + 1n, lastOf(cidr) - 1n]; // without the addresses of network and broadcast
    const size = last - first + 1n;
    for (let step = 0n; step < size; step++) {
      const value = first + ((((from - first + step) % size) + size) % size);
      const ip = `${formatAddress({ family: cidr.family, value })}/${String(cidr.prefixLength)}`;
      if (!this.#allocated.has(ip)) return value;
    }
    throw new SubnetExhausted('subnet address pool exhausted');
  }
}
