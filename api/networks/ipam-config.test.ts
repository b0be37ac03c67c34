import { expect } from 'chai';
import { MAX_NAD_CONFIG_LENGTH, MAX_NAD_PLUGINS, POOL_LIMITS } from '../limits.js';
import { readIpamDelegation } from './ipam-delegation.js';
import { parseNetworkConfig } from './network-attachment.js';

const PATH = 'spec.config.ipam';

function nadOf(config: object | string) {
  const text = typeof config === 'string' ? config : JSON.stringify(config);
  return { metadata: { name: 'n', namespace: 'vms' }, spec: { config: text } };
}

function ipamOf(ipam: object) {
  return readIpamDelegation(nadOf({ name: 'blue', type: 'bridge', ipam: { type: 'holdfast', ...ipam } }));
}

function many<T>(count: number, element: T): T[] {
  return Array.from({ length: count }, () => element);
}

const CIDR = '10.0.0.0/24';
const EXCLUDED = '10.0.0.9';

describe('a NAD that delegates to Holdfast', () => {
  const over: { name: string; given: object; field: string; message: RegExp }[] = [
    {
      name: 'more subnets than a pool may have',
      given: { subnets: many(17, { cidr: CIDR }) },
      field: `${PATH}.subnets`,
      message: /^has 17 elements: at most 16 are allowed$/,
    },
    {
      name: 'more ranges of whereabouts than a pool may have subnets',
      given: { ipRanges: many(17, { range: CIDR }) },
      field: `${PATH}.ipRanges`,
      message: /^has 17 elements: at most 16 are allowed$/,
    },
    {
      name: 'more exclusions beside its ranges than a subnet may have',
      given: { ipRanges: [{ range: CIDR }], exclude: many(257, EXCLUDED) },
      field: `${PATH}.exclude`,
      message: /^has 257 elements: at most 256 are allowed$/,
    },
    {
      name: 'more exclusions in a range than a subnet may have',
      given: { ipRanges: [{ range: CIDR, exclude: many(257, EXCLUDED) }] },
      field: `${PATH}.ipRanges[0].exclude`,
      message: /^has 257 elements/,
    },
    ...(['ranges', 'exclude', 'reserved'] as const).map((key) => ({
      name: `more ${key} than a subnet may have`,
      given: { subnets: [{ cidr: CIDR, [key]: many(POOL_LIMITS[key] + 1, EXCLUDED) }] },
      field: `${PATH}.subnets[0].${key}`,
      message: /^has \d+ elements: at most \d+ are allowed$/,
    })),
    {
      name: 'an element that is longer than any address range',
      given: { subnets: [{ cidr: CIDR, exclude: ['1'.repeat(92)] }] },
      field: `${PATH}.subnets[0].exclude[0]`,
      message: /^has 92 characters: at most 91 are allowed$/,
    },
    {
      name: 'more labels of nodes than a pool may have',
      given: { nodeSelector: Object.fromEntries(many(33, '').map((_, index) => [`l${index}`, 'x'])) },
      field: `${PATH}.nodeSelector`,
      message: /^has 33 labels: at most 32 are allowed$/,
    },
    {
      name: 'a duration that is longer than any duration',
      given: { stickyMAC: { ttl: '1h'.repeat(20) } },
      field: `${PATH}.stickyMAC.ttl`,
      message: /^has 40 characters: at most 32 are allowed$/,
    },
  ];
  for (const { name, given, field, message } of over) {
    it(`is rejected if it has ${name}`, () => {
      const read = ipamOf(given);
      if (read.kind !== 'invalid') throw new Error(`it is ${read.kind}`);
      expect(read.problem.field).to.equal(field);
      expect(read.problem.message).to.match(message);
    });
  }

  it('adds its list of exclusions to each of its ranges', () => {
    const read = ipamOf({ ipRanges: [{ range: CIDR }, { range: '10.1.0.0/24' }], exclude: [EXCLUDED] });
    if (read.kind !== 'holdfast') throw new Error(`it is ${read.kind}`);
    const [first, second] = read.config.ranges;
    expect(first!.exclude).to.deep.equal([EXCLUDED]);
    expect(second!.exclude).to.equal(first!.exclude);
  });

  it('says where to write allowPersistentIPs', () => {
    const problem = { field: `${PATH}.allowPersistentIPs`, message: 'is not read here: move it out of ipam' };
    expect(ipamOf({ allowPersistentIPs: true })).to.deep.equal({ kind: 'invalid', problem });
  });

  it('is rejected with a short message if it has a very long unknown key', () => {
    const read = ipamOf({ ['k'.repeat(5000)]: 1 });
    if (read.kind !== 'invalid') throw new Error(`it is ${read.kind}`);
    expect(read.problem.field.length).to.be.below(400);
  });
});

describe('the config of a NAD', () => {
  const padded = (length: number) => {
    const config = JSON.stringify({ name: 'blue', type: 'bridge', ipam: { type: 'holdfast' } });
    return `${config}${' '.repeat(length - config.length)}`;
  };

  it('is read up to the maximum length, and is not parsed if it is longer', () => {
    expect(parseNetworkConfig(nadOf(padded(MAX_NAD_CONFIG_LENGTH))).ok).to.equal(true);
    const longer = nadOf(padded(MAX_NAD_CONFIG_LENGTH + 1));
    const problem = {
      field: 'spec.config',
      message: 'has 65537 characters: make it shorter, at most 65536 are allowed',
    };
    expect(parseNetworkConfig(longer)).to.deep.equal({ ok: false, problem });
    expect(readIpamDelegation(longer)).to.deep.equal({ kind: 'invalid', problem });
  });

  it('is rejected if it lists more plugins than the maximum', () => {
    const plugins = many(MAX_NAD_PLUGINS + 1, { type: 'tuning' });
    const problem = { field: 'spec.config', message: 'has 65 plugins: remove some, at most 64 are allowed' };
    expect(parseNetworkConfig(nadOf({ name: 'blue', plugins }))).to.deep.equal({ ok: false, problem });
    expect(parseNetworkConfig(nadOf({ name: 'blue', plugins: plugins.slice(1) })).ok).to.equal(true);
  });
});
