import { expect } from 'chai';
import fc from 'fast-check';
import { parse } from 'yaml';
import type { GuestOptions } from '../../api/address-pool.js';
import { guestInterfacesOf } from '../interfaces.js';
import { shownAddresses } from '../leased-addresses.js';
import { type GivenInterface, GuestWorld, guestSpec, guestWorkload } from '../testing/guest-world.js';
import { type NetworkDataPlan, networkDataOf } from './plan.js';
import type { NetworkDataFormat } from './request.js';

const MAC = '52:54:00:12:34:56';
const POD: GivenInterface = { name: 'default', nad: 'pod', macAddress: '02:00:00:00:00:01' };
const DATA: GivenInterface = { name: 'data', nad: 'data', macAddress: MAC };
const PLAIN: GivenInterface = { name: 'plain', nad: 'plain', macAddress: '02:00:00:00:00:03' };
const GUEST: GuestOptions = {
  dns: { nameservers: ['10.9.0.53', 'fd00:9::53'], search: ['example.com'] },
  routes: [
    { destination: '10.8.0.0/16', gateway: '10.1.0.254' },
    { destination: 'fd00:8::/48', gateway: 'fd00:1::fe' },
  ],
  mtu: 1400,
};

describe('the network data of a guest', () => {
  let world: GuestWorld;

  beforeEach(() => {
    world = new GuestWorld();
    world.addNetwork(
      'data',
      [
        { cidr: '10.1.0.0/24', gateway: '10.1.0.1' },
        { cidr: 'fd00:1::/64', gateway: 'fd00:1::1' },
      ],
      GUEST,
    );
    world.addClaim('data', ['10.1.0.5/24', 'fd00:1::5/64']);
    world.addNad('plain', { name: 'plain', type: 'bridge' });
  });

  function plan(
    given: readonly GivenInterface[],
    options: { format?: NetworkDataFormat; defaultRoute?: string } = {},
  ): NetworkDataPlan {
    const { format = 'version-2', defaultRoute } = options;
    const interfaces = guestInterfacesOf(guestWorkload(guestSpec(given)), world.view);
    return networkDataOf({ interfaces, defaultRoute, format, addressesOf: shownAddresses });
  }

  function textOf(...given: Parameters<typeof plan>): string {
    const found = plan(...given);
    if (found.kind !== 'ready') throw new Error(found.message);
    return found.text;
  }

  it('has in version 2 every interface by its MAC address, and one default route', () => {
    const addresses = ['10.1.0.5/24', 'fd00:1::5/64'];
    const nameservers = { addresses: ['10.9.0.53', 'fd00:9::53'], search: ['example.com'] };
    const routes = [
      { to: '10.8.0.0/16', via: '10.1.0.254' },
      { to: 'fd00:8::/48', via: 'fd00:1::fe' },
    ];
    const match = { macaddress: MAC };
    const own = { match, dhcp4: false, dhcp6: false, 'accept-ra': false, addresses, mtu: 1400, routes, nameservers };
    const dynamic = { match: { macaddress: POD.macAddress }, dhcp4: true, dhcp6: true, optional: true };
    expect(parse(textOf([POD, DATA]))).to.deep.equal({ version: 2, ethernets: { nic0: dynamic, nic1: own } });
    const withoutRoutes = { 'dhcp4-overrides': { 'use-routes': false }, 'dhcp6-overrides': { 'use-routes': false } };
    expect(parse(textOf([POD, DATA], { defaultRoute: 'data' }))).to.deep.equal({
      version: 2,
      ethernets: {
        nic0: { ...dynamic, ...withoutRoutes },
        nic1: { ...own, gateway4: '10.1.0.1', gateway6: 'fd00:1::1' },
      },
    });
  });

  it('has in the format of OpenStack every interface by its MAC address, and one default route', () => {
    const dns = { dns_nameservers: ['10.9.0.53', 'fd00:9::53'], dns_search: ['example.com'] };
    const services = ['10.9.0.53', 'fd00:9::53'].map((address) => ({ type: 'dns', address }));
    const link = 'nic0';
    expect(JSON.parse(textOf([DATA], { format: 'openstack' }))).to.deep.equal({
      links: [{ id: 'nic0', type: 'phy', ethernet_mac_address: MAC, mtu: 1400 }],
      networks: [
        {
          ...{ id: 'nic0-ipv4', type: 'ipv4', ip_address: '10.1.0.5', netmask: '255.255.255.0' },
          routes: [
            { network: '0.0.0.0', netmask: '0.0.0.0', gateway: '10.1.0.1' },
            { network: '10.8.0.0', netmask: '255.255.0.0', gateway: '10.1.0.254' },
          ],
          ...{ link, ...dns, services },
        },
        {
          ...{ id: 'nic0-ipv6', type: 'ipv6', ip_address: 'fd00:1::5', netmask: 'ffff:ffff:ffff:ffff::' },
          routes: [
            { network: '::', netmask: '::', gateway: 'fd00:1::1' },
            { network: 'fd00:8::', netmask: 'ffff:ffff:ffff::', gateway: 'fd00:1::fe' },
          ],
          link,
        },
      ],
      services,
    });
    const { networks } = JSON.parse(textOf([POD, DATA], { format: 'openstack' })) as { networks: { type: string }[] };
    expect(networks.map(({ type }) => type)).to.deep.equal(['ipv4_dhcp', 'ipv6_dhcp', 'ipv4', 'ipv6']);
  });

  it('accepts router advertisements only where they may bring the default route', () => {
    world.addNetwork('data', [{ cidr: '10.1.0.0/24' }, { cidr: 'fd00:1::/64' }]);
    const nic = (...given: Parameters<typeof plan>) =>
      (parse(textOf(...given)) as { ethernets: Record<string, object> }).ethernets.nic0;
    expect(nic([DATA], { defaultRoute: 'none' })).to.have.property('accept-ra', false);
    expect(nic([DATA, POD])).to.have.property('accept-ra', false);
    world.addNetwork('data', [{ cidr: '10.1.0.0/24', gateway: '10.1.0.1' }, { cidr: 'fd00:1::/64' }]);
    expect(nic([DATA])).to.not.have.property('accept-ra');
  });

  it('leaves out routes through gateways that the guest cannot reach', () => {
    world.addNetwork('data', [{ cidr: '10.1.0.0/24' }, { cidr: '10.2.0.0/24' }], {
      routes: [{ destination: '10.8.0.0/16', gateway: '10.2.0.1' }],
    });
    world.addClaim('data', ['10.1.0.5/24']);
    expect(textOf([DATA])).to.not.include('10.8.0.0');
  });

  it('has routes of a NAD without a gateway through that of the subnet of the guest', () => {
    const subnets = [1, 2].map((each) => ({ cidr: `10.${each}.0.0/24`, gateway: `10.${each}.0.1` }));
    const ipam = { type: 'holdfast', routes: [{ dst: '10.8.0.0/16' }] };
    world.addNetwork('data', subnets, {}, { ipam });
    world.addClaim('data', ['10.2.0.5/24']);
    const { ethernets } = parse(textOf([DATA])) as { ethernets: Record<string, { routes?: object }> };
    expect(ethernets.nic0?.routes).to.deep.equal([{ to: '10.8.0.0/16', via: '10.2.0.1' }]);
  });

  const refusals: { name: string; given: () => Parameters<typeof plan>; reason: string; message: string }[] = [
    {
      name: 'without the MAC addresses of all interfaces, and names those without',
      given: () => [[{ name: 'default', nad: 'pod' }, DATA, { ...PLAIN, macAddress: '' }]],
      reason: 'MACAddressMissing',
      message: 'has none for "default", "plain": set macAddress of each interface',
    },
    {
      name: 'with an invalid MAC address',
      given: () => [[{ ...DATA, macAddress: 'x\u001b[2J' }]],
      reason: 'MACAddressInvalid',
      message: 'macAddress "x\\u001b[2J" of interface "data" is not a MAC address',
    },
    {
      name: 'with one MAC address on two interfaces',
      given: () => [[DATA, { ...PLAIN, macAddress: MAC.toUpperCase() }]],
      reason: 'MACAddressInvalid',
      message: 'Interface "plain" has the MAC address of another interface',
    },
    {
      name: 'with a default route that cannot be',
      given: () => [[DATA], { defaultRoute: 'other' }],
      reason: 'DefaultRouteInvalid',
      message: '"other" is not a network of the VM',
    },
    {
      name: 'in the format of OpenStack, if an interface must use DHCP without its default route',
      given: () => [[DATA, PLAIN], { format: 'openstack' }],
      reason: 'DefaultRouteNotExpressible',
      message: 'Interface "plain" uses DHCP and must not have the default route',
    },
    {
      name: 'before a claim exists',
      given: () => {
        world.claims.delete('vms/vm1.data');
        return [[POD, DATA]];
      },
      reason: 'AddressesPending',
      message: 'No Secret is written yet: IPAMClaim vm1.data has no addresses: it does not exist yet',
    },
    {
      name: 'before all claims have addresses',
      given: () => {
        world.addNetwork('more', [{ cidr: '10.3.0.0/24' }]);
        world.addClaim('more', []);
        return [[DATA, { name: 'more', nad: 'more', macAddress: '02:00:00:00:00:09' }]];
      },
      reason: 'AddressesPending',
      message: 'IPAMClaim vm1.more has no addresses that are leased to it',
    },
  ];
  for (const { name, given, reason, message } of refusals) {
    it(`is not written ${name}`, () => {
      const found = plan(...given());
      expect(found).to.include({ reason });
      expect(found.kind === 'ready' ? found.text : found.message).to.include(message);
    });
  }

  it('is not written if it is larger than a disk should be', () => {
    const routes = Array.from({ length: 16 }, (_, n) => ({ destination: `10.${n + 20}.0.0/16`, gateway: '10.1.0.1' }));
    const given = Array.from({ length: 200 }, (_, n): GivenInterface => {
      const name = `n${n}`;
      world.addNetwork(name, [{ cidr: '10.1.0.0/24' }], { routes });
      world.addClaim(name, ['10.1.0.5/24']);
      return { name, nad: name, macAddress: `02:00:00:00:00:${n.toString(16).padStart(2, '0')}` };
    });
    expect(plan(given)).to.include({ reason: 'TooLarge' });
  });

  it('lists every interface, has at most one default route of a family, and has no text of a tenant', () => {
    const name = fc.string({ minLength: 1, maxLength: 63 });
    const made = fc.record({ name, source: fc.constantFrom('pod', 'plain', 'data', 'routed'), number: fc.nat(0xffff) });
    world.addNetwork('routed', [{ cidr: '10.7.0.0/16', gateway: '10.7.0.1' }, { cidr: 'fd00:7::/64' }]);
    const interfaces = fc.uniqueArray(made, { minLength: 1, maxLength: 8, selector: (each) => each.name });
    const route = fc.option(fc.oneof(name, fc.constant('none')), { nil: undefined });
    fc.assert(
      fc.property(
        interfaces,
        route,
        fc.constantFrom('version-2' as const, 'openstack' as const),
        (all, asked, format) => {
          const macs = new Map<string, string>();
          const given = all.map(({ name: each, source, number }, index): GivenInterface => {
            const macAddress = `02:00:00:${[index, number >> 8, number & 255].map((byte) => byte.toString(16).padStart(2, '0')).join(':')}`;
            macs.set(each, macAddress);
            if (source === 'data' || source === 'routed')
              world.addClaim(each, source === 'data' ? ['10.1.0.9/24'] : ['10.7.0.9/16', 'fd00:7::9/64'], {
                network: source,
              });
            return { name: each, nad: source, macAddress };
          });
          const found = plan(given, { format, ...(asked !== undefined && { defaultRoute: asked }) });
          if (found.kind !== 'ready') {
            expect(found.message)
              .to.match(/^\P{Cc}*$/u)
              .and.have.length.below(4_000);
            return;
          }
          const read = format === 'openstack' ? readOpenstack(found.text) : readVersion2(found.text);
          expect(read.macs.sort()).to.deep.equal([...macs.values()].sort());
          expect(read.routes4).to.be.at.most(1);
          expect(read.routes6).to.be.at.most(1);
          for (const each of macs.keys()) if (each.length > 12) expect(found.text).to.not.include(each);
        },
      ),
      { numRuns: 200 },
    );
  });
});

interface ReadData {
  macs: string[];
  /** Interfaces that may bring a default route of the family. */
  routes4: number;
  routes6: number;
}

function readVersion2(text: string): ReadData {
  const { ethernets } = parse(text, { version: '1.1' }) as { ethernets: Record<string, Record<string, unknown>> };
  const nics = Object.values(ethernets);
  const isDefault = (nic: Record<string, unknown>, family: 4 | 6) =>
    nic[`gateway${family}`] !== undefined ||
    (nic[`dhcp${family}`] === true && nic[`dhcp${family}-overrides`] === undefined);
  return {
    macs: nics.map(({ match }) => (match as { macaddress: string }).macaddress),
    routes4: nics.filter((nic) => isDefault(nic, 4)).length,
    routes6: nics.filter((nic) => isDefault(nic, 6) || (nic.dhcp6 === false && nic['accept-ra'] === undefined)).length,
  };
}

function readOpenstack(text: string): ReadData {
  const { links, networks } = JSON.parse(text) as {
    links: { ethernet_mac_address: string }[];
    networks: { type: string; routes?: { network: string }[] }[];
  };
  const count = (type: string, network: string) =>
    networks.filter(
      (each) =>
        each.type === `${type}_dhcp` || each.routes?.some((route) => each.type === type && route.network === network),
    ).length;
  return {
    macs: links.map((link) => link.ethernet_mac_address),
    routes4: count('ipv4', '0.0.0.0'),
    routes6: count('ipv6', '::'),
  };
}
