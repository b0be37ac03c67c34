import { isDeepStrictEqual } from 'node:util';
import { addressSpaceOf } from '../../api/address-pool.js';
import { byAge, objectKey } from '../../api/meta.js';
import type { NetworkConfigProblem } from '../../api/network-attachment.js';
import type { NetworkAttachment } from '../../cluster/shrink.js';
import { spaceRefusal } from '../core/address-space-rights.js';
import { type PoolChange, refuseLosses } from './losses.js';
import { isAdmins, servedOf } from './serving.js';
import { warnOfPool } from './pool-warnings.js';
import { ALLOWED, type Refusal, type Verdict, refuse } from './verdict.js';
import type { ValidationView } from './view.js';
import { warnOfWire } from './wire-warnings.js';
import { type Statement, type Wish, describeDifference, readStatement, saysTheSame } from './wish.js';

/** A NAD that is about to be created or changed. */
export interface NadReview {
  readonly nad: NetworkAttachment;
  /** The NAD as it is, on UPDATE. */
  readonly oldNad?: NetworkAttachment | undefined;
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
  const statement = readStatement(nad, view.rightsOf);
  const before = oldNad && readStatement(oldNad, view.rightsOf);
  // labels, or what concerns the plugin alone: what is wrong was so before
  if (before !== undefined && saysTheSame(before, statement)) {
    if (statement.kind !== 'wish' || oldNad?.wire === nad.wire) return ALLOWED;
    return { refusals: [], warnings: warnOfWire(statement.wish, view) };
  }
  switch (statement.kind) {
    case 'nothing':
      return ALLOWED;
    case 'wrong':
      return refuseProblems(statement.problems);
    case 'wish': {
      const { refusals, warnings } = reviewRights(statement.wish, before, view);
      return {
        refusals,
        warnings: refusals.length > 0 ? warnings : [...warnings, ...warnOfWire(statement.wish, view, before)],
      };
    }
  }
}

function refuseProblems(problems: readonly NetworkConfigProblem[]): Verdict {
  return refuse(
    ...problems.map(({ field, message }): Refusal => ({ check: 'delegation', message: `${field} ${message}` })),
  );
}

/** What is beyond the rights of the namespace is refused, unless the NAD asked for it before: then it goes on without it. */
function reviewRights(wish: Wish, before: Statement | undefined, view: ValidationView): Verdict {
  const known = before?.kind === 'wish' ? before.wish : undefined;
  const space = spaceProblem(wish, view);
  const isSpaceKnown = known !== undefined && isDeepStrictEqual(addressesOf(known), addressesOf(wish));
  const knownProblems = [...(known?.reduced ?? []), ...(isSpaceKnown ? space : [])];
  const [beyond, tolerated] = [[...wish.reduced, ...space], [] as string[]];
  const refusals = beyond.flatMap((problem): Refusal[] => {
    const message = `${problem.field} ${problem.message}`;
    if (!knownProblems.some((each) => isDeepStrictEqual(each, problem))) return [{ check: 'rights', message }];
    tolerated.push(message);
    return [];
  });
  if (refusals.length > 0) return refuse(...refusals);
  const verdict = reviewWish(wish, before === undefined, view);
  return verdict.refusals.length > 0 ? verdict : { ...verdict, warnings: [...tolerated, ...verdict.warnings] };
}

function spaceProblem({ nad, pool, served }: Wish, { pools }: ValidationView): NetworkConfigProblem[] {
  const { addressSpace } = served;
  const admins = pools.list().flatMap((other) => {
    return isAdmins(other) && addressSpaceOf(other) === addressSpace ? (servedOf(other) ?? []) : [];
  });
  const isNamed = pool.spec.addressSpace !== undefined;
  const message = spaceRefusal({ pool: served, namespace: nad.metadata.namespace ?? '', isNamed }, admins);
  const field =
    isNamed && nad.delegation.kind === 'holdfast' ? `${nad.delegation.config.path}.addressSpace` : 'spec.config.name';
  return message === undefined ? [] : [{ field, message }];
}

function addressesOf({ pool: { spec } }: Wish): unknown {
  return [addressSpaceOf({ spec }), spec.subnets];
}

/** @param isNew no NAD is younger, though another may be of the same second */
function reviewWish(wish: Wish, isNew: boolean, view: ValidationView): Verdict {
  const { nad, network } = wish;
  const others = view.networks
    .nadsOf(nad.metadata.namespace ?? '', network)
    .filter(({ metadata }) => metadata.name !== nad.metadata.name)
    .flatMap((other) => {
      const statement = readStatement(other, view.rightsOf);
      return statement.kind === 'wish' ? [statement.wish] : [];
    });
  const [oldest] = others;
  if (oldest !== undefined && (isNew || byAge(oldest.nad, wish.nad) < 0)) return reviewFollower(wish, oldest);
  return reviewLeader(wish, others, view);
}

/** An older NAD is in force: this one may only say the same. */
function reviewFollower(wish: Wish, oldest: Wish): Verdict {
  const difference = describeDifference(oldest, wish);
  if (difference === undefined) return ALLOWED;
  const message =
    `NetworkAttachmentDefinition ${objectKey(oldest.nad)} is older and in force for network "${wish.network}", ` +
    `and this one disagrees: ${difference}. Write the same, or change the network's name in spec.config`;
  return refuse({ check: 'disagreement', message });
}

/** This NAD is in force: its pool follows it. */
function reviewLeader(wish: Wish, others: readonly Wish[], view: ValidationView): Verdict {
  const { pool, served: after } = wish;
  const { name } = pool.metadata;
  const oldPool = view.pools.list().find((known) => known.metadata.name === name);
  const reader = wish.nad.metadata.namespace ?? '';
  const change = { pool, after, oldPool, before: oldPool && servedOf(oldPool), reader };
  const losses = refuseLosses(change, view.leases);
  if (losses.length > 0) {
    return refuse(
      ...losses.map(({ check, message }) => ({ check, message: `AddressPool ${name} is made of it: ${message}` })),
    );
  }
  return {
    refusals: [],
    warnings: [
      ...warnOfMove(change),
      ...warnOfFollowers(wish, others),
      ...warnOfAdmins(wish, view),
      ...warnOfPool(change, view).map((warning) => `AddressPool ${name}: ${warning}`),
    ],
  };
}

/** Without leases it may move: nobody gets an address meanwhile. */
function warnOfMove({ pool, after, oldPool }: PoolChange): string[] {
  if (oldPool === undefined || addressSpaceOf(oldPool) === after.addressSpace) return [];
  return [
    `AddressPool ${pool.metadata.name} moves from address space "${addressSpaceOf(oldPool)}" to "${after.addressSpace}": for about 3 minutes it gives out no addresses`,
  ];
}

/** Comparing two large NADs takes milliseconds. */
const MOST_FOLLOWERS = 50;

function warnOfFollowers(wish: Wish, others: readonly Wish[]): string[] {
  const behind = others.slice(0, MOST_FOLLOWERS).filter((other) => describeDifference(wish, other) !== undefined);
  const [first] = behind;
  if (first === undefined) return [];
  const which = behind.length === 1 ? objectKey(first.nad) : `${objectKey(first.nad)} and ${behind.length - 1} more`;
  return [
    `this NetworkAttachmentDefinition is the oldest of network "${wish.network}" and in force; ${which} now disagrees: change it, too`,
  ];
}

function warnOfAdmins({ nad, network, pool }: Wish, view: ValidationView): string[] {
  const namespace = nad.metadata.namespace ?? '';
  const serving = view.pools.list().find((other) => {
    const { network: served, namespaces } = other.spec;
    return isAdmins(other) && served === network && (namespaces === undefined || namespaces.includes(namespace));
  });
  if (serving === undefined) return [];
  return [
    `AddressPool ${serving.metadata.name} serves network "${network}" for namespace ${namespace} in place of ${pool.metadata.name}: the subnets here have no effect`,
  ];
}
