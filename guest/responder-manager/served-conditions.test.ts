import { expect } from 'chai';
import type { AddressPool } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { VirtualMachineInstance } from '../../api/kubevirt.js';
import type { Condition, KubeObject } from '../../api/meta.js';
import {
  CLAIM_GUEST_MAC,
  GUEST_CONFIGURED,
  GUEST_SERVED,
  IPS_ALLOCATED,
  NETWORK_DATA_WRITTEN,
  RESPONDERS_NAMESPACE,
} from '../../api/names.js';
import { VMI_INDEXES } from '../../cluster/watch-specs.js';
import { PoolDirectory } from '../../addressing/directory/directory.js';
import { Cache } from '../../kube/informers/cache.js';
import { isConflict } from '../../kube/errors.js';
import { apiError } from '../../test/api-errors.js';
import { ManualClock } from '../../test/manual-clock.js';
import { adminPool, cacheOf, nad } from '../../test/objects/pool-objects.js';
import { claim, vmReference, vmi } from '../../test/objects/workload-objects.js';
import type { GuestViews } from '../views.js';
import { GUEST_CLAIM_INDEXES } from '../watch-specs.js';
import { parseAddress } from '../../addressing/address/address.js';
import { createLease } from '../../addressing/lease/lease.js';
import { responderSetName } from '../../api/responders.js';
import { ServedConditions, type ServedConditionsDeps } from './served-conditions.js';

const NAD = 'vms/data';
const STATUS = { ips: ['10.0.0.5/24'] };
const MAC = '02:00:00:00:00:01';
const SET = { metadata: { name: responderSetName({ uid: 'blue-uid' }), namespace: RESPONDERS_NAMESPACE } };
const LOST = { type: IPS_ALLOCATED, status: 'False', reason: 'IPAddressConflict' } as const;
const REFUSED = { type: GUEST_SERVED, status: 'False', reason: 'MACAddressUnknown' } as const;

/** What is written to the claim of a running VM on a layer-2 network, whose interface has no MAC address by default. */
async function written(
  status: IPAMClaim['status'],
  guest: AddressPool['spec']['guest'],
  { mac, sets = [SET], leases = [] }: { mac?: string; sets?: KubeObject[]; leases?: KubeObject[] } = {},
): Promise<object[]> {
  const claims = new Cache<IPAMClaim>(GUEST_CLAIM_INDEXES);
  const made = claim({ network: 'blue', nad: NAD });
  if (mac !== undefined) Object.assign(made.metadata.annotations ?? {}, { [CLAIM_GUEST_MAC]: mac });
  claims.set({ ...made, ...(status && { status }) });
  const networks = cacheOf([nad(NAD, { name: 'blue', type: 'bridge' })]);
  const pools = cacheOf([adminPool('blue', guest === undefined ? {} : { guest })]);
  const vmis = cacheOf<VirtualMachineInstance>([
    {
      ...vmi({ data: NAD }),
      status: { phase: 'Running', interfaces: [{ name: 'data', infoSource: 'domain', ...(mac && { mac }) }] },
    },
  ]);
  const watched = { claims: { cache: claims }, vmis: { cache: vmis }, networks: { cache: networks } };
  const views = { watched, directory: new PoolDirectory({ pools, networks }) };
  const bodies: object[] = [];
  const patch = (_resource: unknown, _ref: unknown, { body }: { body: object }) => Promise.resolve(bodies.push(body));
  const find = (_resource: unknown, { name }: { name: string }) =>
    Promise.resolve(leases.find(({ metadata }) => metadata.name === name));
  // only the caches and two verbs are used here
  const deps = {
    views: views as unknown as GuestViews,
    client: { patch, find } as never,
    clock: new ManualClock(1_000_000),
  };
  await new ServedConditions({ ...deps, sets: setsOf(sets) }).createSync()('blue', new AbortController().signal);
  return bodies;
}

function leaseOf(text: string): KubeObject {
  const { metadata } = claim({ network: 'blue', nad: NAD });
  const owner = { kind: 'IPAMClaim' as const, namespace: 'vms', name: metadata.name, uid: metadata.uid ?? '' };
  const { object: lease } = createLease({ address: parseAddress(text), addressSpace: 'blue', pool: 'blue', owner });
  return { ...lease, metadata: { ...lease.metadata, uid: text, resourceVersion: '1' } };
}

function setsOf(sets: KubeObject[]): ServedConditionsDeps['sets'] {
  return { cache: cacheOf(sets), onChange: () => undefined };
}

describe('the condition GuestServed', () => {
  const dhcp = { attachment: 'blue', dhcp: {} };
  const at = { message: 'x', lastTransitionTime: '2026-01-01T00:00:00Z' };

  it('says why responders do not answer a running guest', async () => {
    const [body] = await written(STATUS, dhcp);
    expect(body).to.have.nested.property('status.conditions[0]').that.deep.includes(REFUSED);
  });

  const absent: [string, Parameters<typeof written>[1], Parameters<typeof written>[2]][] = [
    ['if the pool has no guests any more', undefined, {}],
    ['if responders answer the guest', dhcp, { mac: MAC }],
  ];
  for (const [name, guest, more] of absent) {
    it(`is removed ${name}`, async () => {
      const [body] = await written({ ...STATUS, conditions: [{ ...REFUSED, ...at }] }, guest, more);
      expect(body).to.have.nested.property('status.conditions').that.deep.equals([]);
      expect(await written(STATUS, guest, more), 'and not written').to.deep.equal([]);
    });
  }

  it('names an address that responders leave out because its lease is lost, and only that one', async () => {
    const lost = { ips: ['10.0.0.5/24', 'fd00::5/64'], conditions: [{ ...LOST, ...at }] };
    const [body] = await written(lost, dhcp, { mac: MAC, leases: [leaseOf('10.0.0.5')] });
    const [, condition] = (body as { status: { conditions: Condition[] } }).status.conditions;
    expect(condition).to.include({ type: GUEST_SERVED, status: 'False', reason: 'AddressNotLeased' });
    expect(condition?.message).to.include('fd00::5, because it is not leased').and.not.to.include('10.0.0.5');
  });

  it('costs nothing for the other claims of a network, which may be thousands', async () => {
    const claims = new Cache<IPAMClaim>(GUEST_CLAIM_INDEXES);
    let reads = 0;
    const counted = (name: string, status: IPAMClaim['status']) =>
      Object.defineProperty(claim({ name, network: 'blue', nad: NAD }), 'status', { get: () => (reads++, status) });
    claims.set(counted('other', STATUS));
    claims.set(counted('told', { ...STATUS, conditions: [{ ...REFUSED, ...at }] }));
    const directory = new PoolDirectory({ pools: cacheOf([adminPool('blue')]), networks: cacheOf([]) });
    const watched = { claims: { cache: claims }, vmis: { cache: cacheOf([]) }, networks: { cache: cacheOf([]) } };
    const views = { watched, directory } as unknown as GuestViews;
    const patched: string[] = [];
    const patch = (_resource: unknown, { name }: { name: string }) => Promise.resolve(patched.push(name));
    const deps = { views, client: { patch } as never, clock: new ManualClock(0), sets: setsOf([]) };
    const sync = new ServedConditions(deps).createSync();
    reads = 0;
    await sync('blue', new AbortController().signal);
    const readsOfOne = reads;
    for (let n = 0; n < 100; n++) claims.set(counted(`other${n}`, STATUS));
    reads = 0;
    await sync('blue', new AbortController().signal);
    expect(reads).to.equal(readsOfOne);
    expect(patched).to.deep.equal(['told', 'told']);
  });

  it('names one also if a tenant has more refused claims than are read in one pass', async () => {
    const claims = new Cache<IPAMClaim>(GUEST_CLAIM_INDEXES);
    const vmis = new Cache<VirtualMachineInstance>();
    const addGuest = (namespace: string, name: string, index: number) => {
      const mac = `02:00:00:00:${[index >> 8, index & 255].map((byte) => byte.toString(16).padStart(2, '0')).join(':')}`;
      const status = { ips: [`10.0.${index >> 8}.${index & 255}/16`], conditions: [{ ...LOST, ...at }] };
      const made = claim({ name: `${name}.data`, network: 'blue', nad: NAD, owner: vmReference(`${name}-uid`, name) });
      Object.assign(made.metadata, { namespace });
      Object.assign(made.metadata.annotations ?? {}, { [CLAIM_GUEST_MAC]: mac });
      claims.set({ ...made, status });
      const running = vmi({ data: NAD }, { name, vm: `${name}-uid` });
      const interfaces = [{ name: 'data', infoSource: 'domain', mac }];
      vmis.set({ ...running, metadata: { ...running.metadata, namespace }, status: { phase: 'Running', interfaces } });
    };
    for (let n = 0; n < 300; n++) addGuest('apps', `other${n}`, n);
    addGuest('vms', 'vm1', 300);
    const networks = cacheOf([nad(NAD, { name: 'blue', type: 'bridge' })]);
    const directory = new PoolDirectory({ pools: cacheOf([adminPool('blue', { guest: dhcp })]), networks });
    const watched = { claims: { cache: claims }, vmis: { cache: vmis }, networks: { cache: networks } };
    const patched: string[] = [];
    const patch = (_resource: unknown, { name }: { name: string }) => Promise.resolve(patched.push(name));
    const client = { patch, find: () => Promise.resolve(undefined) } as never;
    const views = { watched, directory } as unknown as GuestViews;
    const conditions = new ServedConditions({ views, client, clock: new ManualClock(0), sets: setsOf([SET]) });
    await conditions.createSync()('blue', new AbortController().signal);
    expect(patched).to.have.length(256).and.to.include('vm1.data');
  });

  it('is not written if a claim that is refused another address has the leases of those that it shows', async () => {
    const refused = { ...STATUS, conditions: [{ ...LOST, ...at }] };
    expect(await written(refused, dhcp, { mac: MAC, leases: [leaseOf('10.0.0.5')] })).to.deep.equal([]);
  });

  const unanswered: [string, AddressPool['spec']['guest'], string][] = [
    ['whose pool has no DHCP', {}, 'AddressPool blue has no spec.guest.dhcp, so nothing answers DHCP requests'],
    ['whose pool has no responders', dhcp, 'AddressPool blue has no responders, as its events say, so nothing'],
  ];
  for (const [name, guest, message] of unanswered) {
    it(`says that nothing answers a guest ${name}, and what to do`, async () => {
      const [body] = await written(STATUS, guest, { mac: MAC, sets: [] });
      const [condition] = (body as { status: { conditions: Condition[] } }).status.conditions;
      expect(condition).to.include({ type: GUEST_SERVED, status: 'False', reason: 'NoResponders' });
      expect(condition?.message).to.include(message).and.to.include('Ask an administrator to');
    });

    for (const configured of [
      { type: NETWORK_DATA_WRITTEN, status: 'False', reason: 'AddressesPending' },
      { type: GUEST_CONFIGURED, status: 'True', reason: 'Configured' },
    ] as const) {
      it(`is not written for a guest ${name} if ${configured.type} is ${configured.status}`, async () => {
        const conditions = [{ ...configured, ...at }];
        expect(await written({ ...STATUS, conditions }, guest, { mac: MAC, sets: [] })).to.deep.equal([]);
      });
    }
  }

  it('waits for the first status of the claim, which cannot be patched before', async () => {
    expect(await written(undefined, dhcp)).to.deep.equal([]);
  });

  const conflict = apiError(409, 'Conflict', 'changed', 'vm1.data');
  const faults = [
    { name: 'has changed meanwhile', patched: ['vm1.data', 'vm2.data'] },
    { name: 'was refused and its lease cannot be read', mac: MAC, patched: ['vm2.data'] },
  ];
  for (const { name: what, mac, patched: expected } of faults) {
    it(`is written to the other claims of the network if one of them ${what}`, async () => {
      const claims = new Cache<IPAMClaim>(GUEST_CLAIM_INDEXES);
      const vmis = new Cache<VirtualMachineInstance>();
      for (const name of ['vm1', 'vm2']) {
        const owner = vmReference(`${name}-uid`, name);
        const made = claim({ name: `${name}.data`, network: 'blue', nad: NAD, owner, ips: STATUS.ips });
        const running = { ...vmi({ data: NAD }, { name, vm: `${name}-uid` }), status: { phase: 'Running' } };
        if (name === 'vm1' && mac !== undefined) {
          Object.assign(made.metadata.annotations ?? {}, { [CLAIM_GUEST_MAC]: mac });
          Object.assign(made.status ?? {}, { conditions: [{ ...LOST, ...at }] });
          Object.assign(running.status, { interfaces: [{ name: 'data', infoSource: 'domain', mac }] });
        }
        claims.set(made);
        vmis.set(running);
      }
      const networks = cacheOf([nad(NAD, { name: 'blue', type: 'bridge' })]);
      const directory = new PoolDirectory({ pools: cacheOf([adminPool('blue', { guest: dhcp })]), networks });
      const watched = { claims: { cache: claims }, vmis: { cache: vmis }, networks: { cache: networks } };
      const patched: string[] = [];
      const patch = (_resource: unknown, { name }: { name: string }) => {
        patched.push(name);
        return name === 'vm1.data' ? Promise.reject(conflict) : Promise.resolve({});
      };
      const views = { watched, directory } as unknown as GuestViews;
      const client = { patch, find: () => Promise.reject(conflict) } as never;
      const sync = new ServedConditions({ views, client, clock: new ManualClock(0), sets: setsOf([SET]) }).createSync();
      const failure: unknown = await Promise.resolve(sync('blue', new AbortController().signal)).catch(
        (error: unknown) => error,
      );
      expect(patched).to.deep.equal(expected);
      expect(isConflict(failure), 'it is tried again').to.equal(true);
    });
  }

  describe('is looked at', () => {
    const bridged = (network: string, bridge: string, key = `vms/${network}`) =>
      nad(key, { name: network, type: 'bridge', bridge });

    /** Three networks without guests, on two segments. */
    function bench(more: Partial<AddressPool['spec']> = {}) {
      const networks = cacheOf([bridged('blue', 'br0'), bridged('green', 'br0'), bridged('red', 'br1')]);
      const names = ['blue', 'green', 'red'];
      const pools = cacheOf(names.map((network) => adminPool(network, { network, guest: dhcp, ...more })));
      const directory = new PoolDirectory({ pools, networks });
      const claims = new Cache<IPAMClaim>(GUEST_CLAIM_INDEXES);
      let tellClaim: (change: { object: IPAMClaim }) => void = () => undefined;
      let tellNad: (change: { object: KubeObject }) => void = () => undefined;
      const watched = {
        claims: { cache: claims, onChange: (handler: typeof tellClaim) => (tellClaim = handler) },
        vmis: { cache: new Cache<VirtualMachineInstance>(VMI_INDEXES), onChange: () => undefined },
        networks: { cache: networks, onChange: (handler: typeof tellNad) => (tellNad = handler) },
      };
      const clock = new ManualClock(0);
      expect(directory.poolsOf('red'), 'the first state is no change').to.have.length(1);
      const views = { watched, directory } as unknown as GuestViews;
      const keys: string[][] = [];
      new ServedConditions({ views, client: {} as never, clock, sets: setsOf([]) }).listen((added) =>
        keys.push([...added].sort()),
      );
      const changeNad = async (object: ReturnType<typeof nad>) => {
        networks.set(object);
        directory.changed();
        tellNad({ object });
        await Promise.resolve();
      };
      const changeClaim = (object: IPAMClaim) => {
        claims.set(object);
        tellClaim({ object });
      };
      return { changeNad, changeClaim, clock, keys };
    }

    it('on all networks of a layer-2 segment, also when one of them leaves it', async () => {
      const { changeNad, changeClaim, clock, keys } = bench();
      changeClaim(claim({ network: 'green' }));
      clock.advanceTo(1_000);
      await changeNad(bridged('green', 'br1'));
      clock.advanceTo(2_000);
      expect(keys).to.deep.equal([
        ['blue', 'green'],
        ['blue', 'green', 'red'],
      ]);
    });

    it('when the NAD of a claim changes, but not when another namespace has one of its network', async () => {
      const { changeNad, changeClaim, clock, keys } = bench({ namespaces: ['vms'] });
      changeClaim(claim({ network: 'red', nad: 'vms/red' }));
      clock.advanceTo(1_000);
      await changeNad(bridged('red', 'br2', 'apps/red'));
      clock.advanceTo(2_000);
      await changeNad(bridged('red', 'br3', 'vms/red'));
      clock.advanceTo(3_000);
      expect(keys.slice(1)).to.deep.equal([[], ['red']]);
    });
  });
});
