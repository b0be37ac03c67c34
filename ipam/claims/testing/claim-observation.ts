import type { IPAMClaim } from '../../../api/ipam-claim.js';
import type { Condition } from '../../../api/meta.js';
import { CLAIM_REQUESTED_ADDRESSES, CLAIM_REQUEST_ORIGIN, TEMPLATE_ORIGIN } from '../../../api/names.js';
import type { ProbeState } from '../../../api/probe.js';
import type { ClaimObservation, ProbingView } from '../observe.js';
import type { ClaimPod } from '../running/claim-pods.js';
import type { ClaimStep } from '../step.js';
import { formatAddress, parseAddress } from '../../../addressing/address/address.js';
import { type LeaseRecord } from '../../../addressing/lease/lease.js';
import { leaseName } from '../../../addressing/lease/lease-name.js';
import { type Pool, compilePool } from '../../../addressing/pool/pool.js';
import type { Resolution } from '../../../addressing/directory/resolution.js';
import { adminPool } from '../../../test/objects/pool-objects.js';

/** What the IPAM observes of one claim, in short form for tests. */
export interface ClaimScenario {
  /** Default: v4 and v6; null: no pool serves the claim. */
  pool?: 'v4' | 'dual' | null;
  isForeign?: true;
  /** It is unknown which IPAM serves the network. */
  isUncertain?: true;
  /** Addresses of its leases, oldest first. */
  held?: string[];
  /** Its status, with prefix lengths; undefined: it has none. */
  ips?: string[];
  conditions?: Partial<Condition>[];
  request?: string;
  /** The template of the VM makes the request. */
  isOfTemplate?: true;
  deleting?: true;
  /** Names of the pods that use it. */
  pods?: string[];
  ownerPod?: string;
  /** The pool probes addresses. By address: the state of the probe. */
  probes?: Readonly<Record<string, ProbeState>>;
  /** What is known about probes. Default: they were just requested. */
  probing?: Partial<ProbingView>;
}

export const ALLOCATED_CONDITION: Partial<Condition> = {
  type: 'IPsAllocated',
  status: 'True',
  reason: 'SuccessfulAllocation',
  message: 'Leased from AddressPool blue',
};

export const SERVED_CLAIM: ClaimScenario = {
  pool: 'v4',
  held: ['10.0.0.5'],
  ips: ['10.0.0.5/24'],
  conditions: [ALLOCATED_CONDITION],
};

function poolOf(kind: 'v4' | 'dual', probes: boolean): Pool {
  const subnets = [{ cidr: '10.0.0.0/24' }, { cidr: '2001:db8::/64' }].slice(0, kind === 'v4' ? 1 : 2);
  const guest = { attachment: 'blue', dhcp: {}, probe: true };
  const compiled = compilePool(adminPool('blue', { subnets, ...(probes && { guest }) }));
  if (!compiled.ok) throw new TypeError('the pool is bad');
  return compiled.pool;
}

export function createClaim(given: ClaimScenario = {}): IPAMClaim {
  const { ips, conditions, request, deleting, ownerPod } = given;
  const origin = given.isOfTemplate && { [CLAIM_REQUEST_ORIGIN]: TEMPLATE_ORIGIN };
  const written = conditions?.map((each) => ({ lastTransitionTime: '2025-12-31T00:00:00Z', ...each }) as Condition);
  return {
    metadata: {
      namespace: 'vms',
      name: 'vm1.data',
      uid: 'c1',
      resourceVersion: '7',
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...(deleting && { deletionTimestamp: '2026-01-02T00:00:00Z' }),
      ...(request !== undefined && { annotations: { [CLAIM_REQUESTED_ADDRESSES]: request, ...origin } }),
    },
    spec: { network: 'blue', interface: 'pod16367aacb67' },
    ...(ips && {
      status: { ips, ...(written && { conditions: written }), ...(ownerPod && { ownerPod: { name: ownerPod } }) },
    }),
  };
}

export function lease(text: string, index = 0): LeaseRecord {
  const address = parseAddress(text);
  const created = new Date(Date.UTC(2026, 0, 1, 0, 0, index)).toISOString();
  return {
    metadata: { name: leaseName('blue', address), uid: `l${text}`, resourceVersion: '1', creationTimestamp: created },
    addressSpace: 'blue',
    address,
    pool: 'blue',
    owner: { kind: 'IPAMClaim', namespace: 'vms', name: 'vm1.data', uid: 'c1' },
  };
}

function pod(name: string): ClaimPod {
  return { metadata: { name, namespace: 'vms', uid: name }, isTerminal: false, claims: ['vm1.data'], isRunning: true };
}

export function observationOf(given: ClaimScenario): ClaimObservation {
  const { pool = 'dual', held = [], pods = [], probes, probing } = given;
  const compiled = pool === null ? undefined : poolOf(pool, probes !== undefined);
  const unanswered = { now: 0, stop: () => undefined, requestedAt: () => 0, quarantinedInARow: () => 0 };
  return {
    claim: createClaim(given),
    held: held.map((address, index) => ({
      ...lease(address, index),
      ...(probes?.[address] && { probe: probes[address] }),
    })),
    resolution: resolutionOf(given, compiled),
    pools: compiled === undefined ? [] : [compiled],
    pods: pods.map(pod),
    launcherVmis: {
      verifiedPods: new Set(),
      unverifiedVmis: new Set(),
      vmisToRead: new Set(),
      unreadableVmis: new Set(),
    },
    running: { kind: 'none' },
    ...(probes && { probing: { ...unanswered, ...probing } }),
  };
}

function resolutionOf({ isForeign, isUncertain }: ClaimScenario, pool: Pool | undefined): Resolution {
  if (isForeign) return { kind: 'foreign', message: 'NAD vms/blue delegates IPAM to host-local' };
  if (isUncertain) {
    return {
      kind: 'unserved',
      message: 'the API server does not serve NetworkAttachmentDefinitions',
      isUncertain: true,
    };
  }
  return pool === undefined
    ? { kind: 'unserved', message: 'no AddressPool serves network blue' }
    : { kind: 'served', pool };
}

/** Describes a step in one line. */
export function describeStep(step: ClaimStep): string {
  switch (step.kind) {
    case 'allocate':
      return `allocate for ${step.purpose}: ${[...step.addresses.map(formatAddress), ...step.families.map((family) => `any v${family}`)].join(', ')}`;
    case 'write-status': {
      const { ips, allocated, request, launchers, ownerPod } = step.desired;
      const told = [request, launchers].flatMap((each) => (each ? `${each.reason}: ${each.message}` : []));
      const rest = [...told, ownerPod && `owner ${ownerPod}`].filter(Boolean);
      return [`write [${ips.join(', ')}] ${allocated.reason}`, ...rest].join('; ');
    }
    case 'release':
      return `release ${step.leases.map(({ address }) => formatAddress(address)).join(', ')}`;
    case 'await-probe':
      return `await-probe until ${step.until}`;
    case 'skip-probe':
      return `skip-probe ${formatAddress(step.lease.address)}: ${step.cause}`;
    case 'quarantine':
      return `quarantine ${formatAddress(step.lease.address)} of ${step.mac}${step.isRequested ? ', requested' : ''}`;
    case 'none':
      return `none: ${step.reason}`;
    default:
      return step.kind;
  }
}
