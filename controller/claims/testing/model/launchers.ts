import { addressTextsOf, claimOwnerOf } from '../../../../api/ipam-claim.js';
import { type VirtualMachineInstance, secondaryNetworks } from '../../../../api/kubevirt.js';
import { isBeingDeleted, joinKey, objectKey } from '../../../../api/meta.js';
import { NETWORKS_ANNOTATION, NETWORK_STATUS_ANNOTATION } from '../../../../api/names.js';
import { type Pod, controllingVmi, isTerminal } from '../../../../api/pod.js';
import { ownerOfVmi } from '../../../../api/vm-claims.js';
import { NAMESPACE, vmiReference } from '../../../../test/objects/workload-objects.js';
import { type SelectionElement, admitElements, networkOf } from './webhook.js';
import type { ClaimsWorld } from './world.js';

export interface NetworkStatusEntry {
  name: string;
  interface: string;
  ips?: string[];
}

/** The launcher pods of a model world, as virt-controller, kubelet and Multus handle them. */
export class Launchers {
  /** The claim whose addresses each interface of a pod has: pod UID → interface → claim UID. */
  readonly #uses = new Map<string, Map<string, string>>();
  readonly #world: ClaimsWorld;
  #created = 0;

  constructor(world: ClaimsWorld) {
    this.#world = world;
  }

  /** Launchers that have not ended, in the order of their creation. */
  of(vmi: VirtualMachineInstance): Pod[] {
    return this.running().filter((pod) => controllingVmi(pod)?.uid === vmi.metadata.uid);
  }

  running(): Pod[] {
    return this.#world.list('launchers').filter((pod) => !isTerminal(pod));
  }

  podsOfClaim(claimUid: string): Pod[] {
    return this.running().filter((pod) => [...this.#usesOf(pod).values()].includes(claimUid));
  }

  create(vmi: VirtualMachineInstance): boolean {
    const networks = secondaryNetworks(vmi.spec, NAMESPACE);
    if (networks.some(({ nad }) => networkOf(this.#world, joinKey(nad.namespace, nad.name)) === undefined))
      return false;
    const elements = admitElements(this.#world, vmi, []);
    if (elements === undefined) return false;
    this.#world.create('launchers', {
      metadata: {
        name: `virt-launcher-${++this.#created}`,
        namespace: NAMESPACE,
        labels: { 'kubevirt.io': 'virt-launcher' },
        annotations: { [NETWORKS_ANNOTATION]: JSON.stringify(elements) },
        ownerReferences: [vmiReference(vmi.metadata.uid ?? '', vmi.metadata.name)],
        finalizers: ['kubelet'],
      },
      status: { phase: 'Pending' },
    });
    return true;
  }

  /** Writes the annotation again from the VMI's spec, as virt-controller does. The webhook reviews that as well. */
  regenerate(vmi: VirtualMachineInstance): boolean {
    const before = this.#world.version;
    for (const pod of this.of(vmi)) {
      const attached = statusOf(pod).map((entry) => entry.interface);
      const held = elementsOf(pod).filter((element) => attached.includes(element.interface));
      const elements = admitElements(this.#world, vmi, held);
      if (elements !== undefined) this.#annotate(pod, NETWORKS_ANNOTATION, elements);
    }
    return this.#world.version !== before;
  }

  /** Does CNI ADD for networks that the annotation requests and the pod lacks. It waits for the claims. */
  attach(pod: Pod): boolean {
    if (isTerminal(pod) || isBeingDeleted(pod)) return false;
    const status = statusOf(pod);
    const missing = elementsOf(pod).filter((element) => !status.some((entry) => entry.interface === element.interface));
    if (missing.length === 0 && pod.status?.phase === 'Running') return false;
    const uses = new Map(this.#usesOf(pod));
    for (const element of missing) {
      if (element['ipam-claim-reference'] === undefined) continue;
      const claim = this.#claimFor(pod, element, element['ipam-claim-reference']);
      if (claim === undefined) return false;
      uses.set(element.interface, claim);
    }
    this.#uses.set(pod.metadata.uid ?? '', uses);
    this.#noteOwnerPod(pod, [...uses.values()]);
    const added = missing.map((element) => {
      const ips = this.#addressesOf(uses.get(element.interface));
      return { name: nadOf(element), interface: element.interface, ...(ips.length > 0 && { ips }) };
    });
    this.#annotate(pod, NETWORK_STATUS_ANNOTATION, [...status, ...added]);
    return this.setPhase(pod, 'Running');
  }

  /** Does CNI DEL for networks that the annotation no longer requests. */
  detach(pod: Pod): boolean {
    const elements = elementsOf(pod);
    const status = statusOf(pod);
    const kept = status.filter((entry) =>
      elements.some((e) => e.interface === entry.interface && nadOf(e) === entry.name),
    );
    if (kept.length === status.length || isTerminal(pod)) return false;
    for (const entry of status) if (!kept.includes(entry)) this.#usesOf(pod).delete(entry.interface);
    this.#annotate(pod, NETWORK_STATUS_ANNOTATION, kept);
    return true;
  }

  setPhase(pod: Pod, phase: string): boolean {
    this.#world.update('launchers', objectKey(pod), (copy) => {
      copy.status = { phase };
    });
    if (phase !== 'Running') this.#uses.delete(pod.metadata.uid ?? '');
    return true;
  }

  remove(pod: Pod): boolean {
    this.#world.dropFinalizers('launchers', objectKey(pod), 'kubelet');
    this.#uses.delete(pod.metadata.uid ?? '');
    return true;
  }

  /** The claim that the node's agent answers with: it must belong to the pod's owner and to the network of the NAD. */
  #claimFor(pod: Pod, element: SelectionElement, reference: string): string | undefined {
    const { name = '', uid } = controllingVmi(pod) ?? {};
    const vmi = this.#world.get('vmis', joinKey(NAMESPACE, name));
    const claim = this.#world.get('claims', joinKey(NAMESPACE, reference));
    if (vmi === undefined || vmi.metadata.uid !== uid || claim === undefined) return undefined;
    const config = networkOf(this.#world, nadOf(element));
    const fits = config?.ok === true && config.network.name === claim.spec.network;
    return fits && claimOwnerOf(claim)?.uid === ownerOfVmi(vmi).uid ? claim.metadata.uid : undefined;
  }

  #addressesOf(claimUid: string | undefined): string[] {
    const claim = this.#world.list('claims').find(({ metadata }) => metadata.uid === claimUid);
    return claim === undefined ? [] : addressTextsOf(claim);
  }

  /** Writes the pod into the status of its claims, as ipam does. */
  #noteOwnerPod({ metadata: { name } }: Pod, claimUids: readonly string[]): void {
    for (const claim of this.#world.list('claims').filter(({ metadata }) => claimUids.includes(metadata.uid ?? ''))) {
      this.#world.update('claims', objectKey(claim), (copy) => {
        copy.status = { ...copy.status, ownerPod: { name } };
      });
    }
  }

  #usesOf(pod: Pod): Map<string, string> {
    return this.#uses.get(pod.metadata.uid ?? '') ?? new Map<string, string>();
  }

  #annotate(pod: Pod, annotation: string, value: object): void {
    this.#world.update('launchers', objectKey(pod), ({ metadata }) => {
      metadata.annotations = { ...metadata.annotations, [annotation]: JSON.stringify(value) };
    });
  }
}

export function statusOf(pod: Pod): NetworkStatusEntry[] {
  return JSON.parse(pod.metadata.annotations?.[NETWORK_STATUS_ANNOTATION] ?? '[]') as NetworkStatusEntry[];
}

export function elementsOf(pod: Pod): SelectionElement[] {
  return JSON.parse(pod.metadata.annotations?.[NETWORKS_ANNOTATION] ?? '[]') as SelectionElement[];
}

function nadOf({ namespace, name }: SelectionElement): string {
  return joinKey(namespace, name);
}
