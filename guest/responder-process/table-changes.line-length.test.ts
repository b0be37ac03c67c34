import { expect } from 'chai';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAddress } from '../../addressing/address/address.js';
import { compiledPool } from '../../test/objects/lease-objects.js';
import { claimOf } from '../../test/objects/pool-objects.js';
import { MAX_DHCP_OPTION_BYTES, boundedDhcpOptions, vmDhcpOf } from '../dhcp-options.js';
import { receivedTableOf } from '../testing/received-table-of.js';
import { runAtOnce } from '../../kube/run-in-slices.js';
import type { TableEntry } from '../responder-tables/protocol.js';
import { type RunningGuest, buildTable } from '../responder-tables/table.js';
import { snapshotOf } from './table-changes.js';

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
