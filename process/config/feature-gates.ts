/** Features that can be disabled. */
export interface FeatureGates {
  /** Claims for the interfaces of VMs on networks that allow persistent addresses. */
  readonly persistentIPs: boolean;
  /** Claims for the pod networks of VMs in namespaces with a primary user-defined network of OVN-Kubernetes. */
  readonly primaryUserDefinedNetwork: boolean;
  /** Blocks of pools are assigned to nodes, and agents pick addresses for pods from them. */
  readonly nodeBlocks: boolean;
  /** Pools with publishCapacity show their free addresses on nodes, and pods request them. */
  readonly publishCapacity: boolean;
  /** Pools with stickyMAC keep released addresses for the MAC address that had them. */
  readonly stickyMAC: boolean;
}

const GATES = {
  PersistentIPs: 'persistentIPs',
  PrimaryUserDefinedNetwork: 'primaryUserDefinedNetwork',
  NodeBlocks: 'nodeBlocks',
  PublishCapacity: 'publishCapacity',
  StickyMAC: 'stickyMAC',
} as const satisfies Record<string, keyof FeatureGates>;
type GateName = keyof typeof GATES;

export const DEFAULT_FEATURE_GATES: FeatureGates = Object.freeze({
  persistentIPs: true,
  // kubevirt/ipam-extensions must not serve these networks, too
  primaryUserDefinedNetwork: false,
  // applies to all pools, and clusters with few nodes work better without blocks
  nodeBlocks: false,
  publishCapacity: true,
  stickyMAC: true,
});

/** The names of the gates, as users write them. */
export const FEATURE_GATE_NAMES: readonly string[] = Object.keys(GATES);

/**
 * Reads Kubernetes' notation, `PersistentIPs=true,Other=false`. Other gates keep their defaults.
 * @throws {TypeError} that names the unknown gate or invalid value
 */
export function parseFeatureGates(text: string): FeatureGates {
  const gates: Record<keyof FeatureGates, boolean> = { ...DEFAULT_FEATURE_GATES };
  for (const entry of text.split(',').map((part) => part.trim())) {
    if (entry === '') continue;
    const [name = '', value, ...rest] = entry.split('=').map((part) => part.trim());
    if (!isGate(name))
      throw new TypeError(`unknown feature gate "${name}"; known gates: ${FEATURE_GATE_NAMES.join(', ')}`);
    if (rest.length > 0 || (value !== 'true' && value !== 'false')) {
      throw new TypeError(`feature gate "${name}" must be written ${name}=true or ${name}=false`);
    }
    gates[GATES[name]] = value === 'true';
  }
  return Object.freeze(gates);
}

export function formatFeatureGates(gates: FeatureGates): string {
  return Object.entries(GATES)
    .map(([name, key]) => `${name}=${gates[key]}`)
    .join(',');
}

function isGate(name: string): name is GateName {
  return Object.hasOwn(GATES, name);
}
