import type { AddressLease } from '../../api/address-lease.js';
import type { BedWithHoldfast } from '../../bed/environment.js';
import type { Story } from '../../bed/story/story.js';
import { clientAs } from '../../bed/story/users/service-account.js';
import { parseAddress } from '../../addressing/address/address.js';
import { createLease, readLease, reallocateLease, releaseLease } from '../../addressing/lease/lease.js';
import { REUSE_MS } from '../../addressing/lease/lease-times.js';
import { writeLease } from '../../cluster/lease-writes.js';
import type { Client } from '../../kube/client.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { AGENT_ACCOUNT } from '../cni/agent.js';
import type { Figure } from '../report.js';
import { COOLDOWN_MS, mostReleased } from '../scale/churn.js';
import { usageOf } from '../usage.js';
import { AS_SHIPPED } from './addresses.js';

const NODE = 'node-1';
/** Pods that start and end at the same time. */
const AT_ONCE = 64;
const SUBNET = '10.0.0.0/8';
const FIRST = parseAddress('10.0.0.10').value;

/**
 * Measures how many leases of pods a real kube-apiserver allocates and releases per second, with the shipped policies and ipam, and whether
 * the released ones stay bounded. `churn` does this at a given rate against a server in memory.
 */
export async function benchLeaseChurn(bed: BedWithHoldfast, story: Story, seconds: number): Promise<Figure[]> {
  await bed.ipam.stop();
  await bed.ipam.start({ args: AS_SHIPPED });
  const network = await story.addresses.createNetwork('churn', [SUBNET]);
  const pool = (await story.addresses.waitForDerivedPool(network)).metadata.name;
  const agent = await clientAs(bed, AGENT_ACCOUNT, { node: NODE });
  const churn = new LeaseChurn(agent, { pool, addressSpace: network });
  const cpuSeconds = () =>
    Promise.all([bed.apiServer, bed.ipam].map(async ({ pid }) => (await usageOf(pid)).cpuSeconds));
  try {
    const [serverBefore = 0, ipamBefore = 0] = await cpuSeconds();
    await churn.run(seconds);
    const [server = 0, ipam = 0] = await cpuSeconds();
    const released = await countReleased(story.client);
    const perSecond = churn.ended / seconds;
    const bound = mostReleased(perSecond, REUSE_MS);
    const cpuMs = (used: number) => ({ value: (1000 * used) / churn.ended, unit: 'ms' });
    return [
      { name: 'lease-churn: allocated and released', value: perSecond, unit: '/s' },
      { name: 'lease-churn: of them with a lease of the node', value: (100 * churn.reused) / churn.ended, unit: '%' },
      { name: 'lease-churn: released at the end, of the bound', value: released / bound, unit: '', target: { atMost: 1 } }, // oxfmt-ignore
      { name: 'lease-churn: CPU of kube-apiserver for a pod', ...cpuMs(server - serverBefore) },
      { name: 'lease-churn: CPU of ipam for a pod', ...cpuMs(ipam - ipamBefore) },
    ];
  } finally {
    await agent.transport.close();
  }
}

async function countReleased(client: Client): Promise<number> {
  const { items } = await client.list(ADDRESS_LEASES);
  return items.filter(({ spec }) => spec.releasedAt !== undefined).length;
}

/** The writes of the agent of one node for pods that start and end. */
class LeaseChurn {
  ended = 0;
  /** Pods that got a lease which the node had released. */
  reused = 0;
  readonly #agent: Client;
  readonly #from: { readonly pool: string; readonly addressSpace: string };
  /** The oldest first. */
  readonly #released: { readonly lease: AddressLease; readonly at: number }[] = [];
  #pods = 0;
  #next = FIRST;

  constructor(agent: Client, from: { pool: string; addressSpace: string }) {
    this.#agent = agent;
    this.#from = from;
  }

  async run(seconds: number): Promise<void> {
    const until = performance.now() + seconds * 1000;
    const replacePods = async () => {
      while (performance.now() < until) await this.#startAndEnd();
    };
    await Promise.all(Array.from({ length: AT_ONCE }, replacePods));
  }

  async #startAndEnd(): Promise<void> {
    const held = await this.#allocate();
    const released = await writeLease(this.#agent, releaseLease(readLease(held), Date.now()));
    this.#released.push({ lease: released!, at: performance.now() });
    this.ended++;
  }

  async #allocate(): Promise<AddressLease> {
    const uid = crypto.randomUUID();
    const owner = { kind: 'Pod', namespace: 'bench', name: `pod-${String(this.#pods++)}`, uid } as const;
    const pod = { ...this.#from, owner, node: NODE, containerID: uid, interface: 'net1' };
    const cooled = this.#takeCooled();
    if (cooled === undefined) {
      const address = { family: 4, value: this.#next++ } as const;
      return (await writeLease(this.#agent, createLease({ ...pod, address })))!;
    }
    this.reused++;
    const lease = readLease(cooled);
    return (await writeLease(this.#agent, reallocateLease(lease, { ...pod, address: lease.address })))!;
  }

  /** ipam deletes a lease {@link REUSE_MS} after its cool-down: half of that is left for the write. */
  #takeCooled(): AddressLease | undefined {
    const now = performance.now();
    while (this.#released[0] !== undefined && now - this.#released[0].at >= COOLDOWN_MS) {
      const { lease, at } = this.#released.shift()!;
      if (now - at < COOLDOWN_MS + REUSE_MS / 2) return lease;
    }
    return undefined;
  }
}
