import fc from 'fast-check';
import { type IPAMClaim, claimOwnerOf } from '../../../../api/ipam-claim.js';
import {
  CLAIM_FINALIZER,
  CLAIM_MAC,
  CLAIM_NAD,
  CLAIM_OWNER_NAME,
  CLAIM_OWNER_UID,
  CLAIM_REQUESTED_ADDRESSES,
  CLAIM_REQUEST_ORIGIN,
  FORMER_ORIGIN,
  IPS_ALLOCATED,
} from '../../../../api/names.js';
import type { Pod } from '../../../../api/pod.js';
import { parseAddress } from '../../../../addressing/address/address.js';
import { leaseName } from '../../../../addressing/lease/lease-name.js';
import { type Invariants, leasesHeldBy } from './invariants.js';
import { POOL_NAMES, type PoolName, STICKY_MS, setPool } from './pools.js';
import { MAX_STALENESS_MS } from './process.js';
import type { IpamWorld } from './world.js';
import type { OperationHandlers } from '../../../../test/operation-handlers.js';
import { bareAddress } from '../../../../test/bare-address.js';
import {
  LAUNCHER_HANDLERS,
  type LauncherOperation,
  launcherOperation,
  releasePodLeases,
} from './launcher-operations.js';
import { type ProbeOperation, applyProbeOperation, probeOperation } from './probe-operations.js';

const NAMESPACE = 'vms';
const NAMES = ['a', 'b', 'c', 'd', 'e'] as const;
type Name = (typeof NAMES)[number];

const REQUESTS = [
  undefined,
  '["10.0.0.4"]',
  '["10.0.0.5/29"]',
  '["10.0.0.6"]',
  '["10.0.0.1"]',
  '["2001:db8::2"]',
  '["10.0.0.3","2001:db8::3"]',
  'nonsense',
];
const RESTORED = [undefined, ['10.0.0.4/29'], ['10.0.0.5/29', '2001:db8::2/126'], ['192.0.2.1/24']];

const MACS = ['02:00:00:00:00:01', '02:00:00:00:00:02'];

/** An action of another client, or an event. */
export type Operation =
  | {
      do: 'create';
      name: Name;
      request: string | undefined;
      /** The request repeats the addresses of a claim that is gone. */
      isFormer?: boolean;
      restored: string[] | undefined;
      owned: boolean;
      /** The MAC address that its VM names. */
      mac?: string | undefined;
    }
  | { do: 'reserve'; address: string; mac: string }
  | { do: 'delete' | 'finish' | 'startPod' | 'addPod' | 'endPod'; name: Name }
  /** The VM of its name gets the claim. */
  | { do: 'adopt'; name: Name }
  | { do: 'request'; name: Name; request: string | undefined }
  | { do: 'deleteLease'; index: number }
  | { do: 'pool'; pool: PoolName }
  | { do: 'pass'; seconds: number }
  | { do: 'expire' }
  | LauncherOperation
  | ProbeOperation;

const doing = <D extends Operation['do']>(what: D) => fc.constant(what);
const name = fc.constantFrom(...NAMES);
const request = fc.constantFrom(...REQUESTS);

export const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: doing('create'),
      name,
      request: fc.oneof({ weight: 2, arbitrary: fc.constant(undefined) }, request),
      isFormer: fc.boolean(),
      restored: fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, fc.constantFrom(...RESTORED)),
      owned: fc.boolean(),
      mac: fc.option(fc.constantFrom(...MACS), { nil: undefined, freq: 1 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('delete' as const, 'finish' as const), name }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('startPod' as const, 'addPod', 'endPod'), name }) },
  { weight: 6, arbitrary: launcherOperation },
  { weight: 4, arbitrary: probeOperation },
  { weight: 3, arbitrary: fc.record({ do: doing('request'), name, request }) },
  { weight: 1, arbitrary: fc.record({ do: doing('deleteLease'), index: fc.nat({ max: 9 }) }) },
  { weight: 1, arbitrary: fc.record({ do: doing('pool'), pool: fc.constantFrom(...POOL_NAMES) }) },
  { weight: 1, arbitrary: fc.record({ do: doing('pass'), seconds: fc.constantFrom(1, 20, 90) }) },
  { weight: 1, arbitrary: fc.record({ do: doing('expire') }) },
  { weight: 1, arbitrary: fc.record({ do: doing('adopt'), name }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: doing('reserve'),
      address: fc.constantFrom('10.0.0.2', '10.0.0.6', '2001:db8::3'),
      mac: fc.constantFrom(...MACS),
    }),
  },
);

/** The same operation on the claim with that key. */
export function withClaim(key: string, operation: Operation): Operation {
  const [, name] = key.split('/') as [string, Name];
  return 'name' in operation ? { ...operation, name } : operation;
}

export function applyOperation(world: IpamWorld, invariants: Invariants, operation: Operation): void {
  HANDLERS[operation.do](world, operation as never, invariants);
}

const HANDLERS: OperationHandlers<Operation, IpamWorld, [Invariants]> = {
  ...LAUNCHER_HANDLERS,
  create: createClaim,
  delete: (world, { name }) =>
    change(world, name, ({ metadata }) => {
      metadata.deletionTimestamp ??= timeOf(world);
      metadata.finalizers ??= [CLAIM_FINALIZER];
    }),
  finish,
  startPod,
  addPod,
  endPod: (world, { name }, { inUse }) => {
    inUse.delete(name);
    releasePodLeases(world, name);
    world.remove('pods', `${NAMESPACE}/${name}`);
  },
  adopt: (world, { name }) => change(world, name, ({ metadata }) => setOwner(metadata, name)),
  request: (world, { name, request }) => change(world, name, ({ metadata }) => setRequest(metadata, request)),
  deleteLease,
  reserve,
  answer: applyProbeOperation,
  pool: (world, { pool }) => setPool(world, pool),
  pass: (world, { seconds }) => (world.now += seconds * 1000),
  expire,
};

/** Does what the collector does: deletes released and quarantined leases after their time. */
export function expire(world: IpamWorld): void {
  for (const { metadata, spec } of world.list('addressleases')) {
    const { releasedAt, mac, reserved, address, addressSpace, pool, quarantine } = spec;
    if (quarantine !== undefined && world.now >= Date.parse(quarantine.until))
      world.remove('addressleases', metadata.name);
    const keptMs = mac === undefined || reserved === true ? 2 * MAX_STALENESS_MS : STICKY_MS;
    if (releasedAt === undefined || world.now - Date.parse(releasedAt) < keptMs) continue;
    if (mac === undefined || reserved !== true) world.remove('addressleases', metadata.name);
    else {
      world.update('addressleases', metadata.name, (lease) => {
        lease.spec = { address, addressSpace, pool, mac, reserved };
      });
    }
  }
}

/** Reserves an address for a MAC address, as an administrator does. */
function reserve(world: IpamWorld, { address, mac }: Extract<Operation, { do: 'reserve' }>): void {
  const name = leaseName('blue', parseAddress(address));
  if (world.get('addressleases', name) !== undefined) return;
  world.create('addressleases', { metadata: { name }, spec: { address, addressSpace: 'blue', pool: 'blue', mac } });
}

function createClaim(
  world: IpamWorld,
  { name, request, isFormer = false, restored, owned, mac }: Extract<Operation, { do: 'create' }>,
): void {
  const key = `${NAMESPACE}/${name}`;
  if (world.get('ipamclaims', key) !== undefined) return;
  const claim: IPAMClaim = {
    metadata: {
      namespace: NAMESPACE,
      name,
      annotations: {
        [CLAIM_NAD]: `${NAMESPACE}/blue`,
        ...(request !== undefined && { [CLAIM_REQUESTED_ADDRESSES]: request }),
        ...(isFormer && { [CLAIM_REQUEST_ORIGIN]: FORMER_ORIGIN }),
        ...(mac !== undefined && { [CLAIM_MAC]: mac }),
      },
    },
    spec: { network: 'blue', interface: 'net1' },
    ...(restored && { status: { ips: restored } }),
  };
  if (owned) setOwner(claim.metadata, name);
  world.create('ipamclaims', claim);
}

interface NamedOperation {
  readonly name: Name;
}

function finish(world: IpamWorld, { name }: NamedOperation): void {
  // the finalizer keeps the claim while a pod uses it
  if (world.get('pods', `${NAMESPACE}/${name}`) !== undefined) return;
  world.remove('ipamclaims', `${NAMESPACE}/${name}`);
}

function startPod(world: IpamWorld, { name }: NamedOperation): void {
  const key = `${NAMESPACE}/${name}`;
  if (world.get('ipamclaims', key) === undefined || world.get('pods', key) !== undefined) return;
  world.create('pods', {
    metadata: {
      namespace: NAMESPACE,
      name,
      annotations: { 'k8s.v1.cni.cncf.io/networks': JSON.stringify([{ name: 'blue', 'ipam-claim-reference': name }]) },
    },
    status: { phase: 'Running' },
  });
}

/** A launcher without a reference gets the addresses of its VM's claim only. */
function mayUse(pod: Pod, claim: IPAMClaim): boolean {
  return pod.metadata.ownerReferences === undefined || claimOwnerOf(claim) !== undefined;
}

/** Answers as an agent does: with the addresses in the status, if the claim has leases of all of them. */
function addPod(world: IpamWorld, { name }: NamedOperation, { inUse }: Invariants): void {
  const key = `${NAMESPACE}/${name}`;
  const claim = world.get('ipamclaims', key);
  const pod = world.get('pods', key);
  if (claim === undefined || pod === undefined || !mayUse(pod, claim)) return;
  const isAllocated = claim.status?.conditions?.some(({ type, status }) => type === IPS_ALLOCATED && status === 'True');
  const ips = (claim.status?.ips ?? []).map(bareAddress);
  const held = leasesHeldBy(world, claim.metadata.uid).map(({ spec }) => spec.address);
  if (!isAllocated || !ips.every((ip) => held.includes(ip)) || inUse.has(name)) return;
  inUse.set(name, { claim: claim.metadata.uid ?? '', addresses: ips });
}

function change(world: IpamWorld, name: Name, edit: (claim: IPAMClaim) => void): void {
  const key = `${NAMESPACE}/${name}`;
  if (world.get('ipamclaims', key) !== undefined) world.update('ipamclaims', key, edit);
}

function setOwner(metadata: IPAMClaim['metadata'], name: Name): void {
  metadata.annotations = { ...metadata.annotations, [CLAIM_OWNER_NAME]: name, [CLAIM_OWNER_UID]: `vm-${name}` };
}

function setRequest(metadata: IPAMClaim['metadata'], request: string | undefined): void {
  delete metadata.annotations?.[CLAIM_REQUEST_ORIGIN];
  if (request === undefined) delete metadata.annotations?.[CLAIM_REQUESTED_ADDRESSES];
  else metadata.annotations = { ...metadata.annotations, [CLAIM_REQUESTED_ADDRESSES]: request };
}

function deleteLease(world: IpamWorld, { index }: Extract<Operation, { do: 'deleteLease' }>): void {
  // a user who deletes the lease of a pod without a claim frees an address that is in use
  const leases = world.list('addressleases').filter(({ spec }) => spec.owner?.kind !== 'Pod');
  const lease = leases[index % Math.max(leases.length, 1)];
  if (lease === undefined) return;
  world.freedByUser.add(lease.spec.address);
  world.remove('addressleases', lease.metadata.name);
}

function timeOf(world: IpamWorld): string {
  return new Date(world.now).toISOString();
}
