import type { AddressPool, AddressPoolSpec } from '../../api/address-pool.js';
import { EventReason } from '../../api/names.js';
import type { NetworkConfigProblem } from '../../api/network-attachment.js';
import type { NetworkAttachment } from '../../cluster/shrink.js';
import type { Pool } from '../core/pool.js';
import { type DerivedSpec, derivedSpec } from '../core/derived-pool.js';
import { type NadRights } from '../../api/nad-rights.js';

/** The pool that one NAD asks for. */
export interface Wish {
  nad: NetworkAttachment;
  spec: AddressPoolSpec;
  pool: Pool;
  /** What the spec does not grant of it. */
  reduced: readonly NetworkConfigProblem[];
}

/** To be told to the owner of a NAD. */
export interface NadNotice {
  nad: NetworkAttachment;
  reason: EventReason;
  message: string;
}

export interface Wishes {
  /** Oldest first. */
  wishes: Wish[];
  /** Those that mean Holdfast, and cannot be used. */
  invalid: NetworkAttachment[];
  notices: NadNotice[];
}

/** @param nads of one namespace and network, oldest first */
export function readWishes({
  namespace,
  network,
  rights,
  nads,
  hasAdminPool,
  pool,
}: {
  namespace: string;
  network: string;
  rights: NadRights;
  nads: readonly NetworkAttachment[];
  hasAdminPool: boolean;
  pool?: AddressPool;
}): Wishes {
  const found: Wishes = { wishes: [], invalid: [], notices: [] };
  const bare: NetworkAttachment[] = [];
  for (const nad of nads) {
    const asked = askedBy(nad, network, { namespace, rights });
    if (asked?.kind === 'none') bare.push(nad);
    else if (asked !== undefined) sortIn(nad, asked, found);
  }
  if (found.wishes.length > 0 || hasAdminPool || pool !== undefined) return found;
  const message = `no AddressPool serves network ${network} here: create one, or add subnets to the ipam object of the NAD`;
  found.notices.push(...bare.map((nad) => ({ nad, reason: EventReason.PoolMissing, message })));
  return found;
}

function sortIn(nad: NetworkAttachment, asked: Exclude<DerivedSpec, { kind: 'none' }>, found: Wishes): void {
  const { wishes, invalid, notices } = found;
  if (asked.kind === 'invalid') {
    invalid.push(nad);
    notices.push({ nad, reason: EventReason.NetworkInvalid, message: describeProblems(asked.problems) });
    return;
  }
  const { spec, pool, reduced } = asked;
  wishes.push({ nad, spec, pool, reduced });
  if (reduced.length === 0) return;
  notices.push({ nad, reason: EventReason.NetworkNotPermitted, message: describeProblems(reduced) });
}

/** Undefined where the NAD does not mean Holdfast. */
function askedBy(
  { delegation }: NetworkAttachment,
  network: string,
  of: { namespace: string; rights: NadRights },
): DerivedSpec | undefined {
  if (delegation.kind === 'holdfast') return derivedSpec(network, delegation.config, of);
  return delegation.kind === 'invalid' ? { kind: 'invalid', problems: [delegation.problem] } : undefined;
}

export function describeProblems(problems: readonly NetworkConfigProblem[]): string {
  return problems.map(({ field, message }) => `${field} ${message}`).join('; ');
}
