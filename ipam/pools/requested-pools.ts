import { nameFirst } from '../../api/json.js';
import { type DerivedSpec, derivedSpec } from '../../addressing/pool/derived-pool.js';
import type { Pool } from '../../addressing/pool/pool.js';
import type { AddressPool, AddressPoolSpec } from '../../api/address-pool.js';
import type { ReasonOf } from '../../api/conditions.js';
import { EventReason } from '../../api/event-reasons.js';
import { objectKey } from '../../api/meta.js';
import type { NadRights } from '../../api/networks/nad-rights.js';
import type { NetworkConfigProblem } from '../../api/networks/network-attachment.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import { MAX_NAMED } from './named-leases.js';

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

interface RequestedPools {
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

/** Whether the derived pool and its NADs agree: a condition of the pool. */
export interface NadAgreement {
  agree: boolean;
  reason: ReasonOf<'NetworksAgree'>;
  message: string;
}

/** Whether the NADs of a network agree with the oldest one, which defines the pool. */
export function agreementOf(
  oldest: RequestedPool,
  disagreeing: readonly RequestedPool[],
  invalid: readonly ParsedNad[],
): NadAgreement {
  const definedBy = `NAD ${objectKey(oldest.nad)} defines the pool`;
  const keys = (nads: readonly ParsedNad[]) => nameFirst(nads.map(objectKey), MAX_NAMED);
  if (disagreeing.length > 0) {
    const message = `${definedBy}; other NADs request other addresses: ${keys(disagreeing.map(({ nad }) => nad))}`;
    return { agree: false, reason: 'NetworksDisagree', message };
  }
  if (invalid.length > 0) {
    return {
      agree: false,
      reason: 'NetworkInvalid',
      message: `${definedBy}; other NADs are invalid: ${keys(invalid)}`,
    };
  }
  return { agree: true, reason: 'NetworksAgree', message: definedBy };
}

export function disagreementEvent(nad: ParsedNad, older: ParsedNad, network: string): NadEvent {
  const message = `The older NAD ${objectKey(older)} of network ${network} defines the pool and requests other addresses: make both NADs equal, or name another network`;
  return { nad, reason: EventReason.NetworksDisagree, message };
}
