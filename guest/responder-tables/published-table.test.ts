import { expect } from 'chai';
import { randomBytes, randomUUID } from 'node:crypto';
import { parseAddress } from '../../addressing/address/address.js';
import { RESPONDER_INDEX } from '../../api/names.js';
import { compiledPool } from '../../test/objects/lease-objects.js';
import { day } from '../../test/objects/pool-objects.js';
import { claim, vmReference } from '../../test/objects/workload-objects.js';
import { runAtOnce } from '../../kube/run-in-slices.js';
import { publishedTableOf } from '../testing/received-table-of.js';
import { type PublishedTable, encodeTable, indexNameOf, statementOf, tableData } from './published-table.js';
import { MAX_ENTRIES, type RunningGuest, buildTable } from './table.js';

const POOL = compiledPool({
  subnets: [{ cidr: '10.0.0.0/8', gateway: '10.0.0.1' }, { cidr: 'fd00:1::/64' }],
  guest: { dns: { search: ['example.org'] } },
});

/** Its guests get the DNS of their NADs. */
const POOL_WITHOUT_DNS = compiledPool({ subnets: [{ cidr: '10.0.0.0/8', gateway: '10.0.0.1' }], guest: {} });

function guest(index: number, isLong = false): RunningGuest {
  const name = isLong ? `web-${index}` : `vm${index}`;
  const made = claim({ name: `${name}.data`, owner: vmReference(isLong ? randomUUID() : `uid-${index}`, name) });
  const mac = isLong ? randomBytes(5) : Buffer.from([0, 0, 0, index >> 8, index & 255]);
  const texts = [`10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`, `fd00:1::${(index + 1).toString(16)}`];
  return {
    claim: made,
    mac: `02:${mac.toString('hex').replaceAll(/(..)(?=.)/g, '$1:')}`,
    addresses: texts.map(parseAddress),
    nadOptions: undefined,
    hasDefaultRoute: index % 2 === 0,
    ...(index % 3 === 0 && {
      dhcp: { hostname: name, prefix: name, options: [{ code: 67, value: '61' }], ignored: [] },
    }),
  };
}

function inNamespace(namespace: string, born: number, given: RunningGuest): RunningGuest {
  const metadata = { ...given.claim.metadata, namespace, creationTimestamp: day(born) };
  return { ...given, claim: { ...given.claim, metadata } };
}

function published(guests: readonly RunningGuest[], pool = POOL): PublishedTable {
  return {
    pool: { name: 'blue', uid: 'blue-uid', network: 'blue', hasIpv6Gateway: false },
    configs: {},
    table: runAtOnce(buildTable(pool, guests)),
    probes: [
      {
        metadata: { name: 'blue.10-0-0-9', uid: 'u', resourceVersion: '7' },
        address: '10.0.0.9',
        expected: ['02:00:00:00:00:01'],
      },
    ],
  };
}

const objectOf = (data: object) => ({ metadata: { name: 'holdfast-responder-01234567' }, ...data });
const NOTHING = { after: undefined, ageMs: 0 };

describe('a published table', () => {
  it('is read as it was written', async () => {
    const given = published([0, 1, 2, 3].map((index) => guest(index)));
    const only4: RunningGuest = { ...guest(4), addresses: [parseAddress('10.0.0.4')] };
    const only6: RunningGuest = { ...guest(5), addresses: [parseAddress('fd00:1::5')] };
    for (const each of [given, published([only4, only6]), published([])])
      expect(
        await publishedTableOf(objectOf(tableData(await encodeTable(each), NOTHING, RESPONDER_INDEX))),
      ).to.deep.equal(each);
  });

  it('is known to be stored without being compressed, unless anything differs or is left out', async () => {
    const [given, other] = [published([guest(1), guest(2)]), published([guest(1), guest(3)])];
    const { version } = await encodeTable(given);
    const isStoredAs = async (each: PublishedTable, stored: string) =>
      (await encodeTable(each, {}, stored)) === undefined;
    expect(await isStoredAs(given, version)).to.equal(true);
    expect([await isStoredAs(other, version), await isStoredAs(given, '')]).to.deep.equal([false, false]);
    const many = published(Array.from({ length: 400 }, (_, index) => guest(index, true)));
    expect(await isStoredAs(many, (await encodeTable(many, { bytes: 10_000 })).version)).to.equal(false);
  });

  it('has the same version whenever it is computed, and another one if anything differs', async () => {
    const [first, again, other] = await Promise.all(
      [
        [1, 2],
        [1, 2],
        [1, 3],
      ].map((each) => encodeTable(published(each.map((index) => guest(index))))),
    );
    expect(again).to.deep.equal(first);
    expect(other?.version).not.to.equal(first?.version);
  });

  it('says about itself what it follows', async () => {
    const encoded = await encodeTable(published([]));
    const after = { index: 'f81d4fae', beat: 12 };
    for (const statement of [{ after, ageMs: 300 }, NOTHING]) {
      const written = tableData(encoded, statement, `${RESPONDER_INDEX}-7`);
      expect(statementOf(written)).to.deep.equal({ version: encoded.version, ...statement });
      expect(indexNameOf(written)).to.equal(`${RESPONDER_INDEX}-7`);
    }
  });

  it('of an earlier release is in the only index of that release', () => {
    expect(indexNameOf({ data: { version: '0123456789abcdef', ageMs: '0' } })).to.equal(RESPONDER_INDEX);
  });

  it('has all guests of the largest table with random UIDs and MAC addresses', async function () {
    this.timeout(20_000);
    const given = published(Array.from({ length: MAX_ENTRIES }, (_, index) => guest(index, true)));
    const read = await publishedTableOf(objectOf(tableData(await encodeTable(given), NOTHING, RESPONDER_INDEX)));
    expect([read.table.entries.size, read.table.leftOut]).to.deep.equal([MAX_ENTRIES, 0]);
  });

  it('leaves out the youngest claims if the object is full, and counts them', async () => {
    const given = published(Array.from({ length: 600 }, (_, index) => guest(index, true)));
    const { table } = await publishedTableOf(
      objectOf(tableData(await encodeTable(given, { bytes: 10_000 }), NOTHING, RESPONDER_INDEX)),
    );
    expect(table.entries.size).to.be.within(50, 599);
    expect(table.leftOut).to.equal(600 - table.entries.size);
    const oldest = [...given.table.entries.keys()].slice(0, table.entries.size);
    expect(new Set(table.entries.keys())).to.deep.equal(new Set(oldest));
  });

  it('leaves out guests if the text is longer than a responder can hold, although it would fit compressed', async () => {
    const given = published(Array.from({ length: 600 }, (_, index) => guest(index)));
    const encoded = await encodeTable(given, { textBytes: 50_000 });
    const { table } = await publishedTableOf(objectOf(tableData(encoded, NOTHING, RESPONDER_INDEX)));
    expect(table.entries.size).to.be.within(100, 599);
    expect(table.leftOut).to.equal(600 - table.entries.size);
  });

  it('has all guests of other namespaces if one namespace fills the object with older claims and long options', async () => {
    const hostile = Array.from({ length: 300 }, (_, index): RunningGuest => {
      const options = [224, 225].map((code) => ({ code, value: randomBytes(250).toString('hex') }));
      return { ...inNamespace('hostile', 1, guest(index)), dhcp: { options, ignored: [] } };
    });
    const others = Array.from({ length: 150 }, (_, index) => inNamespace('a', 2, guest(1_000 + index)));
    const encoded = await encodeTable(published([...hostile, ...others]), { bytes: 40_000 });
    const { table } = await publishedTableOf(objectOf(tableData(encoded, NOTHING, RESPONDER_INDEX)));
    const left = others.filter(({ mac }) => !table.entries.has(mac));
    expect(left).to.deep.equal([]);
    expect(table.entries.size).to.be.within(others.length + 10, others.length + 299);
  });

  it('has all guests of other namespaces if one namespace fills the object with options of its NADs', async () => {
    const hostile = Array.from({ length: 40 }, (_, index): RunningGuest => {
      const domain = () => Array.from({ length: 4 }, () => randomBytes(30).toString('hex')).join('.');
      const search = Array.from({ length: 8 }, domain);
      return { ...inNamespace('hostile', 1, guest(index)), nadOptions: { dns: { nameservers: [], search } } };
    });
    const others = Array.from({ length: 100 }, (_, index) => inNamespace('a', 2, guest(1_000 + index)));
    const given = published([...hostile, ...others], POOL_WITHOUT_DNS);
    expect(given.table.options.size).to.equal(41);
    const encoded = await encodeTable(given, { bytes: 40_000 });
    const { table } = await publishedTableOf(objectOf(tableData(encoded, NOTHING, RESPONDER_INDEX)));
    expect(others.filter(({ mac }) => !table.entries.has(mac))).to.deep.equal([]);
    expect(table.entries.size).to.be.within(others.length + 10, others.length + 39);
    const used = new Set([...table.entries.values()].map(({ options }) => options));
    expect(new Set(table.options.keys())).to.deep.equal(used);
  });

  for (const [name, object] of [
    ['is missing', {}],
    ['is no gzip', { binaryData: { table: 'AAAA' } }],
  ] as const) {
    it(`is an error if it ${name}`, async () => {
      const error: unknown = await publishedTableOf(objectOf(object)).catch((reason: unknown) => reason);
      expect(error).to.be.instanceOf(Error);
    });
  }
});
