import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { parseAddress } from '../../addressing/address/address.js';
import { compilePool } from '../../addressing/pool/pool.js';
import { GUEST_LIMITS } from '../../api/limits.js';
import { compiledPool } from '../../test/objects/lease-objects.js';
import { adminPool } from '../../test/objects/pool-objects.js';
import { ROOT } from '../../test/source-files.js';
import { MAX_DHCP_OPTION_BYTES } from '../dhcp-options.js';
import {
  type HelperCommand,
  MAX_BATCH,
  MAX_EXPECTED,
  MAX_OPTION_SETS,
  MAX_PROBES,
  helperConfig,
  readReport,
} from './protocol.js';
import { MAX_ENTRIES } from './table.js';

const MAC = '02:00:00:00:00:01';
const REPORTS = ['hello', 'seen', 'counts', 'probed'];

async function session(): Promise<Record<string, unknown>[]> {
  const text = await readFile(join(ROOT, 'guest/packets/testdata/session.jsonl'), 'utf8');
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

const isReport = (message: Record<string, unknown>) => REPORTS.some((kind) => kind in message);

/** Compiles only if the types have all fields of the messages. */
const COMMANDS = {
  config: (config) => ({
    config: {
      v: config.v,
      interface: config.interface,
      server: { ipv4: config.server.ipv4, duid: config.server.duid },
      subnets: config.subnets.map(({ cidr }) => ({ cidr })),
      peers: config.peers,
      ...(config.boot && {
        boot: config.boot.map(({ ipxe, architectures, server, file, url, parameters }) => ({
          ...(ipxe && { ipxe }),
          ...(architectures && { architectures }),
          ...(server !== undefined && { server }),
          ...(file !== undefined && { file }),
          ...(url !== undefined && { url }),
          ...(parameters && { parameters }),
        })),
      }),
      times: {
        renew: config.times.renew,
        rebind: config.times.rebind,
        lease: config.times.lease,
        advertise: config.times.advertise,
      },
    },
  }),
  put: (entries) => ({
    put: entries.map(({ mac, owner, ipv4, ipv6, options, hostname, fqdn, dhcp4 }) => ({
      mac,
      ...(owner !== undefined && { owner }),
      ...(ipv4 && {
        ipv4: { address: ipv4.address, prefix: ipv4.prefix, ...(ipv4.router !== undefined && { router: ipv4.router }) },
      }),
      ...(ipv6 && { ipv6: { address: ipv6.address } }),
      options,
      ...(hostname !== undefined && { hostname }),
      ...(fqdn !== undefined && { fqdn }),
      ...(dhcp4 && { dhcp4: dhcp4.map(({ code, value }) => ({ code, value })) }),
    })),
  }),
  probe: ({ id, address, expect: expected, forMs }) => ({ probe: { id, address, expect: expected, forMs } }),
} satisfies {
  [K in 'config' | 'put' | 'probe']: (value: Extract<HelperCommand, Record<K, unknown>>[K]) => HelperCommand;
};

describe('the protocol with holdfast-packets', () => {
  it('has no field in a configuration or an entry that the types lack', async () => {
    const commands = (await session()).filter(
      (message) => 'config' in message || 'put' in message || 'probe' in message,
    );
    expect(commands.length).to.be.greaterThan(4);
    for (const command of commands as (HelperCommand & Record<string, never>)[]) {
      const [name = ''] = Object.keys(command);
      const copy = COMMANDS[name as 'config' | 'put' | 'probe'](command[name] as never);
      expect(copy).to.deep.equal(command);
    }
  });

  it('has a reader for each report of the recorded session', async () => {
    const reports = (await session()).filter(isReport);
    expect(new Set(reports.flatMap(Object.keys))).to.deep.equal(new Set(REPORTS));
    const kinds = reports.map((report) => readReport(JSON.stringify(report)).kind);
    expect(kinds).to.deep.equal(reports.flatMap(Object.keys));
  });

  it('reads what the helper saw', () => {
    const seen = { kind: 'conflict', mac: '02:00:00:00:00:AB', address: 'fd00:1::a' };
    expect(readReport(JSON.stringify({ seen }))).to.deep.equal({
      kind: 'seen',
      observation: { ...seen, mac: '02:00:00:00:00:ab' },
    });
  });

  const rejected: { name: string; line: string }[] = [
    { name: 'text that is not JSON', line: '{' },
    { name: 'another value than an object', line: '[]' },
    { name: 'an unknown message', line: '{"taken":{}}' },
    { name: 'the answer to a probe without a number', line: JSON.stringify({ probed: { macs: [] } }) },
    { name: 'the answer to a probe without a list', line: JSON.stringify({ probed: { id: 1 } }) },
    {
      name: 'the answer to a probe with too many hosts',
      line: JSON.stringify({ probed: { id: 1, macs: Array(MAX_EXPECTED + 1).fill(MAC) } }),
    },
    {
      name: 'the answer to a probe with text in place of a MAC address',
      line: JSON.stringify({ probed: { id: 1, macs: ['<b>'] } }),
    },
    { name: 'a command', line: '{"fresh":{"forMs":1}}' },
    { name: 'a greeting without a version', line: JSON.stringify({ hello: { mac: MAC } }) },
    { name: 'an unknown observation', line: JSON.stringify({ seen: { kind: 'x', mac: MAC, address: '10.0.0.1' } }) },
    {
      name: 'an observation with text in place of an address',
      line: JSON.stringify({ seen: { kind: 'conflict', mac: MAC, address: '<b>' } }),
    },
    {
      name: 'an observation with a zone, which may have any length, in its address',
      line: JSON.stringify({ seen: { kind: 'conflict', mac: MAC, address: `fe80::1%${'x'.repeat(1000)}` } }),
    },
    {
      name: 'an observation with text in place of a MAC address',
      line: JSON.stringify({ seen: { kind: 'conflict', mac: '\u001b[2J', address: '10.0.0.1' } }),
    },
  ];
  for (const { name, line } of rejected) {
    it(`rejects ${name}`, () => expect(() => readReport(line)).to.throw(TypeError));
  }

  it('counts only what has the form of a count, so that labels are short and few', () => {
    const exchanges = [
      { protocol: 'dhcp4', message: 'discover', answer: 'offer', count: 2 },
      { protocol: 'dhcp4', message: 'x'.repeat(100), answer: 'offer', count: 2 },
      { protocol: 'dhcp4', message: 'discover', answer: 'offer', count: -1 },
      ...Array.from({ length: 500 }, (_, index) => ({ protocol: 'p', message: `m${index}`, answer: 'a', count: 1 })),
    ];
    const report = readReport(JSON.stringify({ counts: { exchanges, dropped: { 'too-long': 3, 'A b': 1, x: 1.5 } } }));
    if (report.kind !== 'counts') throw new Error('not counts');
    expect(report.counts.exchanges[0]).to.deep.equal(exchanges[0]);
    expect(report.counts.exchanges.length).to.be.within(100, 128);
    expect(report.counts.exchanges.every(({ message, count }) => message.length <= 32 && count >= 0)).to.equal(true);
    expect([...report.counts.dropped]).to.deep.equal([['too-long', 3]]);
  });

  it('fails only with a TypeError on any text of the helper', () => {
    const value = fc.anything({ maxDepth: 3 });
    const message = fc.record({ hello: value, seen: value, counts: value, probed: value }, { requiredKeys: [] });
    fc.assert(
      fc.property(fc.oneof(message, value), (written) => {
        try {
          readReport(JSON.stringify(written));
        } catch (error) {
          expect(error).to.be.instanceOf(TypeError);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('has the limits of the helper', async () => {
    const source = await readFile(join(ROOT, 'guest/packets/protocol.go'), 'utf8');
    for (const [name, value] of Object.entries({
      maxEntries: MAX_ENTRIES,
      maxBatch: MAX_BATCH,
      maxOptionSets: MAX_OPTION_SETS,
      maxQuestions: MAX_PROBES,
      maxExpected: MAX_EXPECTED,
      maxSearchBytes: GUEST_LIMITS.searchBytes,
      maxEntryOptions: MAX_DHCP_OPTION_BYTES,
      // each has a header of 4 bytes
      maxSetOptions6: GUEST_LIMITS.dhcpOptions * (4 + 255),
    }))
      expect(source).to.match(new RegExp(String.raw`${name}\s*= ${value}\b`));
  });

  it('lets a pool have no option that the helper rejects, which would end all answers of the pool', async () => {
    const source = await readFile(join(ROOT, 'guest/packets/validation.go'), 'utf8');
    const listed = (type: string) =>
      new RegExp(String.raw`\[\]${type}\{([\d, ]+)\}`).exec(source)?.[1]?.split(', ').map(Number);
    const refused = (field: 'options' | 'optionsV6', first: number, last: number) =>
      Array.from({ length: last + 1 - first }, (_, index) => first + index).filter((code) => {
        const guest = { attachment: 'blue', dhcp: { [field]: [{ code, type: 'uint8', value: '1' }] } };
        return !compilePool(adminPool('blue', { subnets: [{ cidr: '10.1.0.0/24' }], guest })).ok;
      });
    const exchange = [50, 51, 52, 53, 54, 55, 56, 57, 58, 59];
    expect(refused('options', 2, 254).filter((code) => !exchange.includes(code))).to.deep.equal(listed('uint8'));
    expect(refused('options', 0, 255)).to.include.members([0, 1, 255, ...exchange]);
    expect(refused('optionsV6', 21, 100)).to.deep.equal(listed('uint16'));
    expect(refused('optionsV6', 0, 20)).to.deep.equal([...Array(17).keys(), 18, 19, 20]);
  });
});

const POOL = compiledPool({
  subnets: [{ cidr: '10.1.0.0/24' }, { cidr: 'fd00:1::/64' }],
  guest: { attachment: 'blue', dhcp: { renewSeconds: 20, rebindSeconds: 40, leaseSeconds: 600 } },
});

function responder(name: string, ...addresses: string[]) {
  return { name, addresses: addresses.map(parseAddress) };
}

const SELF = responder('set-0', '10.1.0.2', 'fd00:1::2');
const PEER = responder('set-1', '10.1.0.3', 'fd00:1::3');

describe('the configuration of the packet helper', () => {
  it('has the address of the responder, those of the others, and the times and subnets of the pool', () => {
    const { server, ...config } = helperConfig(POOL, SELF, [PEER], 'guest0') ?? {};
    expect(server?.ipv4).to.equal('10.1.0.2');
    expect(config).to.deep.equal({
      v: 2,
      interface: 'guest0',
      subnets: [{ cidr: '10.1.0.0/24' }, { cidr: 'fd00:1::/64' }],
      peers: ['10.1.0.3'],
      times: { renew: 20, rebind: 40, lease: 600, advertise: 20 },
    });
  });

  it('has the boot files of the pool', () => {
    const boot = [{ file: 'a.efi', servers: ['10.1.0.8'] }];
    const pool = compiledPool({ guest: { attachment: 'blue', dhcp: { boot } } });
    expect(helperConfig(pool, SELF, [], 'guest0')?.boot).to.deep.equal([{ file: 'a.efi', server: '10.1.0.8' }]);
  });

  it('has no address if none is leased to the responder, which then answers no DHCPv4', () => {
    expect(helperConfig(POOL, responder('set-0'), [], 'guest0')?.server.ipv4).to.equal(null);
  });

  it('has a DUID of a UUID that is the same for each pod of the name, and another one for each responder and pool', () => {
    const duids = [
      helperConfig(POOL, SELF, [PEER], 'guest0'),
      helperConfig(POOL, responder('set-0'), [], 'net1'),
      helperConfig(POOL, PEER, [SELF], 'guest0'),
      helperConfig({ ...POOL, uid: 'another' }, SELF, [PEER], 'guest0'),
    ].map((config) => config?.server.duid ?? '');
    expect(duids[0]).to.match(/^0004[0-9a-f]{32}$/);
    expect(duids[1]).to.equal(duids[0]);
    expect(new Set(duids).size).to.equal(3);
  });

  it('does not exist without DHCP', () => {
    expect(helperConfig(compiledPool(), SELF, [], 'guest0')).to.equal(undefined);
  });
});
