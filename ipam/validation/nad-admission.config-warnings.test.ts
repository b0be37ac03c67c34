import { expect } from 'chai';
import type { AddressPool } from '../../api/address-pool.js';
import type { NetworkAttachmentDefinition } from '../../api/networks/network-attachment.js';
import { transformNad } from '../../cluster/transforms.js';
import { runAtOnce } from '../../kube/run-in-slices.js';
import { adminPool } from '../../test/objects/pool-objects.js';
import { warnOfPersistence, warnOfUnreadableConfig } from './nad-admission.js';
import { reviewNadConfig, reviewNextHops } from './nad-config-review.js';
import { validationViewOf } from './testing/validation-view.js';

function network(config: unknown): NetworkAttachmentDefinition {
  const text = typeof config === 'string' ? config : JSON.stringify(config);
  return { metadata: { name: 'n', namespace: 'vms' }, spec: { config: text } };
}

function persistenceWarnings(config: unknown): string[] {
  return warnOfPersistence(transformNad(network(config)));
}

const OURS = { name: 'blue', type: 'bridge', ipam: { type: 'holdfast' } };

describe('a warning about the config of a NAD', () => {
  it('says that a config is not JSON if it names Holdfast', () => {
    const [warning, ...more] = warnOfUnreadableConfig(network('{"name": "blue", "ipam": {"type": "holdfast"}'));
    expect(warning).to.match(/^spec\.config is not JSON \(.+\): correct it\. It names "holdfast"/);
    expect(more).to.deep.equal([]);
  });

  it('says that a config is not an object if it names Holdfast', () => {
    expect(warnOfUnreadableConfig(network('["holdfast"]')).join()).to.match(/^spec\.config is not a JSON object/);
  });

  for (const [config, problem] of [
    [{ type: 'bridge', IPAM: OURS.ipam }, 'spec.config.IPAM must be written in lower case'],
    [{ plugins: [{ type: 'bridge', ipam: { Type: 'holdfast' } }] }, 'spec.config.plugins[0].ipam has Type but no type'],
    [{ type: 'bridge', ipam: 'holdfast' }, 'spec.config.ipam is "holdfast"'],
  ] as const) {
    it(`says that ${problem}`, () => {
      const [warning, ...more] = warnOfUnreadableConfig(network({ name: 'blue', ...config }));
      expect(warning).to.equal(
        `${problem}. It names "holdfast", but no workload gets an address from it until it is corrected`,
      );
      expect(more).to.deep.equal([]);
    });
  }

  for (const [name, config] of [
    ['a bridge of that name', { name: 'blue', type: 'bridge', bridge: 'holdfast' }],
    ['another IPAM', { name: 'holdfast', type: 'bridge', IPAM: {}, ipam: { type: 'host-local' } }],
    ['a readable config', OURS],
    ['an unreadable config that names no IPAM', '{"name": "blue", "ipam": '],
    ['an unreadable config that names another IPAM', '{"ipam": {"type": "host-local"}, "name": "holdfast-1"'],
    ['an empty config', ''],
  ] as const) {
    it(`is not given for ${name}`, () => {
      expect(warnOfUnreadableConfig(network(config))).to.deep.equal([]);
    });
  }

  it('names each key that differs from the flag in case only, and the correct spelling', () => {
    expect(persistenceWarnings({ ...OURS, allowPersistentIps: true })).to.deep.equal([
      'spec.config.allowPersistentIps has no effect: write allowPersistentIPs, with exactly these capitals',
    ]);
    const plugins = [
      { ...OURS, ALLOWPERSISTENTIPS: true },
      { type: 'tuning', allowpersistentips: false },
    ];
    expect(persistenceWarnings({ name: 'blue', plugins }).map((text) => text.split(' ')[0])).to.deep.equal([
      'spec.config.plugins[0].ALLOWPERSISTENTIPS',
      'spec.config.plugins[1].allowpersistentips',
    ]);
  });

  it('names keys that are nearly the flag, also of NADs without IPAM', () => {
    for (const key of ['allowPersistentIP', 'allow-persistent-ips', 'alowPersistantIPs', 'allowPersistentIPSs']) {
      const warning = `spec.config.${key} has no effect: write allowPersistentIPs, with exactly these capitals`;
      expect(persistenceWarnings({ name: 'blue', type: 'ovs', [key]: true })).to.deep.equal([warning]);
    }
    const crowded = Object.fromEntries('abcdefgh'.split('').map((letter) => [`allowPersistentIP${letter}`, true]));
    expect(persistenceWarnings(crowded)).to.have.lengthOf(4);
  });

  it('says that VMs lose their addresses if the NAD delegates to Holdfast and does not decide about the flag', () => {
    expect(persistenceWarnings(OURS)).to.deep.equal([
      'spec.config has no "allowPersistentIPs": set it to true, or to false if VMs are to get another address at each start',
    ]);
    expect(persistenceWarnings({ name: 'blue', type: 'bridge', ipam: { type: 'host-local' } })).to.deep.equal([]);
  });

  for (const [name, config] of [
    ['the flag itself', { ...OURS, allowPersistentIPs: true }],
    ['other keys', { ...OURS, allowPersistentIPs: false, persistentIPs: true }],
    ['an unreadable config', '{'],
    ['no config', ' '],
  ] as const) {
    it(`does not name ${name}`, () => {
      expect(persistenceWarnings(config)).to.deep.equal([]);
    });
  }
});

describe('the review of the next hops of routes in a NAD', () => {
  const SUBNETS = { subnets: [{ cidr: '10.1.0.0/24' }, { cidr: '2001:db8::/64' }] };
  const warnings = (routes: readonly object[], more: object = SUBNETS, pools: readonly AddressPool[] = []) => {
    const nad = network({ ...OURS, ipam: { type: 'holdfast', ...more, routes } });
    return runAtOnce(reviewNextHops(nad, transformNad(nad), validationViewOf({ pools }))).warnings;
  };
  const admin = adminPool('blue', { network: 'blue', subnets: [{ cidr: '10.9.0.0/24' }] });
  const warning = (index: number, gw: string) =>
    `spec.config.ipam.routes[${index}].gw ${gw} is in no subnet of the network, so no pod on it starts: write an address of a subnet`;

  it('warns of those in no subnet, of both families', () => {
    expect(
      warnings([
        { dst: '10.0.0.0/8', gw: '10.9.0.1' },
        { dst: '10.0.0.0/8', gw: '10.1.0.1' },
        { dst: '2001:db8:1::/48', gw: '2001:db8:9::1' },
      ]),
    ).to.deep.equal([warning(0, '10.9.0.1'), warning(2, '2001:db8:9::1')]);
  });

  it("knows the subnets of the administrator's pool that serves the network", () => {
    const routes = [{ dst: '10.0.0.0/8', gw: '10.9.0.1' }];
    for (const given of [SUBNETS, {}]) expect(warnings(routes, given, [admin])).to.deep.equal([]);
    expect(warnings([{ dst: '10.0.0.0/8', gw: '10.1.0.1' }], {}, [admin])).to.deep.equal([warning(0, '10.1.0.1')]);
  });

  it('accepts those that the kernel reaches otherwise, or whose subnets are unknown', () => {
    expect(warnings([{ dst: '2001:db8:1::/48', gw: 'fe80::1' }])).to.deep.equal([]);
    expect(
      warnings([
        { dst: '169.254.1.1/32', scope: 253 },
        { dst: '0.0.0.0/0', gw: '169.254.1.1' },
      ]),
    ).to.deep.equal([]);
    expect(warnings([{ dst: '0.0.0.0/0', gw: '10.9.0.1' }], {})).to.deep.equal([]);
    expect(warnings([{ dst: '10.0.0.0/8' }])).to.deep.equal([]);
  });

  it('limits their number and that of the routes that it reads', () => {
    const routes = Array.from({ length: 400 }, (_, n) => ({ dst: `10.2.${n & 255}.0/24`, gw: '10.9.0.1' }));
    expect(warnings(routes)).to.have.length(4);
  });
});

describe('the review of what agents read in a NAD', () => {
  const ours = (ipam: object, more: object = {}) =>
    network({ ...OURS, cniVersion: '1.0.0', ...more, ipam: { type: 'holdfast', range: '10.1.0.0/24', ...ipam } });
  const review = (nad: NetworkAttachmentDefinition, oldNad?: NetworkAttachmentDefinition) => {
    const { refusals, warnings } = runAtOnce(reviewNadConfig(nad, oldNad));
    return { refused: refusals.map(({ message }) => message), warnings };
  };
  const ROUTE = { routes: [{ dst: '10.1.0.1/16' }] };
  const refusal = 'spec.config.ipam.routes[0].dst: "10.1.0.1/16" has host bits set: write 10.1.0.0/16.';

  it('refuses routes and DNS that agents refuse, in the words of the agent', () => {
    expect(review(ours(ROUTE)).refused).to.deep.equal([`${refusal} Until then, no pod on this network starts`]);
    const listed = network({
      cniVersion: '1.0.0',
      name: 'blue',
      plugins: [{ type: 'bridge', ipam: { type: 'holdfast', dns: [] } }],
    });
    expect(review(listed).refused.join()).to.match(/^spec\.config\.plugins\[0\]\.ipam\.dns: a list is not an object\./);
  });

  it('warns of routes that were invalid before, and refuses others', () => {
    expect(review(ours({ ...ROUTE, cooldownSeconds: 60 }), ours(ROUTE))).to.deep.equal({
      refused: [],
      warnings: [`${refusal} Until then, no pod on this network starts`],
    });
    expect(review(ours(ROUTE), ours({})).refused).to.have.length(1);
    expect(
      review(ours(ROUTE), network({ name: 'blue', ipam: { type: 'whereabouts', ...ROUTE } })).refused,
    ).to.have.length(1);
  });

  const text =
    /^spec\.config\.cniVersion is (absent, which means "0\.1\.0"|"0\.2\.0"): set it to one of 0\.3\.0, .*1\.1\.0/;
  const list = (versions: object) =>
    network({ name: 'blue', ...versions, plugins: [{ type: 'bridge', ipam: { type: 'holdfast' } }] });

  it('refuses a version of CNI that the plugin does not speak, also the one of a config that names none', () => {
    for (const cniVersion of ['0.2.0', '', undefined]) {
      expect(review(ours({}, { cniVersion })).refused.join()).to.match(text);
      expect(review(list({ cniVersion })).refused.join()).to.match(text);
    }
  });

  it('knows that libcni chooses one of cniVersions, and only in a list of plugins', () => {
    const versions = { cniVersion: '0.2.0', cniVersions: ['0.2.0', '1.0.0'] };
    expect(review(list(versions)).refused).to.deep.equal([]);
    expect(review(list({ cniVersions: ['1.0.0'] })).refused).to.deep.equal([]);
    expect(review(list({ cniVersions: ['0.2.0'] })).refused.join()).to.match(text);
    expect(review(ours({}, versions)).refused.join()).to.match(text);
  });

  const ineffective: [ipam: object, more: object, warning: string][] = [
    [
      { subnets: [{ cidr: '10.1.0.0/24', routes: [] }] },
      {},
      'ipam.subnets[0].routes has no effect: move it to spec.config.ipam.routes',
    ],
    [
      { ipRanges: [{ range: '10.1.0.0/24', name: 'a' }] },
      {},
      'ipam.ipRanges[0].name has no effect: correct or remove it; known keys: range,',
    ],
    [
      { stickyMAC: { ttl: '1h', retains: true } },
      {},
      'ipam.stickyMAC.retains has no effect: correct or remove it; known keys: ttl, retain',
    ],
    [
      { routes: [{ dst: '0.0.0.0/0', gateway: '10.1.0.1' }] },
      {},
      'ipam.routes[0].gateway has no effect: correct or remove it; known keys: dst, gw,',
    ],
    [
      { dns: { nameserver: ['10.1.0.53'] } },
      {},
      'ipam.dns.nameserver has no effect: correct or remove it; known keys: nameservers,',
    ],
    [
      { range: '', guard: { mode: 'Enforce' } },
      {},
      'ipam.guard has no effect without subnets: add them, or ask the administrator to set it in the AddressPool',
    ],
    [{}, { guard: { mode: 'Enforce' } }, 'guard has no effect: move it to spec.config.ipam.guard'],
    [{}, { subnets: [{ cidr: '10.1.0.0/24' }] }, 'subnets has no effect: move it to spec.config.ipam.subnets'],
  ];
  for (const [ipam, more, warning] of ineffective) {
    it(`warns that ${warning.split(':')[0]}`, () => {
      const { refused, warnings } = review(ours(ipam, more));
      expect(refused).to.deep.equal([]);
      expect(warnings).to.have.length(1);
      expect(warnings[0]).to.include(`spec.config.${warning}`);
      expect(review(ours(ipam, { ...more, mtu: 9000 }), ours(ipam, more)).warnings).to.deep.equal([]);
    });
  }

  it('does not warn of keys that are read, nor of those of other plugins', () => {
    const ipam = {
      ...{
        subnets: [{ cidr: '10.1.0.0/24', gateway: '10.1.0.1', exclude: [], reserved: [], draining: [] }],
        log_level: 'debug',
      },
      ...{
        stickyMAC: { ttl: '1h', retain: true },
        blockSize: { ipv4: 28 },
        guard: { mode: 'Off', migrationHold: true },
      },
      ...{
        routes: [{ dst: '10.9.0.0/16', gw: '10.1.0.1', mtu: 1400 }],
        dns: { nameservers: [], search: [], domain: 'a' },
      },
    };
    expect(review(ours(ipam, { subnets: '10.1.0.0/24', dns: {} }))).to.deep.equal({ refused: [], warnings: [] });
    const other = network({ name: 'blue', type: 'bridge', guard: {}, ipam: { type: 'host-local', routes: [{}] } });
    expect(review(other)).to.deep.equal({ refused: [], warnings: [] });
  });
});
