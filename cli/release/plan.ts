import type { LeaseOwner } from '../../api/address-lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { describeValue } from '../../api/json.js';
import type { VirtualMachineInstance } from '../../api/kubevirt.js';
import type { Pod } from '../../api/pod.js';
import { formatAddress } from '../../addressing/address/address.js';
import { type LeaseRecord, stateOf } from '../../addressing/lease/lease.js';
import {
  type FindMention,
  type Mention,
  type SpaceUsers,
  mentionOfClaim,
  mentionOfPod,
  mentionOfVmi,
} from './mentions.js';

/** What decides whether a lease may be released. Read after the lease, so that the precondition of the write covers the time since. */
export interface LeaseToRelease {
  readonly lease: LeaseRecord;
  readonly owner: 'alive' | 'gone';
  /** All pods of the cluster. */
  readonly pods: readonly Pod[];
  /** All VMIs of the cluster. */
  readonly vmis: readonly VirtualMachineInstance[];
  /** All claims of the cluster. */
  readonly claims: readonly IPAMClaim[];
  readonly users: SpaceUsers;
  /** Pods and VMIs, `pod/namespace/name` or `vmi/namespace/name`, that do not use the address, although they may say so. */
  readonly ignored: ReadonlySet<string>;
}

const MAX_NAMED = 3;

/** Returns why the lease may not be released: who uses it or will. Empty if it may. */
export function refusalsOf(observed: LeaseToRelease): string[] {
  const { lease, owner } = observed;
  const name = lease.metadata.name;
  const state = stateOf(lease);
  if (state === 'quarantined') {
    return [
      `AddressLease ${name} is quarantined and has no owner: to free the address, run kubectl delete alease ${name}`,
    ];
  }
  if (state === 'reserved' || lease.owner === undefined) {
    return [
      `AddressLease ${name} is a reservation: run kubectl holdfast unreserve ${lease.pool} ${formatAddress(lease.address)}`,
    ];
  }
  if (state === 'released') return [`AddressLease ${name} is released already: the address cools down`];
  const find = <T>(objects: readonly T[], mentionOf: FindMention<T>): Mention[] =>
    objects.flatMap((object) => mentionOf(object, lease, observed.users) ?? []);
  const unlessIgnored = (kind: 'pod' | 'vmi', mentions: readonly Mention[]) =>
    mentions.filter(({ key }) => !observed.ignored.has(`${kind}/${key}`));
  return [
    ...(owner === 'alive'
      ? [`${describeOwner(lease.owner)} still exists: delete it, or the VM to which it belongs`]
      : []),
    ...refusalsOfUsers('pod', unlessIgnored('pod', find(observed.pods, mentionOfPod))),
    ...refusalsOfUsers('vmi', unlessIgnored('vmi', find(observed.vmis, mentionOfVmi))),
    ...refusalsOfClaims(find(observed.claims, mentionOfClaim)),
  ];
}

function describeOwner({ kind, namespace, name }: LeaseOwner): string {
  return `${kind} ${namespace}/${name}`;
}

const WHAT: Readonly<Record<Mention['kind'], (text: string) => string>> = {
  address: () => 'reports the address',
  unreadable: (text) => `reports an address that cannot be read (${text})`,
  mac: () => 'runs with the MAC address of the lease, and reports no address',
  silent: () => 'is on a network of the address, and does not report its addresses',
};

const REMEDY = { pod: 'delete the pod, or stop its VM', vmi: 'stop the VM' };

function refusalsOfUsers(kind: 'pod' | 'vmi', mentions: readonly Mention[]): string[] {
  return byKind(mentions).map(([what, same]) => {
    const [first] = same;
    const option = `--ignore ${kind}/${first?.key ?? ''}`;
    const says = `${kind === 'vmi' ? 'VMI' : kind} ${shownNames(same)} ${WHAT[what](describeValue(first?.text))}`;
    return `${says}: ${REMEDY[kind]}; or add ${option} if you know that it does not use the address`;
  });
}

function refusalsOfClaims(mentions: readonly Mention[]): string[] {
  return byKind(mentions).map(([what, same]) => {
    const subject = `IPAMClaim ${shownNames(same)} has`;
    if (what === 'address') return `${subject} the address in its status and gets it back: delete its VM first`;
    const value = describeValue(same[0]?.text);
    return `${subject} an address that cannot be read (${value}) in its status: correct or clear it, or delete the VM first`;
  });
}

function byKind(mentions: readonly Mention[]): [Mention['kind'], Mention[]][] {
  const kinds = [...new Set(mentions.map(({ kind }) => kind))];
  return kinds.map((kind) => [kind, mentions.filter((mention) => mention.kind === kind)]);
}

function shownNames(mentions: readonly Mention[]): string {
  const shown = mentions.slice(0, MAX_NAMED).map(({ key }) => key);
  const more = mentions.length > MAX_NAMED ? ` and ${mentions.length - MAX_NAMED} more` : '';
  return `${shown.join(', ')}${more}`;
}
