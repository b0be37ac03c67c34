import { expect } from 'chai';
import fc from 'fast-check';
import { asList, isRecord } from '../json.js';
import { type Delivery, deliveryOf, readNadGuestOptions } from './nad-guests.js';

function delivery(config: unknown): Delivery {
  return deliveryOf({ metadata: { name: 'n' }, spec: { config: JSON.stringify(config) } });
}

const bridge = { name: 'blue', type: 'bridge' };
const list = (...plugins: unknown[]) => ({ name: 'blue', plugins });

const GUEST: { name: string; config: object; disables?: true; plugin?: string }[] = [
  { name: 'a bridge without an ipam object', config: bridge },
  { name: 'an empty ipam object', config: { ...bridge, ipam: {} } },
  { name: 'an empty IPAM type', config: { ...bridge, ipam: { type: '' } } },
  { name: 'an ipam object that is null', config: { ...bridge, ipam: null } },
  { name: 'a bridge in a list', config: list({ type: 'bridge' }) },
  { name: 'a bridge with chained plugins', config: list({ type: 'bridge' }, { type: 'tuning' }, { type: 'sbr' }) },
  { name: 'a bridge with a guard', config: list({ type: 'bridge' }, { type: 'holdfast' }) },
  { name: 'a bridge with its interface down', config: { ...bridge, disableContainerInterface: true }, disables: true },
  { name: 'an interface that is down by a text', config: { ...bridge, disableContainerInterface: 'true' } },
  { name: 'macvlan', config: { type: 'macvlan' }, plugin: 'macvlan' },
  { name: 'SR-IOV', config: { type: 'sriov' }, plugin: 'sriov' },
  { name: 'OVS', config: { type: 'ovs' }, plugin: 'ovs' },
  { name: 'macvtap', config: { type: 'macvtap' }, plugin: 'macvtap' },
  { name: "OpenShift's bridge", config: { type: 'cnv-bridge' }, plugin: 'cnv-bridge' },
];

const NONE: { name: string; config: unknown; why: string }[] = [
  {
    name: 'OVN-Kubernetes',
    config: { type: 'ovn-k8s-cni-overlay' },
    why: 'its plugin is "ovn-k8s-cni-overlay", not one',
  },
  { name: 'Kube-OVN', config: { type: 'kube-ovn' }, why: 'its plugin is "kube-ovn", not one of bridge' },
  { name: 'ipvlan, whose interfaces share a MAC address', config: { type: 'ipvlan' }, why: '"ipvlan", not one' },
  { name: 'no type', config: { name: 'blue' }, why: 'its plugin is absent' },
  { name: 'an empty list', config: list(), why: 'its plugin is absent' },
  { name: 'plugins that are no list', config: { ...bridge, plugins: 5 }, why: 'its plugin is absent' },
  { name: 'a plugin that is no object', config: list({ type: 'bridge' }, 5), why: 'spec.config.plugins[1] is 5' },
  {
    name: 'an unknown chained plugin',
    config: list({ type: 'bridge' }, { type: 'x' }),
    why: '"x" may assign addresses',
  },
  {
    name: 'a bridge after the first plugin',
    config: list({ type: 'tuning' }, { type: 'bridge' }),
    why: '"tuning", not',
  },
  { name: 'subnets without a type', config: { ...bridge, ipam: { subnets: [] } }, why: 'has subnets but no type' },
  { name: 'a type that is no text', config: { ...bridge, ipam: { type: 5 } }, why: 'has type but no type' },
  { name: 'ipam that is no object', config: { ...bridge, ipam: 5 }, why: 'spec.config.ipam is 5' },
  {
    name: 'IPAM in a chained plugin',
    config: list({ type: 'bridge' }, { type: 'sbr', ipam: [] }),
    why: 'ipam is a list',
  },
  { name: 'ipam in capitals', config: { ...bridge, IPAM: { type: 'dhcp' } }, why: 'spec.config.IPAM must be written' },
  { name: 'a type in capitals', config: { ...bridge, ipam: { Type: 'dhcp' } }, why: 'has Type but no type' },
  { name: 'plugins in capitals', config: { ...bridge, Plugins: [] }, why: 'spec.config.Plugins must be written' },
  { name: 'a primary network', config: { ...bridge, role: 'primary' }, why: 'primary user-defined network' },
];

describe('the delivery of a NAD', () => {
  for (const { name, config, disables = false, plugin = 'bridge' } of GUEST) {
    it(`is left to the guest for ${name}`, () => {
      expect(delivery(config)).to.deep.equal({ kind: 'guest', plugin, disablesContainerInterface: disables });
    });
  }

  for (const ipam of [{ type: 'holdfast' }, { type: 'whereabouts' }, { type: 'Holdfast' }]) {
    it(`is that of the CNI plugin for the IPAM ${ipam.type}`, () => {
      expect(delivery({ ...bridge, ipam })).to.deep.equal({ kind: 'cni' });
      expect(delivery(list({ type: 'bridge' }, { type: 'tuning', ipam }))).to.deep.equal({ kind: 'cni' });
    });
  }

  for (const [plugin, ipam] of [
    [{ ...bridge, isDefaultGateway: true }, { type: 'host-local' }],
    [bridge, { type: 'holdfast', routes: [{ dst: '10.9.0.0/16' }, { dst: '0.0.0.0/0', gw: '10.1.0.1' }] }],
  ] as const) {
    it(`brings a default route with ${JSON.stringify(ipam)} of ${plugin.type}`, () => {
      expect(delivery({ ...plugin, ipam })).to.deep.equal({ kind: 'cni', bringsDefaultRoute: true });
    });
  }

  for (const { name, config, why } of NONE) {
    it(`is refused for ${name}`, () => {
      const found = delivery(config);
      expect(found.kind).to.equal('none');
      expect(found).to.have.property('why').that.includes(why);
    });
  }

  it('is refused for a config that cannot be read or is a file on the nodes', () => {
    expect(deliveryOf({ metadata: { name: 'n' }, spec: { config: '{' } }).kind).to.equal('none');
    expect(deliveryOf({ metadata: { name: 'n' }, spec: {} }).kind).to.equal('none');
  });

  it('is left to the guest only without any value that may be an IPAM, for any config', () => {
    const key = fc.constantFrom('ipam', 'IPAM', 'type', 'plugins', 'role', 'name');
    const text = fc.constantFrom('bridge', 'tuning', 'kube-ovn', '', 'holdfast');
    const { config } = fc.letrec<{ config: unknown }>((tie) => ({
      config: fc.oneof(
        { maxDepth: 3 },
        text,
        fc.constantFrom(null, 5, true),
        fc.array(tie('config'), { maxLength: 3 }),
        fc.dictionary(key, tie('config'), { maxKeys: 4 }),
      ),
    }));
    fc.assert(
      fc.property(config, (given) => {
        const found = delivery(given);
        if (found.kind !== 'guest') return;
        const read = isRecord(given) ? [given, ...asList(given.plugins)] : []; // no plugin reads what is deeper
        const ipams = read
          .flatMap((plugin) => Object.entries(plugin ?? {}))
          .filter(([name]) => name.toLowerCase() === 'ipam')
          .map(([name, value]) => `${name} ${JSON.stringify(value)}`);
        expect(['ipam null', 'ipam {}', 'ipam {"type":""}']).to.include.members(ipams);
      }),
      { numRuns: 2000, examples: [[{ type: 'bridge', name: { ipam: 'holdfast' } }]] },
    );
  });
});

function options(config: unknown) {
  return readNadGuestOptions({ metadata: { name: 'n' }, spec: { config: JSON.stringify(config) } });
}

describe('the options of a NAD for guests', () => {
  it('are absent if the NAD has none', () => {
    expect(options({ type: 'bridge' })).to.equal(undefined);
    expect(options([])).to.equal(undefined);
    expect(readNadGuestOptions({ metadata: { name: 'n' } })).to.equal(undefined);
  });

  it('are MTU and DNS of the first plugin of a NAD without IPAM', () => {
    const dns = { nameservers: ['10.9.0.53'], search: ['example.com'] };
    expect(options({ type: 'bridge', mtu: 1400, dns })).to.deep.equal({ mtu: 1400, dns });
    expect(
      options({
        plugins: [
          { type: 'bridge', mtu: 1400 },
          { type: 'tuning', mtu: 9000 },
        ],
        dns,
      }),
    ).to.deep.equal({ mtu: 1400, dns });
  });

  it('are routes and DNS of the ipam object if the NAD has one', () => {
    const ipam = { type: 'holdfast', routes: [{ dst: '10.9.0.0/16', gw: '10.1.0.1' }, { dst: '10.8.0.0/16' }] };
    const plugin = { type: 'bridge', mtu: 1400, ipam: { ...ipam, dns: { nameservers: ['10.9.0.53'] } } };
    expect(options({ plugins: [{ type: 'tuning' }, plugin] })).to.deep.equal({
      mtu: 1400,
      dns: { nameservers: ['10.9.0.53'], search: [] },
      routes: [{ destination: '10.9.0.0/16', gateway: '10.1.0.1' }, { destination: '10.8.0.0/16' }],
    });
  });

  it('have no more elements and characters than those of a pool, and none of a wrong type', () => {
    const many = Array.from({ length: 1000 }, (_, n) => `10.9.0.${n}`);
    const routes = many.map((gw) => ({ dst: '10.9.0.0/16', gw }));
    const found = options({
      type: 'bridge',
      mtu: 10,
      ipam: { type: 'x', routes, dns: { nameservers: many, search: ['x'.repeat(254), 5, 'a'] } },
    });
    expect(found?.routes).to.have.length(16);
    expect(found?.dns).to.deep.equal({ nameservers: many.slice(0, 8), search: ['a'] });
    expect(found?.mtu).to.equal(undefined);
    expect(options({ type: 'bridge', dns: 5, mtu: '1400', ipam: { type: 'x', routes: [5, { dst: 7 }] } })).to.equal(
      undefined,
    );
  });
});
