import { isDeepStrictEqual } from 'node:util';
import type { AddressPool, AddressPoolSpec } from '../../api/address-pool.js';
import type { IpamDelegation } from '../../api/ipam-delegation.js';
import { objectKey } from '../../api/meta.js';
import type { NetworkConfigProblem } from '../../api/network-attachment.js';
import type { NetworkAttachment } from '../../process/shrink.js';
import { derivedPool, derivedPoolName, derivedSpec } from '../pools/derived-pool.js';
import { refuseLosses } from './losses.js';
import { isAdmins } from './pool-users.js';
import { warnOfPool } from './pool-warnings.js';
import { servedOf } from './pools.js';
import { describeDifference } from './spec-difference.js';
import { ALLOWED, type Refusal, type Verdict, refuse } from './verdict.js';
import type { ValidationView } from './view.js';

/** A NAD that is about to be created or changed. */
export interface NadReview {
  readonly nad: NetworkAttachment;
  /** The NAD as it is, on UPDATE. */
  readonly oldNad?: NetworkAttachment | undefined;
}

/** A NAD that asks for a pool. */
interface Asking {
  readonly nad: NetworkAttachment;
  readonly network: string;
  readonly spec: AddressPoolSpec;
}

/** True for a NAD that leaves its addresses to Holdfast, rightly or not. All others are nobody's business here. */
export function isOurs({ delegation }: NetworkAttachment): boolean {
  // a config that cannot be read at all could be anybody's
  return (
    delegation.kind === 'holdfast' || (delegation.kind === 'invalid' && delegation.problem.field !== 'spec.config')
  );
}

/** Reviews a NAD that delegates to Holdfast. Pure. */
export function reviewNad({ nad, oldNad }: NadReview, view: ValidationView): Verdict {
  if (!isOurs(nad)) return ALLOWED;
  // labels, or what concerns the plugin alone: what is wrong was so before
  if (oldNad !== undefined && isDeepStrictEqual(statementOf(oldNad), statementOf(nad))) return ALLOWED;
  const asked = readAsking(nad);
  if ('problems' in asked) return refuseProblems(asked.problems);
  // an admin's pool serves it
  if (asked.spec === undefined) return ALLOWED;
  const asking = { nad, network: asked.network, spec: asked.spec };
  const others = othersThatAsk(asking, view);
  const [oldest] = oldNad === undefined ? others : byAge([asking, ...others]);
  return oldest === undefined || oldest === asking
    ? reviewLeader(asking, others, view)
    : reviewFollower(asking, oldest);
}

/** All of a NAD that counts here. */
function statementOf(nad: NetworkAttachment): unknown {
  const asked = readAsking(nad);
  return 'problems' in asked ? asked : { network: asked.network, spec: asked.spec };
}

type Asked = { problems: readonly NetworkConfigProblem[] } | { network: string; spec?: AddressPoolSpec };

function readAsking({ config, delegation }: NetworkAttachment): Asked {
  if (delegation.kind === 'invalid') return { problems: [delegation.problem] };
  if (!config.ok) return { problems: [config.problem] };
  const { name: network } = config.network;
  if (delegation.kind !== 'holdfast') return { network };
  return specOf(network, delegation);
}

function specOf(network: string, { config }: Extract<IpamDelegation, { kind: 'holdfast' }>): Asked {
  const derived = derivedSpec(network, config);
  switch (derived.kind) {
    case 'invalid':
      return { problems: derived.problems };
    case 'none':
      return { network };
    case 'spec':
      return { network, spec: derived.spec };
  }
}

function askingOf(nad: NetworkAttachment): Asking | undefined {
  const asked = readAsking(nad);
  return 'spec' in asked ? { nad, network: asked.network, spec: asked.spec } : undefined;
}

/** Oldest first. */
function othersThatAsk({ nad, network }: Asking, view: ValidationView): Asking[] {
  return view.networks
    .nadsOf(nad.metadata.namespace ?? '', network)
    .filter(({ metadata }) => metadata.name !== nad.metadata.name)
    .flatMap((other) => askingOf(other) ?? []);
}

function byAge(asking: readonly Asking[]): Asking[] {
  const age = ({ nad: { metadata } }: Asking) => metadata.creationTimestamp ?? '';
  return [...asking].sort((a, b) => compare(age(a), age(b)) || compare(a.nad.metadata.name, b.nad.metadata.name));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function refuseProblems(problems: readonly NetworkConfigProblem[]): Verdict {
  return refuse(
    ...problems.map(({ field, message }): Refusal => ({ check: 'delegation', message: `${field} ${message}` })),
  );
}

/** An older NAD is in force: this one may only say the same. */
function reviewFollower(asking: Asking, oldest: Asking): Verdict {
  const difference = describeDifference(oldest.spec, asking.spec);
  if (difference === undefined) return ALLOWED;
  const message =
    `NetworkAttachmentDefinition ${objectKey(oldest.nad)} is older and in force for network "${asking.network}", ` +
    `and this one disagrees: ${difference}. Write the same, or change the network's name in spec.config`;
  return refuse({ check: 'disagreement', message });
}

/** This NAD is in force: its pool follows it. */
function reviewLeader(asking: Asking, others: readonly Asking[], view: ValidationView): Verdict {
  const pool = derivedPool(asking.nad.metadata.namespace ?? '', asking.spec);
  const after = servedOf(pool);
  if (after === undefined) throw new TypeError(`AddressPool ${pool.metadata.name} was found good, and is not`);
  const { name } = pool.metadata;
  const oldPool = view.pools.list().find((known) => known.metadata.name === name);
  const change = { pool, after, oldPool, before: oldPool && servedOf(oldPool) };
  const losses = refuseLosses(change, view.leases);
  if (losses.length > 0) {
    return refuse(
      ...losses.map(({ check, message }) => ({ check, message: `AddressPool ${name} is made of it: ${message}` })),
    );
  }
  return {
    refusals: [],
    warnings: [
      ...warnOfFollowers(asking, others),
      ...warnOfAdmins(asking, view),
      ...warnOfPool(change, view).map((warning) => `AddressPool ${name}: ${warning}`),
    ],
  };
}

function warnOfFollowers({ network, spec }: Asking, others: readonly Asking[]): string[] {
  const behind = others.filter((other) => describeDifference(spec, other.spec) !== undefined);
  const [first] = behind;
  if (first === undefined) return [];
  const which = behind.length === 1 ? objectKey(first.nad) : `${objectKey(first.nad)} and ${behind.length - 1} more`;
  return [
    `this NetworkAttachmentDefinition is the oldest of network "${network}" and in force; ${which} now disagrees: change it, too`,
  ];
}

function warnOfAdmins({ nad, network }: Asking, view: ValidationView): string[] {
  const namespace = nad.metadata.namespace ?? '';
  const serving = view.pools.list().find((pool: AddressPool) => {
    const { network: served, namespaces } = pool.spec;
    return isAdmins(pool) && served === network && (namespaces === undefined || namespaces.includes(namespace));
  });
  if (serving === undefined) return [];
  return [
    `AddressPool ${serving.metadata.name} serves network "${network}" for namespace ${namespace} in place of ${derivedPoolName(namespace, network)}: the subnets here have no effect`,
  ];
}
