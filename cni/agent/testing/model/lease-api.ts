import type { AddressLease } from '../../../../api/address-lease.js';
import { type KubeObject, joinKey, objectKey } from '../../../../api/meta.js';
import type { Pod } from '../../../../api/pod.js';
import { StatusError, TransportError } from '../../../../kube/errors.js';
import type { ApiRequest, ClientTransport } from '../../../../kube/transport.js';
import { LeaseServer } from '../../../../test/lease-server.js';
import { BlockStore } from './block-store.js';

/** A fault of a request: it fails with this error, and was applied or not. */
export type Fault = { readonly error: Error; readonly applied: boolean } | undefined;

/** The objects of the API server: leases under the rules of their CRD, blocks, and pods. */
export class LeaseCluster {
  readonly blocks = new BlockStore();
  readonly server: LeaseServer;
  /** By key. */
  readonly pods = new Map<string, Pod>();

  constructor(server = new LeaseServer()) {
    this.server = server;
  }

  setPod(pod: Pod): void {
    this.pods.set(objectKey(pod), pod);
  }

  /** Held leases. */
  held(): AddressLease[] {
    return [...this.server.leases.values()].filter(({ spec }) => spec.owner !== undefined && !spec.releasedAt);
  }
}

const PATH = /\/(?:namespaces\/([^/]+)\/)?(addressleases|addressblocks|pods)(?:\/([^/]+)(?:\/status)?)?$/;

/** The connection of one agent to the API server. */
export class LeaseApi implements ClientTransport {
  /** The requests that the server has received: `POST blue.10-0-0-1`, or `GET` with the selector of a list. */
  readonly seen: string[] = [];
  /** Awaited before each request; an error that it throws is the answer. */
  before: (request: ApiRequest) => Fault | Promise<Fault> = () => undefined;
  readonly #cluster: LeaseCluster;

  constructor(cluster: LeaseCluster) {
    this.#cluster = cluster;
  }

  async request(request: ApiRequest): Promise<unknown> {
    if (request.signal?.aborted) throw new TransportError('aborted', 'aborted by the caller');
    const fault = await this.before(request);
    if (fault !== undefined && !fault.applied) throw fault.error;
    this.seen.push(textOf(request));
    const answer = request.method === 'GET' ? this.#read(request) : await this.#write(request, fault);
    if (fault !== undefined) throw fault.error;
    return answer;
  }

  stream(): never {
    throw new TypeError('this API has no watch: feeds read the log');
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async #write(request: ApiRequest, fault: Fault): Promise<unknown> {
    const [, , plural, name = ''] = PATH.exec(request.path) ?? [];
    try {
      if (plural === 'addressblocks') return this.#cluster.blocks.patch(name, request.body as never);
      return await this.#cluster.server.request(request);
    } catch (error) {
      throw fault?.error ?? error;
    }
  }

  #read({ path, query }: ApiRequest): unknown {
    const [, namespace, plural, name] = PATH.exec(path) ?? [];
    if (name === undefined) return { metadata: {}, items: structuredClone(this.#list(String(query?.fieldSelector))) };
    const { server, pods } = this.#cluster;
    const found: KubeObject | undefined =
      plural === 'pods' ? pods.get(joinKey(namespace, name)) : server.leases.get(name);
    if (found !== undefined) return structuredClone(found);
    const details = { name, kind: plural ?? '' };
    throw new StatusError({ request: 'GET', status: 404, reason: 'NotFound', message: name, details });
  }

  #list(fieldSelector: string): AddressLease[] {
    return [...this.#cluster.server.leases.values()].filter((lease) => isSelected(lease, fieldSelector));
  }
}

/** @param fieldSelector of the CRD's selectable fields */
export function isSelected({ spec }: AddressLease, fieldSelector: string): boolean {
  return fieldSelector.split(',').every((part) => {
    const [field = '', value] = part.split('=');
    const key = SELECTABLE.find((each) => field === `spec.${each}`);
    if (key === undefined) throw new TypeError(`${field} cannot be selected by`);
    return spec[key] === value;
  });
}

const SELECTABLE = ['node', 'addressSpace', 'pool', 'mac'] as const;

function textOf({ method, path, body, query }: ApiRequest): string {
  const name = PATH.exec(path)?.[3] ?? (body as KubeObject | undefined)?.metadata.name;
  return `${method} ${name ?? String(query?.fieldSelector)}`;
}
