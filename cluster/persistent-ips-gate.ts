import type { KubeVirt } from '../api/kubevirt.js';
import { UNSERVED_NAMESPACE } from '../api/names.js';
import type { CommonConfig } from '../process/config.js';
import type { FeatureGates } from '../process/feature-gates.js';
import type { InformerRegistry } from '../kube/informers.js';
import { installedKubeVirt } from './kubevirt-controller.js';
import { KUBEVIRT_WATCH } from './watch-specs.js';

/** The name that the gate has in the feature gates of the KubeVirt object, too. */
const PERSISTENT_IPS = 'PersistentIPs';

/** Whether new claims may be made. */
export interface PersistentIPsGate {
  isOpen(): boolean;
}

/**
 * The gate that the flags name.
 * @param switched is told when it opens or closes
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

/** Open while the KubeVirt object that counts lists it; closed if there is no KubeVirt. */
export function gateFromKubeVirt(cache: { list(): readonly KubeVirt[] }): PersistentIPsGate {
  const gates = () => installedKubeVirt(cache.list())?.spec?.configuration?.developerConfiguration?.featureGates;
  return { isOpen: () => gates()?.includes(PERSISTENT_IPS) === true };
}

/**
 * Whether new claims may be made in a namespace, as far as the gate and what the admission webhook leaves out go: a claim there
 * would have no pod pointed at it.
 * @param ownNamespace Holdfast's own
 */
export function isNamespaceServed(namespace: string, gate: PersistentIPsGate, ownNamespace: string): boolean {
  return namespace !== UNSERVED_NAMESPACE && namespace !== ownNamespace && gate.isOpen();
}

/** Tells when the gate opens or closes, which few changes of the objects that it follows make it do. */
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
