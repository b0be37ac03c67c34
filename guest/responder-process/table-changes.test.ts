import { expect } from 'chai';
import fc from 'fast-check';
import { type HelperCommand, MAX_BATCH, type TableEntry } from '../responder-tables/protocol.js';
import { guestTableOf, receivedTableOf } from '../testing/received-table-of.js';
import { type CommandLines, changesBetween, snapshotOf } from './table-changes.js';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAddress } from '../../addressing/address/address.js';
import { compiledPool } from '../../test/objects/lease-objects.js';
import { claimOf } from '../../test/objects/pool-objects.js';
import { MAX_DHCP_OPTION_BYTES, boundedDhcpOptions, vmDhcpOf } from '../dhcp-options.js';
import { runAtOnce } from '../../kube/run-in-slices.js';
import { type RunningGuest, buildTable } from '../responder-tables/table.js';

async function commandsOf(lines: CommandLines): Promise<HelperCommand[]> {
  const commands: HelperCommand[] = [];
  for await (const line of lines) commands.push(JSON.parse(line) as HelperCommand);
  return commands;
}

const snapshot = async (after: readonly TableEntry[]) =>
  commandsOf(snapshotOf(await receivedTableOf(guestTableOf(after))));
const changes = async (before: readonly TableEntry[], after: readonly TableEntry[]) =>
  commandsOf(changesBetween(await receivedTableOf(guestTableOf(before)), await receivedTableOf(guestTableOf(after))));

function entry(mac: number, address: number, options = 'o1'): TableEntry {
  const hex = mac.toString(16).padStart(4, '0');
  return {
    mac: `02:00:00:00:${hex.slice(0, 2)}:${hex.slice(2)}`,
    ipv4: { address: `10.0.${address >> 8}.${address & 255}`, prefix: 16 },
    options,
  };
}

/** What holdfast-packets does with the messages. */
class Helper {
  readonly entries = new Map<string, TableEntry>();
  /** The ids of its sets of options. */
  readonly known = new Set<string>();
  #put: Set<string> | undefined;
  /** Two entries had one address at some time. */
  hadDuplicates = false;

  take(commands: readonly HelperCommand[]): void {
    for (const command of commands) {
      if ('options' in command) this.known.add(command.options.id);
      if ('forget' in command) for (const id of command.forget) this.known.delete(id);
      if ('remove' in command) this.#remove(command.remove);
      if ('snapshot' in command) this.#snapshot(command.snapshot);
      if ('put' in command) this.#putAll(command.put);
    }
  }

  #remove(macs: Iterable<string>): void {
    for (const mac of macs) this.entries.delete(mac);
  }

  #snapshot(which: 'begin' | 'end'): void {
    if (which === 'end') this.#remove([...this.entries.keys()].filter((mac) => this.#put?.has(mac) === false));
    this.#put = which === 'begin' ? new Set() : undefined;
  }

  #putAll(put: readonly TableEntry[]): void {
    expect(put.length).to.be.within(1, MAX_BATCH);
    for (const each of put) this.#add(each);
  }

  #add(added: TableEntry): void {
    expect(this.known.has(added.options), `options ${added.options} are defined before they are used`).to.equal(true);
    this.entries.set(added.mac, added);
    this.#put?.add(added.mac);
    const addresses = [...this.entries.values()].map(({ ipv4 }) => ipv4?.address);
    if (new Set(addresses).size < addresses.length) this.hadDuplicates = true;
  }
}

const TABLES = fc
  .uniqueArray(fc.record({ mac: fc.nat(12), address: fc.nat(12), options: fc.constantFrom('o1', 'o2', 'o3') }), {
    selector: ({ mac }) => mac,
    maxLength: 8,
  })
  .map((found) => found.filter(({ address }, index) => found.findIndex((each) => each.address === address) === index))
  .map((found) => found.map(({ mac, address, options }) => entry(mac, address, options)));

describe('the messages that change the table of the helper', () => {
  it('make it that of the responder, and no address ever has two guests', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(TABLES, { minLength: 1, maxLength: 5 }), async (tables) => {
        const helper = new Helper();
        let before: TableEntry[] | undefined;
        for (const after of tables) {
          helper.take(await (before === undefined ? snapshot(after) : changes(before, after)));
          expect(helper.entries).to.deep.equal(new Map(after.map((each) => [each.mac, each])));
          expect(helper.known).to.deep.equal(new Set(after.map(({ options }) => options)));
          before = after;
        }
        expect(helper.hadDuplicates).to.equal(false);
      }),
    );
  });

  it('are none for an equal table', async () => {
    expect(await changes([entry(1, 1)], [entry(1, 1)])).to.deep.equal([]);
  });

  it('are split into batches', async () => {
    const entries = Array.from({ length: MAX_BATCH * 2 + 1 }, (_, index) => entry(index, index));
    const removals = await changes(entries, []);
    const sizes = removals.flatMap((command) => ('remove' in command ? command.remove.length : []));
    expect(sizes).to.deep.equal([MAX_BATCH, MAX_BATCH, 1]);
  });

  it('are short, so that the helper needs little memory for them', async () => {
    const entries = Array.from({ length: MAX_BATCH * 8 }, (_, index) => entry(index, index));
    const lengths = (await snapshot(entries)).map((command) => JSON.stringify(command).length);
    expect(Math.max(...lengths)).to.be.within(16 * 1024, 33 * 1024);
  });

  it('change an entry in place if its guest keeps its addresses', async () => {
    const commands = await changes([entry(1, 1)], [entry(1, 1, 'o2')]);
    expect(commands.map((change) => Object.keys(change)[0])).to.deep.equal(['options', 'put', 'forget']);
  });
});

const PROTOCOL = join(import.meta.dirname, '..', 'packets', 'protocol.go');
const POOL = compiledPool({
  subnets: [{ cidr: '100.100.0.0/16', gateway: '100.100.255.254' }, { cidr: 'fd00:1111:2222:3333::/64' }],
  guest: { dns: { search: [`${'d'.repeat(63)}.${'e'.repeat(61)}`] } },
});

/** All options that a VM can have, as long as they may be. Text in UTF-8 has up to three bytes a character. */
const OPTIONS = boundedDhcpOptions({
  bootFileName: 'b',
  tftpServerName: 't',
  ntpServers: ['10.1.0.1'],
  privateOptions: Array.from({ length: 31 }, (_, index) => 224 + index)
    .filter((option) => option !== 249)
    .map((option) => ({ option, value: { 224: '€'.repeat(84), 225: `${'€'.repeat(6)}ab` }[option] ?? '€€' })),
});

/** A guest whose names are as long as they may be, too. */
function longestGuest(index: number): RunningGuest {
  const byte = (index & 255).toString(16).padStart(2, '0');
  const interfaces = [{ name: 'blue', dhcpOptions: OPTIONS }];
  const spec = { hostname: 'h'.repeat(63), subdomain: 's'.repeat(63), domain: { devices: { interfaces } } };
  return {
    claim: claimOf(`a/${index}`),
    mac: `02:00:00:00:0${index >> 8}:${byte}`,
    addresses: [
      `100.100.${100 + (index >> 8)}.${index & 255}`,
      `fd00:1111:2222:3333:4444:5555:6666:7${index >> 8}${byte}`,
    ].map(parseAddress),
    nadOptions: undefined,
    hasDefaultRoute: true,
    dhcp: vmDhcpOf({ metadata: { name: 'web' }, spec }, 'blue'),
  };
}

describe('a line with entries', () => {
  it('fits into the buffer of the helper if guests have the longest names and options', async () => {
    const [, shift] = /maxLine\s*= (\d+) << 10/.exec(await readFile(PROTOCOL, 'utf8')) ?? [];
    const guests = Array.from({ length: 64 }, (_, index) => longestGuest(index));
    const lines: string[] = [];
    for await (const line of snapshotOf(await receivedTableOf(runAtOnce(buildTable(POOL, guests))))) lines.push(line);
    const puts = lines.map((line) => (JSON.parse(line) as { put?: TableEntry[] }).put ?? []);
    const entries = puts.flat();
    const options = entries[0]?.dhcp4 ?? [];
    expect([entries.length, entries[0]?.fqdn?.length, options.length]).to.deep.equal([64, 253, 33]);
    expect(options.reduce((sum, { value }) => sum + 2 + value.length / 2, 0)).to.equal(MAX_DHCP_OPTION_BYTES);
    for (const line of lines) expect(Buffer.byteLength(`${line}\n`)).to.be.at.most(Number(shift) * 1024);
  });
});
