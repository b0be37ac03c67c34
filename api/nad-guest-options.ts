import { ipamSections } from './ipam-delegation.js';
import { asList, asRecord, recordsIn } from './json.js';
import { GUEST_LIMITS, POOL_LIMITS } from './limits.js';
import { type NetworkAttachmentDefinition, readCniConfig } from './network-attachment.js';

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
