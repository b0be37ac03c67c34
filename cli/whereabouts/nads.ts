import type { HoldfastIpamConfig } from '../../api/ipam-config.js';
import { readHoldfastIpam } from '../../api/ipam-config.js';
import { HOLDFAST_IPAM, type IpamSection, WHEREABOUTS_IPAM, ipamSections } from '../../api/ipam-delegation.js';
import { byAge, objectKey } from '../../api/meta.js';
import { DEFAULT_GLOBAL_NAMESPACES } from '../../api/names.js';
import {
  type CniNetwork,
  type NetworkAttachmentDefinition,
  parseNetworkConfig,
  readCniConfig,
} from '../../api/network-attachment.js';
import { type DerivedSpec, derivedSpec } from '../../ipam/core/derived-pool.js';
import { nadRightsFrom } from '../../api/nad-rights.js';
import type { Conflict } from './plan-types.js';

/** A NAD that leaves its addresses to whereabouts, or has done so before, and can be understood. */
export interface SourceNad {
  readonly key: string;
  readonly namespace: string;
  /** The CNI network's name. */
  readonly network: string;
  /** whereabouts': addresses are unique within it. Empty: within all that have none. */
  readonly networkName: string;
  readonly allowsPersistentIPs: boolean;
  /** It delegates to Holdfast by now. What whereabouts gave out in the last moments is to be leased all the same. */
  readonly hasMoved: boolean;
  readonly config: HoldfastIpamConfig;
  readonly place: IpamSection;
  /** The whole CNI config. */
  readonly cniConfig: Readonly<Record<string, unknown>>;
  /** Of this very NAD; `none`: it names no range. */
  readonly asked: Exclude<DerivedSpec, { kind: 'invalid' }>;
}

/** Those of an ipam without flags, which corrects the pools by its own. */
const rightsOf = nadRightsFrom({ globalNamespaces: DEFAULT_GLOBAL_NAMESPACES, capacityNamespaces: [] });

interface ReadNads {
  readonly nads: SourceNad[];
  readonly conflicts: Conflict[];
}

/** Those that are to move, or have moved, oldest first; and those that cannot move as they are. Never throws. */
export function readSourceNads(nads: readonly NetworkAttachmentDefinition[]): ReadNads {
  const found: ReadNads = { nads: [], conflicts: [] };
  for (const nad of [...nads].sort(byAge)) {
    const read = readNad(nad) ?? readMovedNad(nad);
    if (read === undefined) continue;
    if ('message' in read) {
      const { message, networks } = read;
      found.conflicts.push({ kind: 'network', subject: `NAD ${objectKey(nad)}`, message, networks });
    } else found.nads.push(read);
  }
  return found;
}

interface NadProblem {
  readonly message: string;
  readonly networks: readonly string[];
}

/** Undefined where whereabouts has nothing to do with it. */
function readNad(nad: NetworkAttachmentDefinition): SourceNad | NadProblem | undefined {
  const text: unknown = nad.spec?.config;
  if (typeof text !== 'string' || !text.includes(WHEREABOUTS_IPAM)) return undefined;
  const read = readCniConfig(nad);
  if (!read.ok) return nadProblem(read.problem);
  const cniConfig = read.value ?? {};
  const places = ipamSections(cniConfig);
  const place = places.find(({ type }) => type === WHEREABOUTS_IPAM);
  if (place === undefined) return undefined;
  const parsed = parseNetworkConfig(nad);
  if (!parsed.ok) return nadProblem(parsed.problem);
  const { network } = parsed;
  const other = places.find((each) => each !== place);
  if (other !== undefined) {
    return { message: `${other.path} names an IPAM, too: keep one of them`, networks: [network.name] };
  }
  const asked = readRequestedSpec(place, nad.metadata.namespace ?? '', network.name);
  return 'message' in asked ? asked : sourceNad(nad, { place, cniConfig, network, ...asked });
}

/** It delegates to Holdfast, in whereabouts' words. Whether it is right is ipam's to say. */
function readMovedNad(nad: NetworkAttachmentDefinition): SourceNad | undefined {
  const read = readCniConfig(nad);
  const parsed = parseNetworkConfig(nad);
  if (!read.ok || !parsed.ok) return undefined;
  const [place, other] = ipamSections(read.value ?? {});
  if (place?.type !== HOLDFAST_IPAM || other !== undefined) return undefined;
  const asked = readRequestedSpec(place, nad.metadata.namespace ?? '', parsed.network.name);
  if ('message' in asked || asked.config.ranges.length === 0) return undefined;
  return sourceNad(nad, { place, cniConfig: read.value ?? {}, network: parsed.network, ...asked });
}

function sourceNad(
  nad: NetworkAttachmentDefinition,
  { network, ...rest }: Pick<SourceNad, 'place' | 'cniConfig' | 'config' | 'asked'> & { network: CniNetwork },
): SourceNad {
  const { network_name: networkName } = rest.place.ipam;
  return {
    key: objectKey(nad),
    namespace: nad.metadata.namespace ?? '',
    network: network.name,
    networkName: typeof networkName === 'string' ? networkName : '',
    allowsPersistentIPs: network.allowPersistentIPs,
    hasMoved: rest.place.type === HOLDFAST_IPAM,
    ...rest,
  };
}

function readRequestedSpec(
  { ipam, path }: IpamSection,
  namespace: string,
  network: string,
): Pick<SourceNad, 'config' | 'asked'> | NadProblem {
  const read = readHoldfastIpam(ipam, path);
  if (!read.ok) return nadProblem(read.problem, network);
  const asked = derivedSpec(network, read.config, { namespace, rights: rightsOf(namespace) });
  if (asked.kind !== 'invalid') return { config: read.config, asked };
  const message = asked.problems.map(({ field, message: why }) => `${field} ${why}`).join('; ');
  return { message, networks: [network] };
}

function nadProblem({ field, message }: { field: string; message: string }, network?: string): NadProblem {
  return { message: `${field} ${message}`, networks: network === undefined ? [] : [network] };
}
