import { HOLDFAST_IPAM, type IpamSection, ipamSections } from './ipam-delegation.js';
import { asList, asRecord, describeValue, isRecord, recordsIn, truncate } from '../json.js';
import { GUEST_LIMITS, POOL_LIMITS } from '../limits.js';
import { type NetworkAttachmentDefinition, readCniConfig } from './network-attachment.js';

/** The bridge plugin and that of OpenShift. */
export const BRIDGE_PLUGINS: readonly unknown[] = ['bridge', 'cnv-bridge'];
/** CNI plugins that connect an interface to a layer-2 network and assign no address without an `ipam` object. */
const LAYER2_PLUGINS = ['bridge', 'cnv-bridge', 'macvlan', 'sriov', 'ovs', 'macvtap'] as const;
type Layer2Plugin = (typeof LAYER2_PLUGINS)[number];

/** Plugins after the first one of a list that change an interface but never its addresses. */
const CHAINED_PLUGINS: readonly unknown[] = ['tuning', 'cnv-tuning', 'bandwidth', 'vrf', 'sbr', HOLDFAST_IPAM];

/** Keys that decide about IPAM. Go reads keys in any case, so another spelling is read by a plugin but not here. */
const CASE_SENSITIVE_KEYS = ['ipam', 'plugins', 'role', 'type'];

/** Who brings the addresses of a NAD to an interface. */
export type Delivery =
  /** The CNI plugin: the NAD delegates IPAM, to Holdfast or another IPAM. */
  | { kind: 'cni'; bringsDefaultRoute?: true }
  /** Nobody on the node: the guest gets them by DHCP or cloud-init, if a pool has `spec.guest`. */
  | { kind: 'guest'; plugin: Layer2Plugin; disablesContainerInterface: boolean }
  /** The NAD has no IPAM, and Holdfast must not serve its guests. `why` is a clause about the NAD. */
  | { kind: 'none'; why: string };

/** Returns how the addresses of a NAD get to an interface. Never throws. */
export function deliveryOf(nad: NetworkAttachmentDefinition): Delivery {
  const config = readCniConfig(nad);
  if (!config.ok) return none(`${config.problem.field} ${config.problem.message}`);
  if (config.value === undefined) return none('its config is a file on the nodes, which Holdfast cannot read');
  const sections = ipamSections(config.value);
  if (sections.length > 0)
    return { kind: 'cni', ...(sections.some(bringsDefaultRoute) && { bringsDefaultRoute: true }) };
  const { plugins, role } = config.value;
  const problem = uncertainIpam(config.value);
  if (problem !== undefined) return none(problem);
  if (role === 'primary') return none('its network is a primary user-defined network');
  const [first, ...others] = plugins === undefined ? [config.value] : asList(plugins).filter(isRecord);
  const plugin = LAYER2_PLUGINS.find((type) => type === first?.type);
  if (first === undefined || plugin === undefined)
    return none(`its plugin is ${typeOf(first)}, not one of ${LAYER2_PLUGINS.join(', ')}`);
  const unknown = others.find(({ type }) => !CHAINED_PLUGINS.includes(type));
  if (unknown !== undefined) return none(`its plugin ${typeOf(unknown)} may assign addresses`);
  return { kind: 'guest', plugin, disablesContainerInterface: first.disableContainerInterface === true };
}

/** Returns why a config without IPAM may have one for programs that read it in another way; undefined if it has none. */
export function uncertainIpam(config: Record<string, unknown>): string | undefined {
  const places: [string, unknown][] = [['spec.config', config]];
  asList(config.plugins).forEach((plugin, index) => places.push([`spec.config.plugins[${index}]`, plugin]));
  return places.map(([path, plugin]) => problemOf(path, plugin)).find((found) => found !== undefined);
}

/** An IPv4 default route of the launcher, which KubeVirt's DHCP server passes on to the guest. */
function bringsDefaultRoute({ plugin, ipam }: IpamSection): boolean {
  const routes = recordsIn(asList(ipam.routes).slice(0, GUEST_LIMITS.routes));
  return plugin.isDefaultGateway === true || routes.some(({ dst }) => dst === '0.0.0.0/0');
}

function none(why: string): Delivery {
  return { kind: 'none', why };
}

/** Returns why a plugin's config cannot be read with certainty. */
function problemOf(path: string, plugin: unknown): string | undefined {
  if (!isRecord(plugin)) return `${path} is ${describeValue(plugin)}`;
  const misspelled = Object.keys(plugin).find(
    (key) => !CASE_SENSITIVE_KEYS.includes(key) && CASE_SENSITIVE_KEYS.includes(key.toLowerCase()),
  );
  if (misspelled !== undefined) return `${path}.${misspelled} must be written in lower case`;
  const { ipam = {} } = plugin;
  if (ipam === null) return undefined;
  if (!isRecord(ipam)) return `${path}.ipam is ${describeValue(ipam)}`;
  const [key] = Object.keys(ipam).filter((each) => each !== 'type' || ipam.type !== '');
  return key === undefined ? undefined : `${path}.ipam has ${truncate(key, 80)} but no type`;
}

function typeOf(plugin: Record<string, unknown> | undefined): string {
  return describeValue(plugin?.type);
}

/** Settings of a NAD for guests whose pool does not set them. Texts have bounded lengths, and are not parsed. */
export interface NadGuestOptions {
  mtu?: number;
  dns?: { nameservers: readonly string[]; search: readonly string[] };
  /** Without a gateway: that of the subnet. */
  routes?: readonly { destination: string; gateway?: string }[];
}

/** Reads the MTU of the NAD's first plugin, and routes and DNS of its `ipam` object. A NAD without IPAM has its DNS in the plugin. */
export function readNadGuestOptions(nad: NetworkAttachmentDefinition): NadGuestOptions | undefined {
  const config = readCniConfig(nad);
  if (!config.ok || config.value === undefined) return undefined;
  const [section] = ipamSections(config.value);
  if (section !== undefined) return readOptions(section.plugin, section.ipam);
  const plugin = asRecord(asList(config.value.plugins)[0] ?? config.value);
  return readOptions(plugin, { dns: plugin.dns ?? config.value.dns });
}

function readOptions(
  { mtu }: Record<string, unknown>,
  given: { dns?: unknown; routes?: unknown },
): NadGuestOptions | undefined {
  const dns = readDns(asRecord(given.dns));
  const routes = readRoutes(given.routes);
  const options: NadGuestOptions = {
    ...(isMtu(mtu) && { mtu }),
    ...(dns && { dns }),
    ...(routes.length > 0 && { routes }),
  };
  return Object.keys(options).length === 0 ? undefined : options;
}

function readDns(dns: Record<string, unknown>): NadGuestOptions['dns'] {
  const nameservers = textsOf(dns.nameservers, GUEST_LIMITS.nameservers, POOL_LIMITS.gateway);
  const search = textsOf(dns.search, GUEST_LIMITS.search, GUEST_LIMITS.domain);
  return nameservers.length + search.length === 0 ? undefined : { nameservers, search };
}

function readRoutes(routes: unknown): NonNullable<NadGuestOptions['routes']> {
  return recordsIn(asList(routes).slice(0, GUEST_LIMITS.routes)).flatMap(({ dst, gw }) => {
    const [destination] = textsOf([dst], 1, POOL_LIMITS.cidr);
    const [gateway] = textsOf([gw], 1, POOL_LIMITS.gateway);
    return destination === undefined ? [] : { destination, ...(gateway !== undefined && { gateway }) };
  });
}

function isMtu(value: unknown): value is number {
  const { least, most } = GUEST_LIMITS.mtu;
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most;
}

function textsOf(value: unknown, most: number, length: number): string[] {
  const texts = asList(value).slice(0, most);
  return texts.filter((text): text is string => typeof text === 'string' && text !== '' && text.length <= length);
}
