import fc from 'fast-check';
import type { OperationHandlers } from '../../../../test/operation-handlers.js';
import { type IPAMClaim, claimOwnerOf, claimVmNetworkOf } from '../../../../api/ipam-claim.js';
import { isBeingDeleted, objectKey } from '../../../../api/meta.js';
import { CLAIM_OWNER_UID, LAST_APPLIED_ANNOTATION, VELERO_RESTORE_NAME } from '../../../../api/names.js';
import { NAMESPACE, claim, nad, vmReference, vmiSpec } from '../../../../test/objects/workload-objects.js';
import { VMI_FINALIZER, VM_FINALIZER } from './kubevirt.js';
import { plug, setAbsent, unplug } from './spec-edits.js';
import type { SimulatedVm, ClaimsWorld } from './world.js';

export const VM_KEY = `${NAMESPACE}/vm1`;
const VM_NETWORKS = ['data', 'extra'];
const NADS = ['blue', 'green'];
const CONFIGS = {
  persistent: (name: string) => ({ name: `${name}-net`, allowPersistentIPs: true }),
  plain: (name: string) => ({ name: `${name}-net` }),
  renamed: (name: string) => ({ name: `new-${name}-net`, allowPersistentIPs: true }),
  broken: () => '{',
};

/** An operation of a user or administrator. */
export type Operation =
  | { do: 'create VM'; networks: Record<string, string>; running: boolean }
  | { do: 'delete VM'; propagation: Propagation }
  | { do: 'run VM'; running: boolean }
  | { do: 'plug'; network: string; nad: string }
  | { do: 'unplug' | 'remove from spec'; network: string }
  | { do: 'create VMI'; networks: Record<string, string> }
  | { do: 'delete VMI'; propagation: Propagation }
  | { do: 'delete claim'; index: number }
  | { do: 'create claim'; owner: 'nobody' | 'other'; network: string }
  | { do: 'restore claim'; saved: number; by: 'Velero' | 'kubectl' }
  | { do: 'edit NAD'; nad: string; config: keyof typeof CONFIGS | 'none' }
  | { do: 'opt'; out: boolean };

const network = fc.constantFrom(...VM_NETWORKS);
const nadName = fc.constantFrom(...NADS);
const networks = fc.dictionary(network, nadName, { maxKeys: 2 }).map((found) => ({ ...found }));
type Propagation = 'Background' | 'Foreground' | 'Orphan';
const propagation = fc.constantFrom<Propagation>('Background', 'Foreground', 'Orphan');
const act = <D extends Operation['do']>(name: D) => fc.constant(name);

export const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: act('create VM'), networks, running: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ do: act('delete VM'), propagation }) },
  { weight: 2, arbitrary: fc.record({ do: act('run VM'), running: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: act('plug'), network, nad: nadName }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('unplug' as const, 'remove from spec' as const), network }) },
  { weight: 1, arbitrary: fc.record({ do: act('create VMI'), networks }) },
  { weight: 1, arbitrary: fc.record({ do: act('delete VMI'), propagation }) },
  { weight: 2, arbitrary: fc.record({ do: act('delete claim'), index: fc.nat({ max: 3 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: act('create claim'),
      owner: fc.constantFrom('nobody' as const, 'other' as const),
      network,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: act('restore claim'),
      saved: fc.nat({ max: 50 }),
      by: fc.constantFrom('Velero' as const, 'kubectl' as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: act('edit NAD'),
      nad: nadName,
      config: fc.constantFrom('persistent', 'plain', 'renamed', 'broken', 'none'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: act('opt'), out: fc.boolean() }) },
);

/** Performs the operation; one that is impossible has no effect. */
export function applyOperation(world: ClaimsWorld, operation: Operation): void {
  HANDLERS[operation.do](world, operation as never);
}

const HANDLERS: OperationHandlers<Operation, ClaimsWorld> = {
  'create VM': createVm,
  'delete VM': (world, { propagation }) => world.get('vms', VM_KEY) && world.delete('vms', VM_KEY, propagation),
  'run VM': editVm,
  plug: editVm,
  unplug: editVm,
  'remove from spec': editVm,
  'create VMI': createVmi,
  'delete VMI': (world, { propagation }) => world.get('vmis', VM_KEY) && world.delete('vmis', VM_KEY, propagation),
  'delete claim': deleteClaim,
  'create claim': createClaim,
  'restore claim': restoreClaim,
  'edit NAD': editNad,
  opt: optOut,
};

type Named<Name extends Operation['do']> = Extract<Operation, { do: Name }>;

/** Creates a namespace and its NADs. */
export function createInitialObjects(world: ClaimsWorld): void {
  world.create('namespaces', { metadata: { name: NAMESPACE } });
  world.create('vms', { metadata: { name: 'vm2', namespace: NAMESPACE, uid: 'other-uid' }, running: false });
  for (const name of NADS) editNad(world, { nad: name, config: 'persistent' });
}

/** Removes everything that may block claims: claims of other clients, launchers without owner, invalid NADs, the opt-out. */
export function removeObstacles(world: ClaimsWorld): void {
  for (const pod of world.list('launchers')) {
    if (pod.metadata.ownerReferences === undefined) world.delete('launchers', objectKey(pod));
  }
  for (const found of world.list('claims')) {
    if ((found.metadata.finalizers ?? []).length === 0) world.delete('claims', objectKey(found));
  }
  for (const name of NADS) editNad(world, { nad: name, config: 'persistent' });
  optOut(world, { out: false });
}

function createVm(world: ClaimsWorld, { networks: wanted, running }: Named<'create VM'>): void {
  if (world.get('vms', VM_KEY)) return;
  const metadata = { name: 'vm1', namespace: NAMESPACE, finalizers: [VM_FINALIZER] };
  world.create('vms', { metadata, spec: { template: { spec: vmiSpec(wanted) } }, running });
}

function createVmi(world: ClaimsWorld, { networks: wanted }: Named<'create VMI'>): void {
  if (world.get('vmis', VM_KEY)) return;
  const metadata = { name: 'vm1', namespace: NAMESPACE, finalizers: [VMI_FINALIZER] };
  world.create('vmis', { metadata, spec: vmiSpec(wanted) });
}

function editVm(
  world: ClaimsWorld,
  what: Extract<Operation, { do: 'run VM' | 'plug' | 'unplug' | 'remove from spec' }>,
): void {
  const found = world.get('vms', VM_KEY);
  if (found === undefined || isBeingDeleted(found)) return;
  world.update('vms', VM_KEY, (vm: SimulatedVm) => {
    const spec = vm.spec?.template?.spec ?? {};
    const has = what.do !== 'run VM' && spec.networks?.some(({ name }) => name === what.network);
    if (what.do === 'run VM') vm.running = what.running;
    else if (what.do === 'plug') plug(spec, what.network, what.nad);
    else if (what.do === 'remove from spec') unplug(spec, [what.network]);
    else if (has) setAbsent(spec, what.network, true);
  });
}

function deleteClaim(world: ClaimsWorld, { index }: Named<'delete claim'>): void {
  const found = world.list('claims')[index];
  if (found !== undefined) world.delete('claims', objectKey(found));
}

function createClaim(world: ClaimsWorld, { network: vmNetwork, owner }: Named<'create claim'>): void {
  const name = `vm1.${vmNetwork}`;
  if (world.get('claims', `${NAMESPACE}/${name}`)) return;
  const {
    uid: _uid,
    resourceVersion: _version,
    ...metadata
  } = claim({
    name,
    owner: owner === 'nobody' ? null : vmReference('other-uid', 'vm2'),
    recordedOwner: null,
    vmNetwork: null,
    nad: null,
    label: null,
    finalizers: [],
  }).metadata;
  world.create('claims', { metadata, spec: { network: 'blue-net', interface: '' } });
}

/** Creates a claim as it was in some earlier version. */
function restoreClaim(world: ClaimsWorld, { saved, by }: Named<'restore claim'>): void {
  const versions = world
    .log('claims')
    .map(({ object }) => object)
    .filter((object) => !isBeingDeleted(object) && CLAIM_OWNER_UID in (object.metadata.annotations ?? {}));
  const backup = versions[saved % versions.length];
  if (backup === undefined || world.get('claims', objectKey(backup)) !== undefined) return;
  const copy = structuredClone(backup);
  delete copy.metadata.uid;
  delete copy.metadata.annotations?.[LAST_APPLIED_ANNOTATION];
  // the version of an interface's claim of which another version exists already cannot be in the same backup
  if (world.list('claims').some((other) => interfaceOf(other) === interfaceOf(copy))) return;
  if (by === 'Velero') {
    delete copy.metadata.ownerReferences;
    copy.metadata.labels = { ...copy.metadata.labels, [VELERO_RESTORE_NAME]: 'nightly-1' };
  } else
    copy.metadata.annotations = { ...copy.metadata.annotations, [LAST_APPLIED_ANNOTATION]: JSON.stringify(backup) };
  world.create('claims', copy);
}

function interfaceOf(claim: IPAMClaim): string {
  return [claimOwnerOf(claim)?.uid, claimVmNetworkOf(claim), claim.spec.network].join();
}

function editNad(world: ClaimsWorld, { nad: name, config }: Omit<Named<'edit NAD'>, 'do'>): void {
  const key = `${NAMESPACE}/${name}`;
  const known = world.get('networks', key) !== undefined;
  if (config === 'none') {
    if (known) world.delete('networks', key);
    return;
  }
  const made = nad(name, CONFIGS[config](name));
  if (!known) world.create('networks', made);
  else
    world.update('networks', key, (copy) => {
      copy.spec = made.spec ?? {};
    });
}

function optOut(world: ClaimsWorld, { out }: Omit<Named<'opt'>, 'do'>): void {
  world.update('namespaces', NAMESPACE, ({ metadata }) => {
    metadata.labels = out ? { 'ipam.holdfast.dev/persistent-ips': 'disabled' } : {};
  });
}
