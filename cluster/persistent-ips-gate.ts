import type { KubeVirt } from '../api/kubevirt.js';
import { UNSERVED_NAMESPACE } from '../api/names.js';
import type { CommonConfig } from '../process/config/config.js';
import type { FeatureGates } from '../process/config/feature-gates.js';
import type { InformerRegistry } from '../kube/informers.js';
import { installedKubeVirt } from './kubevirt-controller.js';
import { KUBEVIRT_WATCH } from './watch-specs.js';

/** The name of the gate, also in the KubeVirt object. */
const PERSISTENT_IPS = 'PersistentIPs';

/** Decides whether new claims may be created. */
export interface PersistentIPsGate {
  isOpen(): boolean;
}

/**
 * Creates the gate that the flags select.
 * @param switched called when the gate opens or closes
 */
export function createPersistentIPsGate(
  { featureGates, featureGatesFromKubevirt }: Pick<CommonConfig, 'featureGates' | 'featureGatesFromKubevirt'>,
  informers: Pick<InformerRegistry, 'get'>,
  switched?: () => void,
): PersistentIPsGate {
  if (!featureGatesFromKubevirt) return gateFromFlags(featureGates);
  const kubevirts = informers.get(KUBEVIRT_WATCH);
  const gate = gateFromKubeVirt(kubevirts.cache);
  if (switched !== undefined) onGateChange(gate, kubevirts, switched);
  return gate;
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

/** Calls `switched` when the gate opens or closes, which only few changes of the objects cause. */
export function onGateChange(
  gate: PersistentIPsGate,
  objects: { onChange(handler: () => void): void },
  switched: () => void,
): void {
  let before = gate.isOpen();
  objects.onChange(() => {
    const open = gate.isOpen();
    if (open === before) return;
    before = open;
    switched();
  });
}
