/** What can be switched off as a whole. */
export interface FeatureGates {
  /** Claims for the interfaces of VMs on networks that allow persistent addresses. */
  readonly persistentIPs: boolean;
  /** Nodes are lent blocks of pools, from which their agents pick addresses for pods. */
  readonly nodeBlocks: boolean;
  /** Pools that say so show their free addresses on nodes, and pods ask for them. */
  readonly publishCapacity: boolean;
  /** Pools that say so keep released addresses for the MAC address that had them. */
  readonly stickyMAC: boolean;
}

const GATES = {
  PersistentIPs: 'persistentIPs',
  NodeBlocks: 'nodeBlocks',
  PublishCapacity: 'publishCapacity',
  StickyMAC: 'stickyMAC',
} as const satisfies Record<string, keyof FeatureGates>;
type GateName = keyof typeof GATES;

export const DEFAULT_FEATURE_GATES: FeatureGates = Object.freeze({
  persistentIPs: true,
  // for all pools at once: whoever has few nodes does better without
  nodeBlocks: false,
  publishCapacity: true,
  stickyMAC: true,
});

/** The gates that there are, as users write them. */
export const FEATURE_GATE_NAMES: readonly string[] = Object.keys(GATES);

/**
 * Reads Kubernetes' notation, `PersistentIPs=true,Other=false`. Gates that are not named keep their default.
 * @throws {TypeError} which names the gate or the value that cannot be
 */
export function parseFeatureGates(text: string): FeatureGates {
  const gates: Record<keyof FeatureGates, boolean> = { ...DEFAULT_FEATURE_GATES };
  for (const entry of text.split(',').map((part) => part.trim())) {
    if (entry === '') continue;
    const [name = '', value, ...rest] = entry.split('=').map((part) => part.trim());
    if (!isGate(name))
      throw new TypeError(`feature gate "${name}" is unknown; known: ${FEATURE_GATE_NAMES.join(', ')}`);
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
