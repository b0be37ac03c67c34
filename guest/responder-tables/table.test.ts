import { expect } from 'chai';
import { parseAddress } from '../../addressing/address/address.js';
import { compiledPool } from '../../test/objects/lease-objects.js';
import { type PoolGiven, adminPool, claimOf, day, nad } from '../../test/objects/pool-objects.js';
import { claim, vmReference, vmi } from '../../test/objects/workload-objects.js';
import { runAtOnce } from '../../kube/run-in-slices.js';
import { MAX_OPTION_SETS } from './protocol.js';
import { MAX_ENTRIES, MAX_NAD_OPTION_SETS, type RunningGuest, buildTable, poolGuests } from './table.js';
import type { AddressPool } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { VirtualMachineInstance } from '../../api/kubevirt.js';
import { CLAIM_GUEST_MAC } from '../../api/names.js';
import { CLAIM_INDEXES } from '../../cluster/watch-specs.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import { type LeaseRecord, createLease, readLease } from '../../addressing/lease/lease.js';
import { NETWORK_INDEXES } from '../../addressing/directory/affected.js';
import { PoolDirectory } from '../../addressing/directory/directory.js';
import { Cache } from '../../kube/informers/cache.js';

const MAC = '02:00:00:00:00:0a';
const OTHER = '02:00:00:00:00:0b';
const DUAL: PoolGiven = {
  subnets: [
    { cidr: '10.1.0.0/24', gateway: '10.1.0.1' },
    { cidr: 'fd00:1::/64', gateway: 'fd00:1::1' },
  ],
};
const SETTINGS: PoolGiven = {
  ...DUAL,
  guest: {
    dns: { nameservers: ['10.1.0.53'], search: ['example.org'] },
    ntp: ['10.1.0.123'],
    routes: [{ destination: '10.9.0.0/16', gateway: '10.1.0.9' }],
    mtu: 1400,
  },
};

function guest(mac: string, addresses: readonly string[], options: GuestOptions = {}): RunningGuest {
  const { name = mac.replaceAll(':', ''), born = 1, hasDefaultRoute = false, nadOptions, dhcp } = options;
  const claim = claimOf(`a/${name}`);
  claim.metadata.creationTimestamp = day(born);
  return { claim, mac, addresses: addresses.map(parseAddress), hasDefaultRoute, nadOptions, ...(dhcp && { dhcp }) };
}

interface GuestOptions extends Partial<Pick<RunningGuest, 'hasDefaultRoute' | 'nadOptions' | 'dhcp'>> {
  name?: string;
  born?: number;
}

function numbered(length: number, optionsOf: (index: number) => GuestOptions): RunningGuest[] {
  return Array.from({ length }, (_, index) => {
    const hex = (index + 256).toString(16).padStart(6, '0');
    const mac = `02:00:00:${hex.replaceAll(/(..)(?=.)/g, '$1:')}`;
    const address = `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`;
    return guest(mac, [address], { name: `c${index}`, ...optionsOf(index) });
  });
}

function table(guests: readonly RunningGuest[], pool: PoolGiven = DUAL) {
  return runAtOnce(buildTable(compiledPool(pool), guests));
}

describe('the table of a responder', () => {
  it('gives a guest its addresses of both families, with the prefix length of the IPv4 subnet', () => {
    const { entries } = table([guest(MAC, ['10.1.0.5', 'fd00:1::5'])]);
    const { options, owner, ...given } = entries.get(MAC) ?? {};
    expect(given).to.deep.equal({
      mac: MAC,
      ipv4: { address: '10.1.0.5', prefix: 24 },
      ipv6: { address: 'fd00:1::5' },
    });
    expect([options, owner].map((each) => typeof each)).to.deep.equal(['string', 'string']);
  });

  it('names the owner of an interface alike for all interfaces of a VM, and for no VM of another namespace', () => {
    const guests = [guest(MAC, ['10.1.0.5']), guest(OTHER, ['10.1.0.6']), guest('02:00:00:00:00:0c', ['10.1.0.7'])];
    for (const { claim } of guests) claim.metadata.ownerReferences = [vmReference('uid-1', 'vm1')];
    guests[2]!.claim.metadata.namespace = 'b';
    const { entries } = table(guests);
    const [first, second, third] = guests.map(({ mac }) => entries.get(mac)?.owner);
    expect(second).to.equal(first);
    expect(third).not.to.equal(first);
  });

  it('has the DHCP options of the pool in its set of options', () => {
    const options = [{ code: 66, type: 'text', value: 'boot' } as const];
    const optionsV6 = [{ code: 103, type: 'text', value: 'a' } as const];
    const { options: sets } = table([guest(MAC, ['10.1.0.5'])], {
      ...DUAL,
      guest: { attachment: 'blue', dhcp: { options, optionsV6 } },
    });
    const found = [...sets.values()].map(({ dhcp4, dhcp6 }) => [dhcp4, dhcp6]);
    expect(found).to.deep.equal([[[{ code: 66, value: '626f6f74' }], [{ code: 103, value: '61' }]]]);
  });

  it('has the names of a guest, with the search domain of the network, and the options of its VM', () => {
    const dhcp = { hostname: 'db', prefix: 'db.sub', options: [{ code: 67, value: '61' }], ignored: [] };
    const { entries } = table([guest(MAC, ['10.1.0.5'], { dhcp }), guest(OTHER, ['10.1.0.6'])], SETTINGS);
    expect(entries.get(MAC)).to.include({ hostname: 'db', fqdn: 'db.sub.example.org' });
    expect(entries.get(MAC)?.dhcp4).to.deep.equal(dhcp.options);
    expect(entries.get(OTHER)).not.to.have.any.keys('hostname', 'fqdn', 'dhcp4');
    const [without] = table([guest(MAC, ['10.1.0.5'], { dhcp: { ...dhcp, options: [] } })]).entries.values();
    expect(without).to.include({ fqdn: 'db.sub' }).and.not.to.have.property('dhcp4');
  });

  it('gives the gateway only on the interface that has the default route', () => {
    const { entries } = table([guest(MAC, ['10.1.0.5'], { hasDefaultRoute: true }), guest(OTHER, ['10.1.0.6'])]);
    expect(entries.get(MAC)?.ipv4?.router).to.equal('10.1.0.1');
    expect(entries.get(OTHER)?.ipv4?.router).to.equal(undefined);
  });

  it('gives no gateway of a subnet without one', () => {
    const { entries } = table([guest(MAC, ['10.1.0.5'], { hasDefaultRoute: true })], { cidr: '10.1.0.0/24' });
    expect(entries.get(MAC)?.ipv4).to.deep.equal({ address: '10.1.0.5', prefix: 24 });
  });

  it('has one set of options for all guests with the same settings', () => {
    const { entries, options } = table([guest(MAC, ['10.1.0.5']), guest(OTHER, ['10.1.0.6'])], SETTINGS);
    const [set, ...others] = [...options.values()];
    expect(others).to.deep.equal([]);
    expect([...entries.values()].map((entry) => entry.options)).to.deep.equal([set?.id, set?.id]);
    expect(set).to.deep.include({
      mtu: 1400,
      dns: ['10.1.0.53'],
      search: ['example.org'],
      ntp: ['10.1.0.123'],
      routes: [{ destination: '10.9.0.0/16', gateway: '10.1.0.9' }],
    });
  });

  it('uses settings of the NAD where the pool has none, and names another set of options', () => {
    const guests = [guest(MAC, ['10.1.0.5'], { nadOptions: { mtu: 9000 } }), guest(OTHER, ['10.1.0.6'])];
    const { entries, options } = table(guests);
    expect(options.get(entries.get(MAC)?.options ?? '')?.mtu).to.equal(9000);
    expect(options.get(entries.get(OTHER)?.options ?? '')?.mtu).to.equal(undefined);
  });

  it('has a limited number of sets of options, however many NADs tenants write', () => {
    const guests = numbered(2_000, (index) => ({ nadOptions: { mtu: 1280 + index } }));
    const { entries, options } = table(guests, { cidr: '10.0.0.0/8' });
    expect(entries.size).to.equal(2_000);
    expect(options.size).to.equal(MAX_NAD_OPTION_SETS + 1);
    expect(2 * options.size).to.be.at.most(MAX_OPTION_SETS);
    for (const entry of entries.values()) expect(options.has(entry.options)).to.equal(true);
  });

  it('has all options of a namespace with few NADs, however many another namespace has', () => {
    const guests = numbered(1_400, (index) => ({ nadOptions: { mtu: 1280 + Math.min(index, 700) }, born: 1 }));
    guests.push(...numbered(1_401, () => ({ nadOptions: { mtu: 9000 }, born: 2 })).slice(-1));
    for (const { claim } of guests.slice(700)) claim.metadata.namespace = 'b';
    const { entries, options } = table(guests, { cidr: '10.0.0.0/8' });
    expect(options.get(entries.get(guests.at(-1)!.mac)?.options ?? '')?.mtu).to.equal(9000);
  });

  it('names a changed set of options by another id, which the helper does not know yet', () => {
    const ids = [DUAL, SETTINGS].map((pool) => table([guest(MAC, ['10.1.0.5'])], pool).entries.get(MAC)?.options);
    expect(ids[0]).not.to.equal(ids[1]);
  });

  const absent: { name: string; given: RunningGuest }[] = [
    { name: 'without leased addresses', given: guest(MAC, []) },
    { name: 'whose address is in no subnet of the pool any more', given: guest(MAC, ['10.7.0.5']) },
  ];
  for (const { name, given } of absent) {
    it(`has no entry for a guest ${name}`, () => expect(table([given]).entries.size).to.equal(0));
  }

  it('knows whose an address is, for reports', () => {
    const { guests } = table([guest(MAC, ['10.1.0.5', 'fd00:1::5'], { name: 'vm1.data' })]);
    expect([...guests].map(([address, { claim }]) => [address, claim])).to.deep.equal([
      ['10.1.0.5', 'a/vm1.data'],
      ['fd00:1::5', 'a/vm1.data'],
    ]);
  });

  it('serves the oldest claims if there are more guests than entries, and counts the others', () => {
    const guests = numbered(MAX_ENTRIES + 2, (index) => ({ born: index < 2 ? 200 : 1 }));
    const { entries, leftOut } = table(guests, { cidr: '10.0.0.0/8' });
    expect([entries.size, leftOut]).to.deep.equal([MAX_ENTRIES, 2]);
    expect(entries.has(guests[0]?.mac ?? '')).to.equal(false);
  });

  it('serves all guests of a namespace with few, however many older ones another namespace has', () => {
    const guests = numbered(MAX_ENTRIES + 100, (index) => ({ born: index < MAX_ENTRIES ? 1 : 200 }));
    for (const { claim } of guests.slice(MAX_ENTRIES)) claim.metadata.namespace = 'b';
    const { entries, leftOut } = table(guests, { cidr: '10.0.0.0/8' });
    expect(leftOut).to.equal(100);
    expect(guests.slice(MAX_ENTRIES).filter(({ mac }) => !entries.has(mac))).to.deep.equal([]);
  });

  it('refuses to choose between two guests with one MAC address', () => {
    expect(() => table([guest(MAC, ['10.1.0.5']), guest(MAC, ['10.1.0.6'], { name: 'x' })])).to.throw(TypeError);
  });
});

const IPV4 = '10.1.0.5';
const IPV6 = 'fd00:1::5';

/** One running guest with a dual-stack claim. */
class World {
  readonly claims = new Cache<IPAMClaim>({ ...CLAIM_INDEXES, ...NETWORK_INDEXES });
  readonly vmis = new Cache<VirtualMachineInstance>();
  readonly networks = new Cache<ParsedNad>();
  readonly pools = new Cache<AddressPool>();
  readonly leases = new Cache<LeaseRecord>();
  readonly directory = new PoolDirectory({ pools: this.pools, networks: this.networks });

  constructor() {
    const subnets = [{ cidr: '10.1.0.0/24' }, { cidr: 'fd00:1::/64' }];
    this.pools.set(adminPool('data', { network: 'data', subnets, guest: { attachment: 'data', dhcp: {} } }));
    this.networks.set(nad('vms/data', { name: 'data', type: 'bridge', allowPersistentIPs: true }));
    this.directory.changed();
    const owner = vmReference('vm-uid', 'vm1');
    const made = claim({
      name: 'vm1.data',
      network: 'data',
      nad: 'vms/data',
      owner,
      ips: [`${IPV4}/24`, `${IPV6}/64`],
    });
    made.metadata.annotations = { ...made.metadata.annotations, [CLAIM_GUEST_MAC]: MAC };
    this.claims.set(made);
    const interfaces = [{ name: 'data', infoSource: 'domain', mac: MAC }];
    const running = vmi({ data: 'vms/data' }, { name: 'vm1', vm: 'vm-uid' });
    this.vmis.set({ ...running, status: { phase: 'Running', interfaces } });
  }

  addLease(text: string, pool = 'data'): void {
    const [{ metadata } = claim({})] = this.claims.list();
    const owner = { kind: 'IPAMClaim' as const, namespace: 'vms', name: metadata.name, uid: metadata.uid ?? '' };
    const { object: lease } = createLease({ address: parseAddress(text), addressSpace: 'data', pool, owner });
    this.leases.set(readLease({ ...lease, metadata: { ...lease.metadata, uid: text, resourceVersion: '1' } }));
  }

  served(): (string | undefined)[] {
    const state = this.directory.stateOf('data');
    if (state?.kind !== 'served') throw new TypeError('the pool is valid');
    const entry = runAtOnce(buildTable(state.pool, runAtOnce(poolGuests(state.pool, this)))).entries.get(MAC);
    return [entry?.ipv4?.address, entry?.ipv6?.address];
  }
}

describe('the table of a pool with a dual-stack guest', () => {
  let world: World;
  beforeEach(() => {
    world = new World();
  });

  it('has both addresses, also if one is leased from an earlier pool of the address space', () => {
    world.addLease(IPV4, 'derived');
    world.addLease(IPV6);
    expect(world.served()).to.deep.equal([IPV4, IPV6]);
  });

  for (const [leased, expected] of [
    [IPV4, [IPV4, undefined]],
    [IPV6, [undefined, IPV6]],
  ] as const) {
    it(`keeps ${leased} when the lease of the other family is lost`, () => {
      world.addLease(leased);
      expect(world.served()).to.deep.equal(expected);
    });
  }
});
