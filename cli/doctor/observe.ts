import type { AddressPool } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { type KubeObject, joinKey } from '../../api/meta.js';
import { MIRROR_POD_ANNOTATION, RESPONDERS_NAMESPACE } from '../../api/names.js';
import type { KubeVirt, VirtualMachine } from '../../api/kubevirt.js';
import type { NetworkAttachmentDefinition } from '../../api/networks/network-attachment.js';
import { LAUNCHER_SELECTOR, type Pod } from '../../api/pod.js';
import { type Event, EVENTS } from '../../kube/events.js';
import { type Lease, LEASES } from '../../kube/leader-election.js';
import {
  ADDRESS_LEASES,
  ADDRESS_POOLS,
  IPAM_CLAIMS,
  KUBEVIRTS,
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  NODES,
  PODS,
  VIRTUAL_MACHINES,
} from '../../kube/resources.js';
import { share } from '../../cluster/share.js';
import {
  type CheckedNode,
  INSTALLED,
  type Installation,
  STATEFUL_SETS,
  type InstalledWorkload,
  readInstallation,
} from '../installation.js';
import { PermittedReader, identityOf, slimClaim, readEvent, readObject } from '../reader.js';
import {
  type ProbingReader,
  type ProcessRight,
  type TrialCall,
  callWebhooks,
  missingRightsOf,
  serverTime,
} from './probe.js';

const NODE_LEASES = 'kube-node-lease';
const WARNINGS = 'type=Warning,involvedObject.apiVersion=kubevirt.io/v1';

/** A lease, as far as the search for leaks needs it. */
interface ObservedLease {
  readonly name: string;
  readonly owner: { readonly kind: string; readonly namespace: string; readonly name: string; readonly uid: string };
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

/** A lease that was released, and that a Secret with network data keeps from others. */
interface LockedLease {
  readonly name: string;
  /** `namespace/name`. */
  readonly secret: string;
  /** Milliseconds since the epoch. */
  readonly releasedAt: number;
}

/** A list that is of one namespace only for a user without rights in the whole cluster. */
const NARROWED_LISTS = ['nads', 'claims', 'vms', 'events', 'launchers'] as const;
export type NarrowedList = (typeof NARROWED_LISTS)[number];

/** The cluster at one moment. A field is undefined if the user may not read it: then its checks find nothing. */
export interface ObservedCluster extends Installation {
  /** Milliseconds since the epoch, by the clock of the API server. */
  readonly now: number | undefined;
  readonly trialCalls: readonly TrialCall[];
  readonly kubevirts: readonly KubeVirt[] | undefined;
  readonly missingRights: readonly ProcessRight[] | undefined;
  readonly nodes?: readonly CheckedNode[] | undefined;
  readonly nodeLeases?: readonly Lease[] | undefined;
  readonly pools?: readonly AddressPool[] | undefined;
  readonly nads?: readonly NetworkAttachmentDefinition[] | undefined;
  readonly claims?: readonly IPAMClaim[] | undefined;
  readonly vms?: readonly VirtualMachine[] | undefined;
  readonly namespaces?: readonly KubeObject[] | undefined;
  /** Warnings about VMs and VMIs: they say why one has no claim. */
  readonly events?: readonly Event[] | undefined;
  /** Pods of VMs: an IPAM of a CNI plugin sees a claim only when one has a node. */
  readonly launchers?: readonly Pod[] | undefined;
  /** The user may not read all claims and VMs: those that are `narrowed` are of this namespace only. */
  readonly onlyNamespace?: string | undefined;
  readonly narrowed?: readonly NarrowedList[];
  readonly responderSets?: readonly InstalledWorkload[] | undefined;
  /** Held ones whose claim or pod does not exist. */
  readonly ownerlessLeases?: readonly ObservedLease[] | undefined;
  readonly lockedLeases?: readonly LockedLease[] | undefined;
  /** What the user may not read or try, in words. */
  readonly refused: readonly string[];
}

/** Returns a list of the whole cluster; undefined if the user may read none, or that of one namespace only. */
export function inAllNamespaces<L extends NarrowedList>(observed: ObservedCluster, list: L): ObservedCluster[L] {
  return observed.narrowed?.includes(list) ? undefined : observed[list];
}

interface ObserveOptions {
  /** Also pools, networks, claims, leases and clocks. */
  readonly withData: boolean;
  /** The namespace of the context: for users who may not list objects of all namespaces. */
  readonly home: string;
  readonly showProgress: (text: string) => void;
  /** The time, if nothing may be tried: then the user's rights to create objects are not used. Milliseconds since the epoch. */
  readonly readOnlyAt?: number;
}

/** Reads what the user may read, and tries what the processes need, unless it may only read. It changes nothing. */
export async function observeCluster(
  client: ProbingReader['client'],
  { withData, home, showProgress, readOnlyAt }: ObserveOptions,
): Promise<ObservedCluster> {
  const reader: ProbingReader = new PermittedReader(client);
  showProgress('reading the installation…');
  const [installation, kubevirts] = await Promise.all([readInstallation(reader), reader.list(KUBEVIRTS)]);
  if (readOnlyAt === undefined) showProgress('trying webhooks and rights…');
  const tried = readOnlyAt === undefined ? await tryCluster(reader, installation) : undefined;
  return {
    ...installation,
    kubevirts,
    ...(tried ?? { now: readOnlyAt, trialCalls: [], missingRights: undefined }),
    ...(withData && (await observeData(reader, home, showProgress))),
    refused: reader.refused,
  };
}

async function tryCluster(reader: ProbingReader, { configurations = [], workloads = [] }: Installation) {
  return {
    now: await serverTime(reader),
    trialCalls: await callWebhooks(reader, configurations),
    missingRights: await missingRightsOf(reader, workloads),
  };
}

async function observeData(
  reader: ProbingReader,
  home: string,
  showProgress: ObserveOptions['showProgress'],
): Promise<Partial<ObservedCluster>> {
  showProgress('reading nodes…');
  const [nodes, nodeLeases, responderSets] = await Promise.all([
    reader.list(NODES),
    reader.list(LEASES, { namespace: NODE_LEASES }),
    reader.list(STATEFUL_SETS, { namespace: RESPONDERS_NAMESPACE, labelSelector: INSTALLED }),
  ]);
  showProgress('reading leases and their owners…');
  const ofLeases = await observeLeases(reader);
  const { claims } = ofLeases;
  showProgress('reading VMs, networks and pools…');
  const [vms, namespaces, events, launchers] = await Promise.all([
    reader.listAs(VIRTUAL_MACHINES, pickVm),
    reader.list(NAMESPACES, { metadataOnly: true }),
    reader.listAs(EVENTS, readEvent, { fieldSelector: WARNINGS }),
    reader.listAs(PODS, pickLauncher, { labelSelector: LAUNCHER_SELECTOR }),
  ]);
  // after what needs them: objects that are created meanwhile would seem to lack them
  const nads = await reader.list(NETWORK_ATTACHMENT_DEFINITIONS);
  const pools = await reader.list(ADDRESS_POOLS);
  const ofVms = { nads, claims, vms, events, launchers };
  const data = { nodes, nodeLeases, responderSets, ...ofLeases, pools, namespaces, ...ofVms };
  return claims !== undefined && vms !== undefined
    ? data
    : { ...data, ...(await observeNamespace(reader, home, { namespaces, ...ofVms })) };
}

/** Reads leases before their owners: the owner of a lease that is younger than the list of owners would seem to be gone. */
async function observeLeases(
  reader: ProbingReader,
): Promise<Pick<ObservedCluster, 'ownerlessLeases' | 'lockedLeases' | 'claims'>> {
  const read = await reader.listAs(ADDRESS_LEASES, ({ metadata, spec }): (ObservedLease | LockedLease)[] => {
    const { owner, releasedAt, networkData } = spec;
    const { name, creationTimestamp = '' } = metadata;
    if (releasedAt === undefined)
      return owner === undefined ? [] : [{ name, owner, createdAt: Date.parse(creationTimestamp) }];
    if (networkData === undefined) return [];
    return [{ name, secret: joinKey(networkData.namespace, networkData.secret), releasedAt: Date.parse(releasedAt) }];
  });
  const leases = read?.flat().filter((lease) => 'owner' in lease);
  const lockedLeases = read?.flat().filter((lease) => 'secret' in lease);
  const missing = new Set(leases?.map(({ owner }) => owner.uid));
  const markFound = (uids: readonly string[]) => uids.forEach((uid) => missing.delete(uid));
  const [claims, pods] = await Promise.all([
    reader.listAs(IPAM_CLAIMS, (claim) => {
      markFound([claim.metadata.uid ?? '']);
      return slimClaim(claim);
    }),
    reader.listAs(PODS, (pod) => markFound(claimedUids(pod)), { metadataOnly: true }),
  ]);
  const ownerlessLeases = claims && pods && leases?.filter(({ owner }) => missing.has(owner.uid));
  return { ownerlessLeases, lockedLeases, claims };
}

/** Reads what concerns the VMs of one namespace, as far as the user may not read it in the whole cluster. */
async function observeNamespace(
  reader: ProbingReader,
  namespace: string,
  known: Pick<ObservedCluster, NarrowedList | 'namespaces'>,
): Promise<Partial<ObservedCluster>> {
  const [claims, vms, events, launchers, object] = await Promise.all([
    known.claims ?? reader.listAs(IPAM_CLAIMS, slimClaim, { namespace }),
    known.vms ?? reader.listAs(VIRTUAL_MACHINES, pickVm, { namespace }),
    known.events ?? reader.listAs(EVENTS, readEvent, { namespace, fieldSelector: WARNINGS }),
    known.launchers ?? reader.listAs(PODS, pickLauncher, { namespace, labelSelector: LAUNCHER_SELECTOR }),
    known.namespaces === undefined ? readObject(reader.client, NAMESPACES, { name: namespace }) : undefined,
  ]);
  const nads = known.nads ?? (await reader.list(NETWORK_ATTACHMENT_DEFINITIONS, { namespace }));
  const namespaces = known.namespaces ?? (object?.kind === 'found' ? [object.value] : undefined);
  const narrowed = NARROWED_LISTS.filter((list) => known[list] === undefined);
  return { nads, claims, vms, events, launchers, namespaces, onlyNamespace: namespace, narrowed };
}

/** Keeps what the story of a VM's networks is made of. */
export function pickVm({ metadata, spec }: VirtualMachine): VirtualMachine {
  const { metadata: template, spec: vmi } = spec?.template ?? {};
  const { networks, domain } = vmi ?? {};
  const interfaces = domain?.devices?.interfaces;
  return {
    metadata: identityOf(metadata),
    // most VMs of a template have the same
    spec: share({
      template: {
        ...(template?.annotations && { metadata: { annotations: template.annotations } }),
        spec: { ...(networks && { networks }), ...(interfaces && { domain: { devices: { interfaces } } }) },
      },
    }),
  };
}

/** The UIDs that the leases of a pod may have. Its annotation is not checked here, as that needs its spec: at worst a leak is not found. */
function claimedUids({ metadata: { uid = '', annotations } }: KubeObject): string[] {
  return [uid, annotations?.[MIRROR_POD_ANNOTATION] ?? uid];
}

function pickLauncher({ metadata, spec, status }: Pod): Pod {
  const { phase = '', conditions = [] } = status ?? {};
  return {
    metadata: identityOf(metadata),
    spec: share({ nodeName: spec?.nodeName ?? '' }),
    status: share({ phase, conditions: conditions.filter(({ type }) => type === 'PodScheduled') }),
  };
}
