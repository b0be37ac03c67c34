import { deliveryOf } from './nad-guests.js';
import { holdfastSection } from './ipam-delegation.js';
import { recordsIn } from '../json.js';
import { RESOURCE_NAME_ANNOTATION } from '../names.js';
import { type NetworkAttachmentDefinition, readCniConfig } from './network-attachment.js';

/** Maximum length of the name of a bridge, an interface or a device-plugin resource. */
const NAME_LENGTH = 253;
const MAX_VLAN = 4094;

/** How a plugin's config names its layer-2 segment: the kind of the object, the key of its name, and the key of the VLAN. */
interface SegmentFields {
  kind: string;
  name: string;
  vlan: string;
  /** The name if the config has none. */
  fallback?: string;
}

const BRIDGE: SegmentFields = { kind: 'bridge', name: 'bridge', vlan: 'vlan', fallback: 'cni0' };
/** Without `master`, the plugins use the interface of the default route. */
const MASTER_INTERFACE: SegmentFields = {
  kind: 'interface',
  name: 'master',
  vlan: 'vlan',
  fallback: 'of the default route',
};

/** By plugin type. The segment of other plugins is unknown. */
const FIELDS_BY_PLUGIN: ReadonlyMap<string, SegmentFields> = new Map([
  ['bridge', BRIDGE],
  ['cnv-bridge', BRIDGE],
  ['macvlan', MASTER_INTERFACE],
  ['ipvlan', MASTER_INTERFACE],
  ['vlan', { ...MASTER_INTERFACE, vlan: 'vlanId' }],
  ['ovs', { kind: 'OVS bridge', name: 'bridge', vlan: 'vlan' }],
]);

/**
 * Returns the layer-2 segment of a NAD that delegates IPAM to Holdfast or to none, for messages: `bridge br0` or `interface eth1, VLAN 100`.
 * NADs with equal results connect to the same segment on each node. Undefined if the config does not name it.
 */
export function layer2SegmentOf(nad: NetworkAttachmentDefinition): string | undefined {
  const config = readCniConfig(nad);
  if (!config.ok || config.value === undefined) return undefined;
  const plugin = servedPlugin(nad, config.value);
  if (plugin === undefined || plugin.linkInContainer === true) return undefined;
  if (plugin.type === 'sriov') {
    return describeSegment('SR-IOV resource', nad.metadata.annotations?.[RESOURCE_NAME_ANNOTATION], plugin.vlan);
  }
  const fields = typeof plugin.type === 'string' ? FIELDS_BY_PLUGIN.get(plugin.type) : undefined;
  if (fields === undefined) return undefined;
  return describeSegment(fields.kind, plugin[fields.name] ?? fields.fallback, plugin[fields.vlan]);
}

/** Returns the config of the plugin that delegates IPAM to Holdfast, or that connects guests to a layer-2 network. */
function servedPlugin(
  nad: NetworkAttachmentDefinition,
  config: Record<string, unknown>,
): Record<string, unknown> | undefined {
  const ours = holdfastSection(config);
  if (ours !== undefined) return ours.plugin;
  if (deliveryOf(nad).kind !== 'guest') return undefined;
  return config.plugins === undefined ? config : recordsIn(config.plugins)[0];
}

function describeSegment(kind: string, name: unknown, vlan: unknown = 0): string | undefined {
  if (typeof name !== 'string' || name === '' || name.length > NAME_LENGTH) return undefined;
  if (typeof vlan !== 'number' || !Number.isInteger(vlan) || vlan < 0 || vlan > MAX_VLAN) return undefined;
  return vlan === 0 ? `${kind} ${name}` : `${kind} ${name}, VLAN ${vlan}`;
}
