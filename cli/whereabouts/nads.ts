import type { HoldfastIpamConfig } from '../../api/holdfast-ipam.js';
import { readHoldfastIpam } from '../../api/holdfast-ipam.js';
import { type IpamPlace, WHEREABOUTS_IPAM, ipamPlaces } from '../../api/ipam-delegation.js';
import { byAge, objectKey } from '../../api/meta.js';
import { type NetworkAttachmentDefinition, parseNetworkConfig, readCniConfig } from '../../api/network-attachment.js';
import { type DerivedSpec, derivedSpec } from '../../ipam/core/derived-pool.js';
import type { Conflict } from './plan-types.js';

/** A NAD that leaves its addresses to whereabouts, and can be understood. */
export interface MovingNad {
  readonly key: string;
  readonly namespace: string;
  /** The CNI network's name. */
  readonly network: string;
  /** whereabouts': addresses are unique within it. Empty: within all that have none. */
  readonly networkName: string;
  readonly allowsPersistentIPs: boolean;
  readonly config: HoldfastIpamConfig;
  readonly place: IpamPlace;
  /** The whole CNI config. */
  readonly cniConfig: Readonly<Record<string, unknown>>;
  /** Of this very NAD; `none`: it names no range. */
  readonly asked: Exclude<DerivedSpec, { kind: 'invalid' }>;
}

interface Found {
  readonly nads: MovingNad[];
  readonly conflicts: Conflict[];
}

/** Those that leave their addresses to whereabouts, oldest first; and those of them that cannot move as they are. Never throws. */
export function movingNads(nads: readonly NetworkAttachmentDefinition[]): Found {
  const found: Found = { nads: [], conflicts: [] };
  for (const nad of [...nads].sort(byAge)) {
    const read = readNad(nad);
    if (read === undefined) continue;
    if ('message' in read) {
      const { message, networks } = read;
      found.conflicts.push({ kind: 'network', subject: `NAD ${objectKey(nad)}`, message, networks });
    } else found.nads.push(read);
  }
  return found;
}

interface Refusal {
  readonly message: string;
  readonly networks: readonly string[];
}

/** Undefined where whereabouts has nothing to do with it. */
function readNad(nad: NetworkAttachmentDefinition): MovingNad | Refusal | undefined {
  const text: unknown = nad.spec?.config;
  if (typeof text !== 'string' || !text.includes(WHEREABOUTS_IPAM)) return undefined;
  const read = readCniConfig(nad);
  if (!read.ok) return refusal(read.problem);
  const cniConfig = read.value ?? {};
  const places = ipamPlaces(cniConfig);
  const place = places.find(({ type }) => type === WHEREABOUTS_IPAM);
  if (place === undefined) return undefined;
  const parsed = parseNetworkConfig(nad);
  if (!parsed.ok) return refusal(parsed.problem);
  const { name: network, allowPersistentIPs: allowsPersistentIPs } = parsed.network;
  const other = places.find((each) => each !== place);
  if (other !== undefined) {
    return { message: `${other.path} names an IPAM, too: keep one of them`, networks: [network] };
  }
  const asked = askedBy(place, network);
  if ('message' in asked) return asked;
  const { network_name: networkName } = place.ipam;
  return {
    key: objectKey(nad),
    namespace: nad.metadata.namespace ?? '',
    network,
    networkName: typeof networkName === 'string' ? networkName : '',
    allowsPersistentIPs,
    place,
    cniConfig,
    ...asked,
  };
}

function askedBy({ ipam, path }: IpamPlace, network: string): Pick<MovingNad, 'config' | 'asked'> | Refusal {
  const read = readHoldfastIpam(ipam, path);
  if (!read.ok) return refusal(read.problem, network);
  const asked = derivedSpec(network, read.config);
  if (asked.kind !== 'invalid') return { config: read.config, asked };
  const message = asked.problems.map(({ field, message: why }) => `${field} ${why}`).join('; ');
  return { message, networks: [network] };
}

function refusal({ field, message }: { field: string; message: string }, network?: string): Refusal {
  return { message: `${field} ${message}`, networks: network === undefined ? [] : [network] };
}
