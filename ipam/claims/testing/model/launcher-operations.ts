import fc from 'fast-check';
import type { OperationHandlers } from '../../../../test/operation-handlers.js';
import { parseAddress, formatAddress } from '../../../../addressing/address/address.js';
import { leaseName } from '../../../../addressing/lease/lease-name.js';
import { addressesOf, compilePool } from '../../../../addressing/pool/pool.js';
import type { Invariants } from './invariants.js';
import type { IpamWorld } from './world.js';

const NAMESPACE = 'vms';
const NETWORK_STATUS = 'k8s.v1.cni.cncf.io/network-status';

/** What happens to a launcher that was admitted before its VM had a claim. */
export type LauncherOperation =
  | { do: 'startLauncher'; name: string }
  /** `late`: the agent has not seen the claim, which exists by now. */
  | { do: 'addLauncher'; name: string; index: number; late: boolean; reports: boolean }
  | { do: 'report'; name: string };

/** Few, because several events of one VM matter. */
const LAUNCHER_NAMES = ['a', 'b'] as const;
const name = fc.constantFrom(...LAUNCHER_NAMES);

export const launcherOperation: fc.Arbitrary<LauncherOperation> = fc.oneof(
  fc.record({ do: fc.constant('startLauncher' as const), name }),
  fc.record({
    do: fc.constant('addLauncher' as const),
    name,
    index: fc.nat({ max: 9 }),
    late: fc.boolean(),
    reports: fc.boolean(),
  }),
  fc.record({ do: fc.constant('report' as const), name }),
);

export const LAUNCHER_HANDLERS: OperationHandlers<LauncherOperation, IpamWorld, [Invariants]> = {
  startLauncher,
  addLauncher: (world, operation, invariants) => {
    addLauncher(world, invariants, operation);
    if (operation.reports) report(world, operation, invariants);
  },
  report,
};

/** Creates the launcher of a VM. The webhook adds no reference, because there is no claim yet. */
function startLauncher(world: IpamWorld, { name }: { name: string }): void {
  const key = `${NAMESPACE}/${name}`;
  if (world.get('ipamclaims', key) !== undefined || world.get('pods', key) !== undefined) return;
  const controller = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', controller: true };
  world.create('pods', {
    metadata: {
      namespace: NAMESPACE,
      name,
      ownerReferences: [{ ...controller, name, uid: `vm-${name}` }],
      annotations: { 'k8s.v1.cni.cncf.io/networks': JSON.stringify([{ name: 'blue', interface: 'net1' }]) },
    },
    status: { phase: 'Running' },
  });
}

/** Leases a free address of each family for the launcher, as the agent of its node does. */
function addLauncher(
  world: IpamWorld,
  invariants: Invariants,
  { name, index, late }: { name: string; index: number; late: boolean },
): void {
  const key = `${NAMESPACE}/${name}`;
  const pod = world.get('pods', key);
  const pool = world.get('addresspools', 'blue');
  const compiled = pool && compilePool(pool);
  if (pod?.metadata.ownerReferences === undefined || compiled?.ok !== true || invariants.inUse.has(name)) return;
  if (world.get('ipamclaims', key) !== undefined && !late) return;
  const { addressSpace, families } = compiled.pool;
  const free = families.map((family) => {
    const values = addressesOf(compiled.pool, family, 'open').ranges.flatMap(({ first, last }) =>
      Array.from({ length: Number(last - first) + 1 }, (_, offset) => first + BigInt(offset)),
    );
    const texts = values.map((value) => formatAddress({ family, value }));
    const unleased = texts.filter((text) => isUnused(world, addressSpace, text));
    return unleased[index % Math.max(unleased.length, 1)];
  });
  const addresses = free.filter((text) => text !== undefined);
  if (addresses.length < families.length) return;
  const { uid = '' } = pod.metadata;
  for (const address of addresses) {
    const owner = { kind: 'Pod' as const, namespace: NAMESPACE, name, uid };
    const spec = { address, addressSpace, pool: 'blue', owner, interface: 'net1', containerID: 'c1', node: 'n1' };
    world.create('addressleases', { metadata: { name: leaseName(addressSpace, parseAddress(address)) }, spec });
  }
  invariants.inUse.set(name, { claim: undefined, addresses });
}

/** An agent does not know holds of claims that lost their lease, but the model has no duplicates that an administrator caused. */
function isUnused(world: IpamWorld, addressSpace: string, text: string): boolean {
  const isShown = world
    .list('ipamclaims')
    .some(({ status }) => status?.ips?.some((ip) => ip.startsWith(`${text}/`)) === true);
  return !isShown && world.get('addressleases', leaseName(addressSpace, parseAddress(text))) === undefined;
}

/** Multus reports the addresses. */
function report(world: IpamWorld, { name }: { name: string }, { inUse }: Invariants): void {
  const key = `${NAMESPACE}/${name}`;
  const used = inUse.get(name);
  if (used === undefined || world.get('pods', key) === undefined) return;
  world.update('pods', key, ({ metadata }) => {
    const status = [{ name: `${NAMESPACE}/blue`, interface: 'net1', ips: used.addresses }];
    metadata.annotations = { ...metadata.annotations, [NETWORK_STATUS]: JSON.stringify(status) };
  });
}

/** Releases what the pod holds, as its agent and the collector do. */
export function releasePodLeases(world: IpamWorld, name: string): void {
  const uid = world.get('pods', `${NAMESPACE}/${name}`)?.metadata.uid;
  for (const { metadata, spec } of world.list('addressleases')) {
    if (spec.owner?.uid !== uid || spec.owner?.kind !== 'Pod' || spec.releasedAt !== undefined) continue;
    world.update('addressleases', metadata.name, (lease) => {
      lease.spec.releasedAt = new Date(world.now).toISOString();
    });
  }
}
