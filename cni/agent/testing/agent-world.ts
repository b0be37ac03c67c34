import type { AddressLease } from '../../../api/address-lease.js';
import type { AddressPool } from '../../../api/address-pool.js';
import { type IPAMClaim, claimOwnerOf } from '../../../api/ipam-claim.js';
import { type KubeObject, joinKey, objectKey } from '../../../api/meta.js';
import { IPS_ALLOCATED, MIGRATION_LABEL, NETWORKS_ANNOTATION } from '../../../api/names.js';
import { interfaceNameOf, parseNetworkSelections } from '../../../api/networks/network-selection.js';
import type { Pod } from '../../../api/pod.js';
import type { Attachment } from '../attachment.js';
import type { RequestContext } from '../request-queue.js';
import { ClaimedAddresses } from '../claims/claimed-addresses.js';
import { NodePods, transformNodePod } from '../node-pods.js';
import { PoolLookup } from '../pool-lookup.js';
import { formatAddress, parseAddressOrPrefix } from '../../../addressing/address/address.js';
import { createLease } from '../../../addressing/lease/lease.js';
import type { Client } from '../../../kube/client.js';
import type { Clock } from '../../../kube/clock.js';
import { TransportError } from '../../../kube/errors.js';
import { abortable } from '../../../kube/transport/deadline.js';
import { silentLogger } from '../../../kube/log.js';
import type { ObjectRef, Resource } from '../../../kube/resource.js';
import type { InformerRegistry } from '../../../kube/informers/informers.js';
import type { KubeVirtController } from '../../../cluster/kubevirt-controller.js';
import { TestInformer } from '../../../kube/testing/test-informer.js';
import { selectorOf } from '../../../kube/testing/selectors.js';
import { apiError } from '../../../test/api-errors.js';
import { makeClaim, makeLauncherPod, makeVm, makeVmi, networksValue } from '../../../test/objects/kubevirt-objects.js';
import { ManualClock } from '../../../test/manual-clock.js';
import { adminPool, holdfastConfig, nadDefinition } from '../../../test/objects/pool-objects.js';
import { NAMESPACE, type Networks } from '../../../test/objects/workload-objects.js';

/** A clock without real waiting: a sleep advances the time and fires the timers that are due. */
export class SelfAdvancingClock extends ManualClock {
  /** Called after each step. */
  onStep: () => void = () => undefined;

  constructor() {
    super(Date.UTC(2026, 0, 1));
  }

  override async sleep(ms: number): Promise<void> {
    await Promise.resolve();
    this.advance(ms);
  }

  advance(ms: number): void {
    this.advanceTo(this.now() + ms);
    this.onStep();
  }
}

const NODE = 'node1';

/** The cluster of one agent: an API server that can become unavailable, the pods of node1, NADs and pools. */
export class AgentWorld {
  /** By `<plural> <key>`. */
  readonly objects = new Map<string, KubeObject>();
  /** `<plural> <key>` of each read. */
  readonly reads: string[] = [];
  /** The error of all reads while the API server is not available. */
  fault: Error | undefined;
  /** Awaited before each answer. */
  before: (read: string) => Promise<void> | void = () => undefined;
  readonly podInformer = new TestInformer({ uid: ({ metadata }: Pod) => [metadata.uid ?? ''] });
  /** Of administrators. */
  readonly pools = new TestInformer<AddressPool>();
  gateOpen = true;
  kubevirt: KubeVirtController = { username: 'system:serviceaccount:kubevirt:kubevirt-controller' };
  readonly maxStalenessMs = 30_000;
  readonly clock: Clock;
  readonly pods: NodePods;
  readonly claimed: ClaimedAddresses;

  constructor(clock: Clock = new SelfAdvancingClock()) {
    this.clock = clock;
    this.addNad('blue');
    this.pools.set(adminPool('blue'));
    const informers = { get: () => this.podInformer } as unknown as InformerRegistry;
    const shared = { client: this.client, clock, log: silentLogger };
    this.pods = new NodePods({ ...shared, informers, nodeName: NODE });
    this.claimed = new ClaimedAddresses({
      ...shared,
      pods: this.pods,
      lookup: new PoolLookup({ ...shared, adminPools: this.pools, maxStalenessMs: this.maxStalenessMs }),
      gate: { isOpen: () => this.gateOpen },
      kubevirt: { controller: () => this.kubevirt },
      random: () => 0.5,
      config: { maxStalenessMs: this.maxStalenessMs },
    });
  }

  get client(): Pick<Client, 'get' | 'listAs'> {
    return {
      get: (resource, ref) => this.#get(resource, ref) as Promise<never>,
      listAs: async (resource, transform, options) => {
        const read = `${resource.plural} ${options?.labelSelector}`;
        this.reads.push(read);
        const { signal = new AbortController().signal } = options ?? {};
        await abortable(Promise.resolve(this.before(read)), signal);
        if (this.fault !== undefined) throw this.fault;
        const found = [...this.objects].filter(([id]) => id.startsWith(`${resource.plural} `));
        const isSelected = selectorOf(resource, options ?? {});
        const items = found.flatMap(([, object]) => (isSelected(object) ? [transform(object as never)] : []));
        return { items, resourceVersion: '1' };
      },
    };
  }

  disconnect(): void {
    this.fault = new TransportError('unsent', 'connection refused');
  }

  /** Adds a NAD. @param persistent whether it allows persistent addresses */
  addNad(name: string, persistent = true, network = name): void {
    const config = { ...holdfastConfig({}, network), allowPersistentIPs: persistent };
    this.put('network-attachment-definitions', nadDefinition(`${NAMESPACE}/${name}`, config));
  }

  removeNad(name: string): void {
    this.remove('network-attachment-definitions', `${NAMESPACE}/${name}`);
  }

  put<T extends KubeObject>(plural: string, object: T): T {
    this.objects.set(`${plural} ${objectKey(object)}`, object);
    return object;
  }

  remove(plural: string, key: string): void {
    this.objects.delete(`${plural} ${key}`);
  }

  claim(name = 'vm1.data'): IPAMClaim {
    const found = this.objects.get(`ipamclaims ${NAMESPACE}/${name}`);
    if (found === undefined) throw new TypeError(`there is no claim ${name}`);
    return found as IPAMClaim;
  }

  /** Adds a VM, its VMI, and a claim with leases for each network. */
  addVm(name = 'vm1', networks: Networks = { data: 'blue' }, ips = ['10.0.0.5/24']): void {
    this.put('virtualmachines', makeVm(name));
    this.put('virtualmachineinstances', makeVmi(name, networks));
    for (const vmNetwork of Object.keys(networks)) this.addClaim(makeClaim(name, vmNetwork), ips);
  }

  /** Adds a claim with addresses and leases. */
  addClaim(claim: IPAMClaim, ips: string[]): IPAMClaim {
    const condition = { type: IPS_ALLOCATED, status: 'True' as const, reason: 'SuccessfulAllocation', message: '' };
    const conditions = [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }];
    const stored = this.put('ipamclaims', { ...claim, status: { ...claim.status, ips, conditions } });
    for (const ip of ips) this.addLease(ip, stored);
    return stored;
  }

  addLease(ip: string, claim: IPAMClaim, addressSpace = 'blue', pool = 'blue'): AddressLease {
    const { namespace = '', name, uid = '' } = claim.metadata;
    const { address } = parseAddressOrPrefix(ip);
    const workloadUID = claimOwnerOf(claim)?.uid;
    const workload = workloadUID !== undefined && { workloadUID };
    const owner = { kind: 'IPAMClaim' as const, namespace, name, uid, ...workload };
    const write = createLease({ address, addressSpace, pool, owner });
    const metadata = { ...write.object.metadata, uid: `${formatAddress(address)}-uid`, resourceVersion: '1' };
    return this.put('addressleases', { ...write.object, metadata });
  }

  /** Adds a pod on node1, in the cache and on the API server. */
  addPod(pod: Pod, onNode = NODE): Pod {
    const bound: Pod = { ...pod, spec: { nodeName: onNode }, status: pod.status ?? { phase: 'Pending' } };
    this.put('pods', bound);
    if (onNode === NODE) this.podInformer.set(transformNodePod(bound));
    return bound;
  }

  launcher(vm = 'vm1', given: LauncherOptions = {}): Pod {
    const { networks = { data: 'blue' }, references, migration, node = NODE, phase = 'Pending' } = given;
    const vmi = makeVmi(vm, networks);
    const { metadata } = makeLauncherPod(vmi, networksValue(vmi, references)) as unknown as Pod;
    const name = given.name ?? `virt-launcher-${vm}-a`;
    const labels = { ...metadata.labels, ...(migration !== undefined && { [MIGRATION_LABEL]: migration }) };
    const creationTimestamp = given.born ?? '2026-01-01T00:00:00Z';
    const pod = { metadata: { ...metadata, name, uid: `${name}-uid`, labels, creationTimestamp }, status: { phase } };
    return this.addPod(pod, node);
  }

  tenantPod(reference?: string, more: Partial<Pod['metadata']> = {}): Pod {
    const element = { name: 'blue', interface: 'net1', 'ipam-claim-reference': reference };
    const annotations = { [NETWORKS_ANNOTATION]: JSON.stringify([element]) };
    return this.addPod({ metadata: { name: 'p1', namespace: NAMESPACE, uid: 'p1-uid', annotations, ...more } });
  }

  /** Returns the attachment of an interface of a pod. */
  attachment(pod: Pod, index = 0, network = 'blue'): Attachment {
    const selections = parseNetworkSelections(pod.metadata.annotations?.[NETWORKS_ANNOTATION] ?? '', NAMESPACE);
    const selection = selections[index];
    if (selection === undefined) throw new RangeError(`pod ${pod.metadata.name} has no network ${index}`);
    const interfaceName = interfaceNameOf(selection);
    const node = transformNodePod(pod);
    return { pod: node, containerId: 'c1', interfaceName, network, selection, requested: [], mac: undefined };
  }

  call(ms = 10_000): RequestContext {
    const controller = new AbortController();
    this.clock.setTimer(ms, () => controller.abort());
    return { signal: controller.signal };
  }

  /** Runs an ADD. @returns the addresses with prefix, `none`, or the error's code and message */
  async add(pod: Pod, index = 0, call: RequestContext = this.call()): Promise<string> {
    const attachment = this.attachment(pod, index);
    try {
      const grant = await this.claimed.grant(attachment, call);
      if (grant === undefined) return 'none';
      return grant.map(({ address, prefixLength }) => `${formatAddress(address)}/${prefixLength}`).join(' ');
    } catch (error) {
      const { code, message } = error as { code?: number; message: string };
      if (code === undefined) throw error;
      return `${code} ${message}`;
    }
  }

  async #get(resource: Resource, { namespace, name }: ObjectRef): Promise<KubeObject> {
    const id = `${resource.plural} ${joinKey(namespace, name)}`;
    this.reads.push(id);
    await this.before(id);
    if (this.fault !== undefined) throw this.fault;
    const object = this.objects.get(id);
    if (object !== undefined) return structuredClone(object);
    throw apiError(404, 'NotFound', 'not found', name);
  }
}

interface LauncherOptions {
  name?: string;
  networks?: Networks;
  /** Claims by network. */
  references?: Record<string, string>;
  migration?: string;
  node?: string;
  phase?: string;
  born?: string;
}

/** Returns a world with VM vm1, its VMI, claim and lease. */
export function worldWithVm(clock?: Clock): AgentWorld {
  const world = new AgentWorld(clock);
  world.addVm();
  return world;
}
