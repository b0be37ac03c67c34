import { type HoldfastIpamConfig, readHoldfastIpam } from '../../api/networks/ipam-config.js';
import { HOLDFAST_IPAM, type IpamSection, WHEREABOUTS_IPAM, ipamSections } from '../../api/networks/ipam-delegation.js';
import { byAge, objectKey } from '../../api/meta.js';
import { DEFAULT_GLOBAL_NAMESPACES } from '../../api/names.js';
import {
  type CniNetwork,
  type NetworkAttachmentDefinition,
  parseNetworkConfig,
  readCniConfig,
} from '../../api/networks/network-attachment.js';
import { type DerivedSpec, derivedSpec } from '../../addressing/pool/derived-pool.js';
import { DEFAULT_MAX_DERIVED_POOLS, nadRightsFrom } from '../../api/networks/nad-rights.js';
import type { Conflict } from './plan-types.js';

/** A valid NAD that delegates to whereabouts now or did before. */
export interface SourceNad {
  readonly key: string;
  readonly namespace: string;
  /** The CNI network's name. */
  readonly network: string;
  /** `network_name` of whereabouts, within which addresses are unique. Empty: unique among all NADs without one. */
  readonly networkName: string;
  readonly allowsPersistentIPs: boolean;
  /** It delegates to Holdfast already. The last allocations of whereabouts still need leases. */
  readonly hasMoved: boolean;
  readonly config: HoldfastIpamConfig;
  readonly place: IpamSection;
  /** The whole CNI config. */
  readonly cniConfig: Readonly<Record<string, unknown>>;
  /** The pool that this NAD requests; `none` if it has no range. */
  readonly requestedSpec: Exclude<DerivedSpec, { kind: 'invalid' }>;
}

/** Those of `holdfast ipam` without flags, which corrects the pools by its own flags. */
const rightsOf = nadRightsFrom({
  globalNamespaces: DEFAULT_GLOBAL_NAMESPACES,
  capacityNamespaces: [],
  enforceAddressOwnership: false,
  maxDerivedPools: DEFAULT_MAX_DERIVED_POOLS,
});

interface ReadNads {
  readonly nads: SourceNad[];
  readonly conflicts: Conflict[];
}

/** Returns the NADs to migrate and those already migrated, oldest first, and the conflicts of the others. Never throws. */
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

/** @returns undefined if the NAD does not delegate to whereabouts */
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
    return { message: `${other.path} also names an IPAM: keep only one of them`, networks: [network.name] };
  }
  const requestedSpec = readRequestedSpec(place, nad.metadata.namespace ?? '', network.name);
  return 'message' in requestedSpec ? requestedSpec : sourceNad(nad, { place, cniConfig, network, ...requestedSpec });
}

/** Reads a NAD that delegates to Holdfast with keys of whereabouts. `holdfast ipam` validates it. */
function readMovedNad(nad: NetworkAttachmentDefinition): SourceNad | undefined {
  const read = readCniConfig(nad);
  const parsed = parseNetworkConfig(nad);
  if (!read.ok || !parsed.ok) return undefined;
  const [place, other] = ipamSections(read.value ?? {});
  if (place?.type !== HOLDFAST_IPAM || other !== undefined) return undefined;
  const requestedSpec = readRequestedSpec(place, nad.metadata.namespace ?? '', parsed.network.name);
  if ('message' in requestedSpec || requestedSpec.config.ranges.length === 0) return undefined;
  return sourceNad(nad, { place, cniConfig: read.value ?? {}, network: parsed.network, ...requestedSpec });
}

function sourceNad(
  nad: NetworkAttachmentDefinition,
  { network, ...rest }: Pick<SourceNad, 'place' | 'cniConfig' | 'config' | 'requestedSpec'> & { network: CniNetwork },
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
): Pick<SourceNad, 'config' | 'requestedSpec'> | NadProblem {
  const read = readHoldfastIpam(ipam, path);
  if (!read.ok) return nadProblem(read.problem, network);
  const requestedSpec = derivedSpec(network, read.config, { namespace, rights: rightsOf(namespace) });
  if (requestedSpec.kind !== 'invalid') return { config: read.config, requestedSpec };
  const message = requestedSpec.problems.map(({ field, message: why }) => `${field} ${why}`).join('; ');
  return { message, networks: [network] };
}

function nadProblem({ field, message }: { field: string; message: string }, network?: string): NadProblem {
  return { message: `${field} ${message}`, networks: network === undefined ? [] : [network] };
}
