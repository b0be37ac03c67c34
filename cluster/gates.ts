import type { KubeVirt } from '../api/kubevirt.js';
import { UNSERVED_NAMESPACE } from '../api/names.js';
import type { CommonConfig } from '../process/config.js';
import type { FeatureGates } from '../process/feature-gates.js';
import type { InformerRegistry } from '../kube/informers.js';
import { installedKubeVirt } from './kubevirt-controller.js';
import { KUBEVIRT_OBJECTS } from './watched.js';

/** The name that the gate has in the feature gates of the KubeVirt object, too. */
const PERSISTENT_IPS = 'PersistentIPs';

/** Whether new claims may be made. */
export interface Gate {
  isOpen(): boolean;
}

/**
 * The gate that the flags name.
 * @param switched is told when it opens or closes
 */
export function openGate(
  { featureGates, featureGatesFromKubevirt }: Pick<CommonConfig, 'featureGates' | 'featureGatesFromKubevirt'>,
  informers: Pick<InformerRegistry, 'get'>,
  switched?: () => void,
): Gate {
  if (!featureGatesFromKubevirt) return gateByFlag(featureGates);
  const kubevirts = informers.get(KUBEVIRT_OBJECTS);
  const gate = gateByKubeVirt(kubevirts.cache);
  if (switched !== undefined) onSwitch(gate, kubevirts, switched);
  return gate;
}

export function gateByFlag(gates: Pick<FeatureGates, 'persistentIPs'>): Gate {
  return { isOpen: () => gates.persistentIPs };
}

/** Open while the KubeVirt object that counts lists it; closed if there is no KubeVirt. */
export function gateByKubeVirt(cache: { list(): readonly KubeVirt[] }): Gate {
  const gates = () => installedKubeVirt(cache.list())?.spec?.configuration?.developerConfiguration?.featureGates;
  return { isOpen: () => gates()?.includes(PERSISTENT_IPS) === true };
}

/**
 * Whether new claims may be made in a namespace, as far as the gate and what the admission webhook leaves out go: a claim there
 * would have no pod pointed at it.
 * @param ownNamespace Holdfast's own
 */
export function isServed(namespace: string, gate: Gate, ownNamespace: string): boolean {
  return namespace !== UNSERVED_NAMESPACE && namespace !== ownNamespace && gate.isOpen();
}

/** Tells when the gate opens or closes, which few changes of the objects that it follows make it do. */
export function onSwitch(gate: Gate, objects: { onChange(handler: () => void): void }, switched: () => void): void {
  let before = gate.isOpen();
  objects.onChange(() => {
    const open = gate.isOpen();
    if (open === before) return;
    before = open;
    switched();
  });
}
