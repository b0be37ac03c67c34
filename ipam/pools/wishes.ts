import type { AddressPool, AddressPoolSpec } from '../../api/address-pool.js';
import { EventReason } from '../../api/names.js';
import type { NetworkAttachment } from '../../process/shrink.js';
import type { Pool } from '../core/pool.js';
import { type DerivedSpec, derivedSpec } from '../core/derived-pool.js';

/** The pool that one NAD asks for. */
export interface Wish {
  nad: NetworkAttachment;
  spec: AddressPoolSpec;
  pool: Pool;
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
  network,
  nads,
  hasAdminPool,
  pool,
}: {
  network: string;
  nads: readonly NetworkAttachment[];
  hasAdminPool: boolean;
  pool?: AddressPool;
}): Wishes {
  const found: Wishes = { wishes: [], invalid: [], notices: [] };
  const bare: NetworkAttachment[] = [];
  for (const nad of nads) {
    const asked = askedBy(nad, network);
    if (asked?.kind === 'none') bare.push(nad);
    if (asked?.kind === 'spec') found.wishes.push({ nad, spec: asked.spec, pool: asked.pool });
    if (asked?.kind !== 'invalid') continue;
    found.invalid.push(nad);
    const message = asked.problems.map((problem) => `${problem.field} ${problem.message}`).join('; ');
    found.notices.push({ nad, reason: EventReason.NetworkInvalid, message });
  }
  if (found.wishes.length > 0 || hasAdminPool || pool !== undefined) return found;
  const message = `no AddressPool serves network ${network} here: create one, or add subnets to the ipam object of the NAD`;
  found.notices.push(...bare.map((nad) => ({ nad, reason: EventReason.PoolMissing, message })));
  return found;
}

/** Undefined where the NAD does not mean Holdfast. */
function askedBy({ delegation }: NetworkAttachment, network: string): DerivedSpec | undefined {
  if (delegation.kind === 'holdfast') return derivedSpec(network, delegation.config);
  return delegation.kind === 'invalid' ? { kind: 'invalid', problems: [delegation.problem] } : undefined;
}
