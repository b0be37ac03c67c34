import type { KubeVirt } from '../api/kubevirt.js';
import { UNSERVED_NAMESPACE } from '../api/names.js';
import type { CommonConfig } from '../process/config/config.js';
import type { FeatureGates } from '../process/config/feature-gates.js';
import type { KubeObject } from '../api/meta.js';
import type { Informer } from '../kube/informers/informer.js';
import type { InformerRegistry, WatchSpec } from '../kube/informers/informers.js';
import { installedKubeVirt } from './kubevirt-controller.js';
import { KUBEVIRT_WATCH } from './watch-specs.js';

/** The name of the gate, also in the KubeVirt object. */
const PERSISTENT_IPS = 'PersistentIPs';

/** Decides whether new claims may be created. */
export interface PersistentIPsGate {
  isOpen(): boolean;
}

/** The gate of a component, with the watches that the component needs only while it is open. */
export interface WatchingGate extends PersistentIPsGate {
  /**
   * Returns an informer that watches while KubeVirt opens the gate. The gate is closed until the informer has listed. Call it before the informers
   * start.
   * @param isNeededToo whether it watches while the gate is closed
   */
  informer<T extends KubeObject, S extends KubeObject = T>(
    watched: WatchSpec<T, S>,
    isNeededToo?: () => boolean,
  ): Informer<T, S>;
}

/**
 * Creates the gate that the flags select.
 * @param switched called when the gate opens or closes
 */
export function createPersistentIPsGate(
  { featureGates, featureGatesFromKubevirt }: Pick<CommonConfig, 'featureGates' | 'featureGatesFromKubevirt'>,
  informers: Pick<InformerRegistry, 'get' | 'getWhile' | 'update'>,
  switched: () => void = () => undefined,
): WatchingGate {
  if (!featureGatesFromKubevirt) {
    const fixed = gateFromFlags(featureGates);
    return { ...fixed, informer: (watched, isNeededToo) => informers.getWhile(watched, either(fixed, isNeededToo)) };
  }
  const kubevirts = informers.get(KUBEVIRT_WATCH);
  const wanted = gateFromKubeVirt(kubevirts.cache);
  const needed: Pick<Informer<never>, 'hasSynced'>[] = [];
  const gate = { isOpen: () => wanted.isOpen() && needed.every(({ hasSynced }) => hasSynced) };
  kubevirts.onChange(() => informers.update());
  const tell = tellChanges(gate, switched);
  kubevirts.onChange(tell);
  return {
    ...gate,
    informer: (watched, isNeededToo) => {
      const informer = informers.getWhile(watched, either(wanted, isNeededToo));
      needed.push(informer);
      informer.onSynced(tell);
      return informer;
    },
  };
}

function either(gate: PersistentIPsGate, isNeededToo: () => boolean = () => false): () => boolean {
  return () => gate.isOpen() || isNeededToo();
}

export function gateFromFlags(gates: Pick<FeatureGates, 'persistentIPs'>): PersistentIPsGate {
  return { isOpen: () => gates.persistentIPs };
}

/** Returns a gate that is open while the installed KubeVirt object lists it; closed without KubeVirt. */
export function gateFromKubeVirt(cache: { list(): readonly KubeVirt[] }): PersistentIPsGate {
  const gates = () => installedKubeVirt(cache.list())?.spec?.configuration?.developerConfiguration?.featureGates;
  return { isOpen: () => gates()?.includes(PERSISTENT_IPS) === true };
}

/**
 * True if the gate is open and the admission webhook serves the namespace. In other namespaces, no pod would refer to a claim.
 * @param ownNamespace Holdfast's own namespace
 */
export function isNamespaceServed(namespace: string, gate: PersistentIPsGate, ownNamespace: string): boolean {
  return namespace !== UNSERVED_NAMESPACE && namespace !== ownNamespace && gate.isOpen();
}

/** Returns a function that calls `switched` if the gate has opened or closed since its last call. */
export function tellChanges(gate: PersistentIPsGate, switched: () => void): () => void {
  let before = gate.isOpen();
  return () => {
    const open = gate.isOpen();
    if (open === before) return;
    before = open;
    switched();
  };
}
