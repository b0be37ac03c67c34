import type { AddressPool, AddressPoolSpec } from '../../api/address-pool.js';
import { EventReason } from '../../api/event-reasons.js';
import type { NetworkConfigProblem } from '../../api/network-attachment.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import type { Pool } from '../../addressing/pool/pool.js';
import { type DerivedSpec, derivedSpec } from '../../addressing/pool/derived-pool.js';
import { type NadRights } from '../../api/nad-rights.js';

/** NADs of one namespace and network that are read for requests, because tenants decide how many there are. */
export const MAX_READ_NADS = 512;

/** The pool that one NAD requests. */
export interface RequestedPool {
  nad: ParsedNad;
  spec: AddressPoolSpec;
  pool: Pool;
  /** What the NAD requests and the spec does not grant. */
  reduced: readonly NetworkConfigProblem[];
}

/** An event for the owner of a NAD. */
export interface NadEvent {
  nad: ParsedNad;
  reason: EventReason;
  message: string;
}

export interface RequestedPools {
  /** Oldest first. */
  requested: RequestedPool[];
  /** NADs that delegate to Holdfast and are invalid. */
  invalid: ParsedNad[];
  events: NadEvent[];
}

/** @param nads of one namespace and network, oldest first */
export function readRequestedPools({
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
  nads: readonly ParsedNad[];
  hasAdminPool: boolean;
  pool?: AddressPool;
}): RequestedPools {
  const found: RequestedPools = { requested: [], invalid: [], events: [] };
  const withoutSubnets: ParsedNad[] = [];
  for (const nad of nads) {
    if (found.requested.length + found.invalid.length === MAX_READ_NADS) {
      found.events.push({ nad, reason: EventReason.NetworksDisagree, message: notRead(namespace, network) });
      break;
    }
    const spec = readNadSpec(nad, network, { namespace, rights });
    if (spec?.kind === 'none') withoutSubnets.push(nad);
    else if (spec !== undefined) addRequested(nad, spec, found);
  }
  if (found.requested.length > 0 || hasAdminPool || pool !== undefined) return found;
  const message = `No AddressPool serves network ${network} in namespace ${namespace}: create one, or add subnets to the ipam object of the NAD`;
  found.events.push(
    ...withoutSubnets.slice(0, MAX_READ_NADS).map((nad) => ({ nad, reason: EventReason.PoolMissing, message })),
  );
  return found;
}

function notRead(namespace: string, network: string): string {
  return (
    `Namespace ${namespace} has more than ${MAX_READ_NADS} NADs that request a pool for network ${network}. Only the oldest ones are read, and this one ` +
    'and younger ones are not: delete NADs, or name another network'
  );
}

function addRequested(nad: ParsedNad, asked: Exclude<DerivedSpec, { kind: 'none' }>, found: RequestedPools): void {
  const { requested, invalid, events } = found;
  if (asked.kind === 'invalid') {
    invalid.push(nad);
    events.push({ nad, reason: EventReason.NetworkInvalid, message: describeProblems(asked.problems) });
    return;
  }
  const { spec, pool, reduced } = asked;
  requested.push({ nad, spec, pool, reduced });
  if (reduced.length === 0) return;
  events.push({ nad, reason: EventReason.NetworkNotPermitted, message: describeProblems(reduced) });
}

/** Undefined if the NAD does not delegate to Holdfast. */
function readNadSpec(
  { delegation }: ParsedNad,
  network: string,
  of: { namespace: string; rights: NadRights },
): DerivedSpec | undefined {
  if (delegation.kind === 'holdfast') return derivedSpec(network, delegation.config, of);
  return delegation.kind === 'invalid' ? { kind: 'invalid', problems: [delegation.problem] } : undefined;
}

export function describeProblems(problems: readonly NetworkConfigProblem[]): string {
  return problems.map(({ field, message }) => `${field} ${message}`).join('; ');
}
