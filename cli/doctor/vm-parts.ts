import { type IPAMClaim, claimNadOf, claimOwnerOf, labelValue } from '../../api/ipam-claim.js';
import { secondaryNetworks, type VirtualMachine } from '../../api/kubevirt.js';
import { joinKey, objectKey } from '../../api/meta.js';
import { CLAIM_VM_LABEL } from '../../api/names.js';
import type { NetworkAttachmentDefinition } from '../../api/networks/network-attachment.js';
import { controllingVmi } from '../../api/pod.js';
import { unnotedClaimNames } from '../../api/vm-claims.js';
import { StatusError } from '../../kube/errors.js';
import { groupBy } from '../group-by.js';
import type { Read, Unread } from '../reader.js';
import { isOptedOut } from '../trace/networks.js';
import type { ObservedVmTrace } from '../trace/observed.js';
import { type NarrowedList, type ObservedCluster, inAllNamespaces } from './observe.js';

const refusal = new StatusError({ request: 'GET', status: 403, reason: 'Forbidden', message: '' });
/** A part of the story that is not read for each VM. */
const NOT_READ: Unread = { kind: 'forbidden', why: 'not read', error: refusal };
const ABSENT: Unread = { ...NOT_READ, kind: 'absent' };

/** The stories of all VMs, from one observation of the cluster. */
export class VmParts {
  readonly #observed: ObservedCluster;
  readonly #isGateUnknown: boolean;
  readonly #nads: ReadonlyMap<string, NetworkAttachmentDefinition> | undefined;
  readonly #namespaces;
  readonly #claims;
  readonly #pools;
  readonly #events;
  readonly #launchers;
  readonly #traced = new Set<IPAMClaim>();

  constructor(observed: ObservedCluster, isGateUnknown: boolean) {
    const { nads, namespaces = [], claims = [], pools = [], events = [], launchers = [] } = observed;
    this.#observed = observed;
    this.#isGateUnknown = isGateUnknown;
    this.#nads = nads && new Map(nads.map((nad) => [objectKey(nad), nad]));
    this.#namespaces = new Map(namespaces.map((each) => [each.metadata.name, each]));
    this.#claims = groupBy(claims, ({ metadata: { namespace = '', name, labels } }) => [
      `${namespace} ${labels?.[CLAIM_VM_LABEL] ?? ''}`,
      joinKey(namespace, name),
    ]);
    this.#pools = groupBy(pools, ({ spec }) => spec.network);
    this.#events = groupBy(events, ({ metadata, involvedObject }) =>
      joinKey(metadata.namespace ?? '', involvedObject.name),
    );
    this.#launchers = groupBy(launchers, (pod) =>
      joinKey(pod.metadata.namespace ?? '', controllingVmi(pod)?.name ?? ''),
    );
  }

  /** False if not all claims of the VM are read, or if its namespace deliberately gets none. */
  isTold({ metadata: { namespace = '' } }: VirtualMachine): boolean {
    return this.#has('claims', namespace) && !isOptedOut({ namespaceObject: this.#namespaceObject(namespace) });
  }

  /** The VM's story contains its claims. */
  ofVm(vm: VirtualMachine): ObservedVmTrace {
    const { namespace = '', name } = vm.metadata;
    const networks = [...secondaryNetworks(vm.spec?.template?.spec, namespace)];
    const claims = this.#claimsOf(vm);
    // one of another VM may have the name that this VM needs
    for (const claim of claims) if ((claimOwnerOf(claim)?.name ?? name) === name) this.#traced.add(claim);
    const nads = networks.map(({ nad }) => joinKey(nad.namespace, nad.name));
    return { ...this.#partsOf(namespace, name, { nads, claims }), vm: found(vm) };
  }

  isTraced(claim: IPAMClaim): boolean {
    return this.#traced.has(claim);
  }

  /** The story of a claim alone. @param name of its VM or VMI */
  ofClaim(claim: IPAMClaim, name: string): ObservedVmTrace {
    const nad = claimNadOf(claim);
    const parts = { nads: nad === undefined ? [] : [nad], claims: [claim] };
    return { ...this.#partsOf(claim.metadata.namespace ?? '', name, parts), vm: NOT_READ };
  }

  #partsOf(
    namespace: string,
    name: string,
    { nads, claims }: { nads: readonly string[]; claims: readonly IPAMClaim[] },
  ): Omit<ObservedVmTrace, 'vm'> {
    const { now = 0, pools } = this.#observed;
    const key = joinKey(namespace, name);
    const networks = new Set(claims.map(({ spec }) => spec.network));
    const unreadEvents = { ...NOT_READ, why: `kubectl holdfast trace vm ${name} -n ${namespace} shows why` };
    return {
      ...{ namespace, name, now, claims: found(claims), isGateUnknown: this.#isGateUnknown },
      ...{ vmi: NOT_READ, leases: NOT_READ, agents: new Map() },
      namespaceObject: this.#namespaceObject(namespace),
      nads: new Map(nads.map((each) => [each, this.#nad(each)])),
      pools: pools === undefined ? NOT_READ : found([...networks].flatMap((each) => this.#pools.get(each) ?? [])),
      events: this.#has('events', namespace) ? found(this.#events.get(key) ?? []) : unreadEvents,
      pods: this.#has('launchers', namespace) ? found(this.#launchers.get(key) ?? []) : NOT_READ,
    };
  }

  #has(list: NarrowedList, namespace: string): boolean {
    const isWhole = inAllNamespaces(this.#observed, list) !== undefined;
    return isWhole || (this.#observed[list] !== undefined && namespace === this.#observed.onlyNamespace);
  }

  #namespaceObject(namespace: string): ObservedVmTrace['namespaceObject'] {
    const object = this.#namespaces.get(namespace);
    return object === undefined ? NOT_READ : found(object);
  }

  #nad(key: string): Read<NetworkAttachmentDefinition> {
    const nad = this.#nads?.get(key);
    if (nad !== undefined) return found(nad);
    const [namespace = ''] = key.split('/');
    return this.#has('nads', namespace) ? ABSENT : NOT_READ;
  }

  #claimsOf(vm: VirtualMachine): IPAMClaim[] {
    const { namespace = '', name } = vm.metadata;
    const networks = vm.spec?.template?.spec?.networks ?? [];
    const names = networks.flatMap((network) => unnotedClaimNames(name, network.name));
    const keys = [`${namespace} ${labelValue(name)}`, ...names.map((each) => joinKey(namespace, each))];
    return [...new Set(keys.flatMap((key) => this.#claims.get(key) ?? []))];
  }
}

function found<T>(value: T): Read<T> {
  return { kind: 'found', value };
}
