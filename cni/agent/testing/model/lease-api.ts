import type { AddressLease } from '../../../../api/address-lease.js';
import type { KubeObject } from '../../../../api/meta.js';
import type { Pod } from '../../../../api/pod.js';
import { PODS } from '../../../../kube/resources.js';
import { MemoryTransport, targetOf } from '../../../../kube/testing/memory-transport.js';
import type { ApiRequest } from '../../../../kube/transport/transport.js';
import { LeaseServer } from '../../../../test/object-tracker/lease-server.js';
import { BlockStore } from './block-store.js';

/** The objects of the API server: leases under the rules of their CRD, blocks, and pods. */
export class LeaseCluster {
  readonly server: LeaseServer;
  readonly blocks: BlockStore;

  constructor(server = new LeaseServer()) {
    this.server = server;
    this.blocks = new BlockStore(server.tracker);
  }

  /** By key. */
  get pods(): ReadonlyMap<string, Pod> {
    return this.server.tracker.objects(PODS);
  }

  setPod(pod: Pod): void {
    this.server.tracker.put(PODS, pod);
  }

  deletePods(): void {
    for (const { metadata } of [...this.pods.values()]) this.server.tracker.remove(PODS, metadata);
  }

  /** Held leases. */
  held(): AddressLease[] {
    return [...this.server.leases.values()].filter(({ spec }) => spec.owner !== undefined && !spec.releasedAt);
  }
}

/** The connection of one agent to the API server. */
export class LeaseApi extends MemoryTransport {
  /** The requests that the server has received: `POST blue.10-0-0-1`, or `GET` with the selector of a list. */
  readonly seen: string[] = [];

  constructor({ server }: LeaseCluster) {
    super(server.tracker);
  }

  override serve(request: ApiRequest): unknown {
    this.seen.push(textOf(request));
    return super.serve(request);
  }
}

function textOf({ method, path, body, query }: ApiRequest): string {
  const name = targetOf(path).name ?? (body as KubeObject | undefined)?.metadata.name;
  return `${method} ${name ?? String(query?.fieldSelector)}`;
}
