import type { AddressLease, LeaseOwner } from '../../../../api/address-lease.js';
import type { Attachment } from '../../attachment.js';
import type { Grant } from '../../result.js';
import type { RequestContext } from '../../request-queue.js';
import { CniError } from '../../cni-error.js';
import { formatAddress, parseAddress } from '../../../../addressing/address/address.js';
import { createLease, readLease, releaseLease } from '../../../../addressing/lease/lease.js';
import type { Pool } from '../../../../addressing/pool/pool.js';
import { Client } from '../../../../kube/client.js';
import type { Fault } from '../../../../kube/testing/memory-transport.js';
import { writeLease } from '../../../../cluster/lease-writes.js';
import { ManualClock } from '../../../../test/manual-clock.js';
import { LeaseAgent } from './lease-agent.js';
import { LeaseCluster } from './lease-api.js';

export const NODE = 'n1';

export interface AttachmentOptions {
  pod?: string;
  uid?: string;
  container?: string;
  interface?: string;
  requested?: string[];
  mac?: string;
  /** The runtime's UID of a static pod. */
  staticUid?: string;
  phase?: string;
}

export function attachmentOf(given: AttachmentOptions = {}): Attachment {
  const { pod = 'web', uid = `${pod}-uid`, container = `${pod}-c1`, requested = [], staticUid } = given;
  return {
    pod: {
      metadata: { namespace: 'apps', name: pod, uid },
      ...(staticUid !== undefined && { staticUid }),
      ...(given.phase !== undefined && { status: { phase: given.phase } }),
    },
    containerId: container,
    interfaceName: given.interface ?? 'net1',
    network: 'blue',
    selection: { position: 1, nad: { namespace: 'apps', name: 'blue' }, requestsAddresses: false },
    requested: requested.map(parseAddress),
    mac: given.mac,
  };
}

/** A cluster with one agent under test, whose caches are complete unless a test changes that. */
export class LeaseAgentWorld {
  readonly cluster = new LeaseCluster();
  readonly clock = new ManualClock(Date.UTC(2026, 0, 1));
  readonly pool: Pool;
  readonly #pools: readonly Pool[];
  readonly #admin = new Client(this.cluster.server);
  /** The feature gate of agents that start from now on. */
  nodeBlocks = false;
  agent: LeaseAgent;
  /** The feature gate of agents that start from now on. */
  stickyMAC = true;
  /** Those that agents know, also agents that start from now on. */
  readonly sandboxes = { existing: new Set<string>(), ended: new Set<string>() };
  #draws = 0;

  constructor(pool: Pool, ...others: Pool[]) {
    this.pool = pool;
    this.#pools = [pool, ...others];
    this.agent = this.start();
    this.agent.catchUp();
  }

  /** Restarts the agent with empty caches. */
  start(nodeName = NODE): LeaseAgent {
    // evenly spread, and the same each time
    const random = () => (this.#draws++ * 0.618_033_988_75) % 1;
    const { cluster, clock, nodeBlocks, stickyMAC, sandboxes } = this;
    const node = { nodeName, nodeBlocks, stickyMAC, sandboxes };
    this.agent = new LeaseAgent({ cluster, pools: this.#pools, clock, random, ...node });
    return this.agent;
  }

  /** Brings all caches up to date, and those of the pool's address space, too. */
  follow(pool = this.pool): void {
    this.agent.catchUp();
    this.agent.feeds.get(`spec.addressSpace=${pool.addressSpace}`)?.list();
  }

  /** Watches the leases of the pool's address space from now on, and brings their cache up to date. */
  watch(pool = this.pool): void {
    this.agent.catchUp();
    this.agent.watchSpace(pool);
  }

  grant(given: AttachmentOptions = {}, { pool = this.pool, call = callOf() } = {}): Promise<Grant> {
    return this.agent.grant(attachmentOf(given), pool, call);
  }

  /** @returns the addresses as text */
  async add(given: AttachmentOptions = {}, pool = this.pool): Promise<string[]> {
    return (await this.grant(given, { pool })).map(({ address }) => formatAddress(address));
  }

  /** @returns the error's code and message */
  async refused(given: AttachmentOptions = {}, pool = this.pool): Promise<string> {
    try {
      await this.add(given, pool);
    } catch (error) {
      if (error instanceof CniError) return `${error.code} ${error.message}`;
      throw error;
    }
    throw new Error('it was granted');
  }

  del(given: AttachmentOptions = {}): Promise<void> {
    const { containerId, interfaceName } = attachmentOf(given);
    return this.agent.leases.release(containerId, interfaceName, callOf());
  }

  /** Returns the requests of the agent since the last call. */
  requests(): string[] {
    return this.agent.api.seen.splice(0);
  }

  /** Sets the faults of the next requests, in order; undefined: the request succeeds. */
  fail(...faults: Fault[]): void {
    this.agent.api.before = () => faults.shift();
  }

  lease(address: string): AddressLease | undefined {
    return [...this.cluster.server.leases.values()].find(({ spec }) => spec.address === address);
  }

  get held(): string[] {
    return this.cluster
      .held()
      .map(({ spec }) => spec.address)
      .sort();
  }

  async leaseTo(owner: LeaseOwner, address: string, pool = this.pool, place: object = { node: 'n2' }): Promise<void> {
    const { addressSpace, name } = pool;
    const request = { address: parseAddress(address), addressSpace, pool: name, owner, ...place };
    await writeLease(this.#admin, createLease(request));
  }

  async free(address: string): Promise<void> {
    await writeLease(this.#admin, releaseLease(readLease(this.lease(address)!), this.clock.wall()));
  }

  /** Runs pending work until it waits for time or a list. */
  async turn(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
  }

  async pass(ms: number): Promise<void> {
    this.clock.advanceTo(this.clock.now() + ms);
    await this.turn();
  }
}

export function callOf(signal = new AbortController().signal): RequestContext {
  return { signal };
}

export const OTHER: LeaseOwner = { kind: 'IPAMClaim', namespace: 'vms', name: 'vm1.blue', uid: 'claim-1' };
