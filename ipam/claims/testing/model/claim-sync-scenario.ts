import type { IPAMClaim } from '../../../../api/ipam-claim.js';
import { IPS_ALLOCATED } from '../../../../api/names.js';
import type { SyncResult } from '../../../../kube/controller-loop.js';
import type { Fault } from '../../../../kube/testing/memory-transport.js';
import { IpamModelCluster } from './cluster.js';
import { leasesHeldBy } from './invariants.js';
import type { Operation } from './operations.js';
import type { IpamModelProcess } from './process.js';
import { bareAddress } from '../../../../test/bare-address.js';

export type Name = Extract<Operation, { do: 'create' }>['name'];

/** A model cluster in which the test decides what happens. */
export class ClaimSyncScenario {
  readonly cluster = new IpamModelCluster();
  readonly process: IpamModelProcess;
  /** Another process that acts as the leader, and whose caches lag behind. */
  readonly laggingProcess: IpamModelProcess;

  constructor() {
    const [process, late] = this.cluster.processes as [IpamModelProcess, IpamModelProcess];
    this.process = process;
    this.laggingProcess = late;
    this.cluster.processes.length = 1;
  }

  /** Creates a claim, a second after the previous one. */
  create(name: Name, given: Partial<Omit<Extract<Operation, { do: 'create' }>, 'do' | 'name'>> = {}): void {
    this.cluster.world.now += 1000;
    this.cluster.operate({ do: 'create', name, request: undefined, restored: undefined, owned: false, ...given });
  }

  request(name: Name, request: string | undefined): void {
    this.cluster.operate({ do: 'request', name, request });
  }

  /** Removes the claim. */
  finish(name: Name): void {
    this.cluster.operate({ do: 'finish', name });
  }

  claim(name: Name): IPAMClaim {
    const claim = this.cluster.world.get('ipamclaims', `vms/${name}`);
    if (claim === undefined) throw new TypeError(`there is no claim ${name}`);
    return claim;
  }

  /** The addresses in the status, without prefix lengths. */
  ipsOf(name: Name): string[] | undefined {
    return this.claim(name).status?.ips?.map(bareAddress);
  }

  reasonOf(name: Name): string | undefined {
    return this.claim(name).status?.conditions?.find(({ type }) => type === IPS_ALLOCATED)?.reason;
  }

  /** The addresses of all leases. */
  get leases(): string[] {
    return this.cluster.world.list('addressleases').map(({ spec }) => spec.address);
  }

  /** The addresses of the claim's held leases. */
  heldBy(name: Name): string[] {
    return leasesHeldBy(this.cluster.world, this.claim(name).metadata.uid).map(({ spec }) => spec.address);
  }

  /** Makes the n-th request from now on fail, counted from 0. */
  failRequest(number: number, fault: Fault): void {
    let count = 0;
    this.cluster.api.before = () => (count++ === number ? fault : undefined);
  }

  /** Runs something else to its end before the n-th request from now on, counted from 0. */
  interruptRequest(number: number, interlude: () => Promise<void>): void {
    const { api } = this.cluster;
    const request = api.request.bind(api);
    let count = 0;
    api.request = async (each) => {
      if (count++ === number) await interlude();
      return request(each);
    };
  }

  /** Delivers all changes and syncs the claim once. */
  async sync(name: Name): Promise<{ result: SyncResult; requests: string[] }> {
    this.process.deliverAll();
    return this.syncWithoutNews(name);
  }

  async syncWithoutNews(name: Name, process = this.process): Promise<{ result: SyncResult; requests: string[] }> {
    const from = this.cluster.api.seen.length;
    const result = await process.sync(`vms/${name}`);
    return { result, requests: this.cluster.api.seen.slice(from) };
  }
}
