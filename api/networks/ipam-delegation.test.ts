import { expect } from 'chai';
import fc from 'fast-check';
import { callingPluginFingerprints, pluginFingerprint, readIpamDelegation } from './ipam-delegation.js';
import type { NetworkAttachmentDefinition } from './network-attachment.js';

function delegationOf(config: unknown) {
  const text = typeof config === 'string' ? config : JSON.stringify(config);
  const nad: NetworkAttachmentDefinition = { metadata: { name: 'n', namespace: 'vms' }, spec: { config: text } };
  return readIpamDelegation(nad);
}

/** The config of a NAD whose `ipam` is that of Holdfast. */
function ipamOf(ipam: object) {
  return delegationOf({ name: 'blue', type: 'bridge', ipam: { type: 'holdfast', ...ipam } });
}

const PATH = 'spec.config.ipam';

describe('the IPAM delegation of a NAD', () => {
  const elsewhere = [
    { name: 'nobody, without ipam', given: { type: 'bridge' }, expect: { kind: 'none' } },
    { name: 'nobody, with an empty ipam', given: { type: 'bridge', ipam: {} }, expect: { kind: 'none' } },
    { name: 'nobody that can be named', given: { ipam: { type: 5 }, plugins: 'x' }, expect: { kind: 'none' } },
    { name: 'nobody, where the config is on the nodes', given: '', expect: { kind: 'none' } },
    {
      name: 'another IPAM, whose keys are none of our business',
      given: { type: 'bridge', ipam: { type: 'host-local', subnets: 5 } },
      expect: { kind: 'other', type: 'host-local' },
    },
    {
      name: 'another IPAM in a plugin of a list',
      given: { plugins: [{ type: 'tuning' }, { type: 'bridge', ipam: { type: 'dhcp' } }] },
      expect: { kind: 'other', type: 'dhcp' },
    },
  ];
  for (const { name, given, expect: expected } of elsewhere) {
    it(`is ${name}`, () => expect(delegationOf(given)).to.deep.equal(expected));
  }

  for (const type of [
    'Holdfast',
    'HoldFast',
    'HOLDFAST',
    'holdfast ',
    ' holdfast',
    'hold-fast',
    '"holdfast"',
    'holdfast\u200b',
  ]) {
    it(`is invalid if its type is ${JSON.stringify(type)}, and names the type that was meant`, () => {
      const message = `is ${JSON.stringify(type)}, and no IPAM plugin has this name: write "holdfast"`;
      const single = delegationOf({ type: 'bridge', ipam: { type, subnets: 5 } });
      expect(single).to.deep.equal({ kind: 'invalid', problem: { field: 'spec.config.ipam.type', message } });
      const list = delegationOf({ plugins: [{ type: 'tuning' }, { type: 'bridge', ipam: { type } }] });
      expect(list).to.deep.equal({ kind: 'invalid', problem: { field: 'spec.config.plugins[1].ipam.type', message } });
    });
  }

  it('is that of another IPAM whose name only contains ours', () => {
    expect(delegationOf({ ipam: { type: 'holdfast2' } })).to.deep.equal({ kind: 'other', type: 'holdfast2' });
  });

  it("is Holdfast without subnets, for an administrator's pool", () => {
    expect(ipamOf({})).to.deep.equal({ kind: 'holdfast', config: { path: PATH, subnets: [], ranges: [] } });
  });

  it('is Holdfast with subnets in a plugin of a list', () => {
    const subnet = { cidr: '10.0.0.0/24', ranges: ['10.0.0.8/29'], exclude: ['10.0.0.9'], gateway: '10.0.0.1' };
    const ipam = {
      type: 'holdfast',
      subnets: [{ ...subnet, reserved: ['10.0.0.10'] }, { cidr: 'fd00::/64' }],
      addressSpace: 'lan',
      cooldownSeconds: 60,
      stickyMAC: { ttl: '24h' },
    };
    const { type: _type, ...read } = ipam;
    expect(delegationOf({ plugins: [{ type: 'tuning' }, { type: 'bridge', ipam }] })).to.deep.equal({
      kind: 'holdfast',
      config: { path: 'spec.config.plugins[1].ipam', ranges: [], ...read },
    });
  });

  it('is Holdfast with the keys of whereabouts, including those without effect', () => {
    const given = {
      range: '192.168.2.225/28',
      range_start: '192.168.2.226',
      range_end: '192.168.2.230',
      exclude: ['192.168.2.229/30'],
      gateway: '192.168.2.1',
      ipRanges: [{ range: 'fd00::/64', exclude: ['fd00::1/128'] }],
      network_name: 'lan',
      routes: [{ dst: '0.0.0.0/0' }],
      dns: {},
      log_file: 'whereabouts.log',
      log_level: 'debug',
      datastore: 'kubernetes',
      kubernetes: { kubeconfig: '/x' },
      enable_overlapping_ranges: false,
    };
    expect(ipamOf(given)).to.deep.equal({
      kind: 'holdfast',
      config: {
        path: PATH,
        subnets: [],
        ranges: [
          {
            path: PATH,
            range: '192.168.2.225/28',
            start: '192.168.2.226',
            end: '192.168.2.230',
            exclude: ['192.168.2.229/30'],
          },
          { path: `${PATH}.ipRanges[0]`, range: 'fd00::/64', exclude: ['fd00::1/128'] },
        ],
        gateway: '192.168.2.1',
        addressSpace: 'lan',
      },
    });
  });

  it('applies an exclude list next to ipRanges to every range', () => {
    const read = ipamOf({ exclude: ['10.0.0.1/32'], ipRanges: [{ range: '10.0.0.0/24', exclude: ['10.0.0.2/32'] }] });
    expect(read).to.have.nested.property('config.ranges[0].exclude').that.deep.equals(['10.0.0.2/32', '10.0.0.1/32']);
  });

  it('treats null and an empty string as absent', () => {
    const empty = { range: null, range_start: '', gateway: '', exclude: null, subnets: null, stickyMAC: null };
    expect(ipamOf(empty)).to.deep.equal(ipamOf({}));
  });

  const refused = [
    {
      name: 'an unknown key',
      given: { subnet: '10.0.0.0/24' },
      field: 'subnet',
      message: /^is unknown: .* subnets, .* routes, dns$/,
    },
    { name: 'a key in another case', given: { Range: '10.0.0.0/24' }, field: 'Range', message: /^is unknown/ },
    {
      name: 'an unknown key of a subnet',
      given: { subnets: [{ cidr: '10.0.0.0/24', excludes: [] }] },
      field: 'subnets[0].excludes',
      message: /; known keys: cidr, ranges, exclude, gateway, reserved, draining$/,
    },
    {
      name: 'an unknown key of a range',
      given: { ipRanges: [{ range: '10.0.0.0/24', gateway: '10.0.0.1' }] },
      field: 'ipRanges[0].gateway',
      message: /^is unknown/,
    },
    { name: 'a subnet that is no object', given: { subnets: ['x'] }, field: 'subnets[0]', message: /^is "x": / },
    { name: 'a subnet without CIDR', given: { subnets: [{}] }, field: 'subnets[0].cidr', message: /^is absent: / },
    { name: 'subnets that are no list', given: { subnets: {} }, field: 'subnets', message: /^is an object: / },
    { name: 'a range without range', given: { ipRanges: [{}] }, field: 'ipRanges[0].range', message: /^is absent: / },
    {
      name: 'a start without a range',
      given: { range_start: '10.0.0.1' },
      field: 'range_start',
      message: /^has no effect without/,
    },
    { name: 'a range that is a number', given: { range: 10 }, field: 'range', message: /^is 10: / },
    { name: 'an exclusion that is a number', given: { exclude: [3] }, field: 'exclude[0]', message: /^is 3: / },
    { name: 'an empty exclude', given: { range: '10.0.0.0/24', exclude: [''] }, field: 'exclude[0]', message: /empty/ },
    { name: 'a cool-down in quotes', given: { cooldownSeconds: '5' }, field: 'cooldownSeconds', message: /^is "5": / },
    {
      name: 'a negative cool-down',
      given: { cooldownSeconds: -1 },
      field: 'cooldownSeconds',
      message: /^is -1: .*0 or more/,
    },
    { name: 'a sticky MAC without end', given: { stickyMAC: {} }, field: 'stickyMAC.ttl', message: /"24h"$/ },
    {
      name: 'both notations',
      given: { subnets: [{ cidr: '10.0.0.0/24' }], range: '10.0.1.0/24' },
      field: 'range',
      message: /cannot be combined with subnets/,
    },
    {
      name: 'a gateway beside subnets',
      given: { subnets: [{ cidr: '10.0.0.0/24' }], gateway: '10.0.0.1' },
      field: 'gateway',
      message: /into spec\.config\.ipam\.subnets/,
    },
  ];
  for (const { name, given, field, message } of refused) {
    it(`is rejected with the field and a remedy: ${name}`, () => {
      const read = ipamOf(given);
      if (read.kind !== 'invalid') expect.fail(`${read.kind}, not invalid`);
      expect(read.problem.field).to.equal(`${PATH}.${field}`);
      expect(read.problem.message).to.match(message);
    });
  }

  it('is rejected if two plugins of a list delegate IPAM and one of them to Holdfast', () => {
    for (const type of ['holdfast', 'host-local']) {
      const plugins = [{ ipam: { type: 'holdfast' } }, { ipam: { type } }];
      expect(delegationOf({ plugins })).to.deep.equal({
        kind: 'invalid',
        problem: {
          field: 'spec.config.plugins[1].ipam',
          message: 'delegates IPAM, but spec.config.plugins[0].ipam does so too: remove one of them',
        },
      });
    }
  });

  it('is invalid where the runtime does not read it', () => {
    const [ipam, plugins] = [{ type: 'holdfast' }, [{ type: 'bridge' }]];
    const problem = { field: PATH, message: 'has no effect beside plugins: move it into the plugin that creates the interface' }; // oxfmt-ignore
    for (const type of [undefined, ''])
      expect(delegationOf({ type, ipam, plugins })).to.deep.equal({ kind: 'invalid', problem });
    expect(delegationOf({ type: 'bridge', ipam, plugins })).to.have.property('kind', 'holdfast');
    const ofList = delegationOf({ type: 'bridge', plugins: [{ type: 'bridge', ipam }] });
    expect(ofList).to.have.nested.property('problem.message').that.includes('remove spec.config.type');
  });

  it('is invalid if the config cannot be read', () => {
    expect(delegationOf('{')).to.have.property('kind', 'invalid');
  });

  it('never throws for any content of the object', () => {
    const keys = fc.constantFrom('subnets', 'range', 'ipRanges', 'exclude', 'gateway', 'stickyMAC', 'cidr', 'ranges');
    const value = fc.jsonValue({ maxDepth: 3 });
    fc.assert(
      fc.property(fc.dictionary(keys, fc.oneof(value, fc.array(fc.dictionary(keys, value)))), (ipam) => {
        expect(ipamOf(ipam).kind).to.be.oneOf(['holdfast', 'invalid']);
      }),
    );
  });
});

const BRIDGE = { type: 'bridge', bridge: 'br1', ipam: { type: 'holdfast', subnets: [{ cidr: '10.0.0.0/24' }] } };

function pluginsOf(config: unknown): readonly string[] | undefined {
  return callingPluginFingerprints({
    metadata: { name: 'blue' },
    spec: { config: typeof config === 'string' ? config : JSON.stringify(config) },
  });
}

/** The same value with the keys of all objects in the opposite order. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, each]) => [key, reversed(each)]),
  );
}

describe("the fingerprint of a plugin's config", () => {
  it('does not depend on the order of the keys', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (config) => {
        expect(pluginFingerprint(reversed(config) as typeof config)).to.equal(pluginFingerprint(config));
      }),
    );
  });

  it('differs if any value differs that the runtime does not change', () => {
    expect(pluginFingerprint({ ...BRIDGE, bridge: 'br2' })).not.to.equal(pluginFingerprint(BRIDGE));
    expect(pluginFingerprint({ ...BRIDGE, vlan: 1 })).not.to.equal(pluginFingerprint(BRIDGE));
    expect(pluginFingerprint({ a: ['b', 'c'] })).not.to.equal(pluginFingerprint({ a: ['c', 'b'] }));
    expect(pluginFingerprint({ a: { keys: [], values: [] } })).not.to.equal(pluginFingerprint({ a: {} }));
  });

  it('is undefined for a config that is too deep, without more work', () => {
    const deep = JSON.parse(`{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}`) as Record<string, unknown>;
    expect(pluginFingerprint(deep)).to.equal(undefined);
  });
});

describe('the plugins of a NAD that delegate to Holdfast', () => {
  const ours = pluginFingerprint(BRIDGE);

  it('are also those that only guard interfaces, which are chained after another plugin', () => {
    const guarding = { type: 'holdfast' };
    const plugins = [{ type: 'bridge', bridge: 'br1' }, guarding];
    expect(pluginsOf({ name: 'blue', plugins })).to.deep.equal([pluginFingerprint(guarding)]);
    expect(pluginsOf({ name: 'blue', ...guarding })).to.deep.equal([]);
  });

  it('are the config itself, or plugins of its list', () => {
    expect(pluginsOf({ cniVersion: '1.0.0', name: 'blue', ...BRIDGE })).to.deep.equal([ours]);
    const list = { name: 'blue', plugins: [{ type: 'tuning' }, BRIDGE, { type: 'x', ipam: { type: 'static' } }] };
    expect(pluginsOf(list)).to.deep.equal([ours]);
  });

  it('are none if the config delegates to others, or cannot be read', () => {
    expect(pluginsOf({ type: 'bridge', ipam: { type: 'static' } })).to.deep.equal([]);
    expect(pluginsOf('{')).to.deep.equal([]);
  });

  it('are unknown if the config is a file on the nodes', () => {
    expect(pluginsOf('')).to.equal(undefined);
  });
});
