import { RESPONDER_INDEX } from '../../api/names.js';
import { type PublishedTable, encodeTable, tableData } from '../responder-tables/published-table.js';
import type { ConfigMap } from '../../kube/resources.js';
import type { GuestTable, TableGuest } from '../responder-tables/guest-table.js';
import { entryAddresses, entryOf, guestOf } from '../responder-tables/table-text.js';
import type { GuestOptionSet, TableEntry } from '../responder-tables/protocol.js';
import { ReceivedTable, storedTableOf } from '../responder-process/received-table.js';

const POOL = { name: 'blue', uid: 'blue-uid', network: 'blue', hasIpv6Gateway: true };

/** The table as a responder gets it. */
export async function receivedTableOf(
  table: GuestTable,
  more: Partial<Omit<PublishedTable, 'table'>> = {},
): Promise<ReceivedTable> {
  const encoded = await encodeTable({ pool: POOL, configs: {}, probes: [], table, ...more });
  const metadata = { name: 'holdfast-responder-01234567' };
  return ReceivedTable.read(
    storedTableOf({ metadata, ...tableData(encoded, { after: undefined, ageMs: 0 }, RESPONDER_INDEX) }),
  );
}

/** Reads an object as a responder does, and returns the whole table. */
export async function publishedTableOf(object: ConfigMap): Promise<PublishedTable> {
  const received = await ReceivedTable.read(storedTableOf(object));
  const { pool, configs, probes, leftOut } = received.header;
  const options = new Map<string, GuestOptionSet>();
  for await (const line of received.optionLines()) {
    const set = JSON.parse(line) as GuestOptionSet;
    options.set(set.id, set);
  }
  const entries = new Map<string, TableEntry>();
  const guests = new Map<string, TableGuest>();
  for await (const line of received.entryLines()) {
    const entry = entryOf(line);
    entries.set(entry.mac, entry);
    for (const address of entryAddresses(entry)) guests.set(address, guestOf(line));
  }
  return { pool, configs, probes, table: { entries, options, guests, leftOut } };
}

/** A table whose entries have these options, and whose guests are of one VM each. */
export function guestTableOf(entries: readonly TableEntry[]): GuestTable {
  const ids = [...new Set(entries.map(({ options }) => options))];
  const options = ids.map((id): [string, GuestOptionSet] => [id, { id, dns: [], search: [], ntp: [], routes: [] }]);
  const guests = entries.flatMap((entry) => {
    const subject = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', metadata: { name: entry.mac } };
    return entryAddresses(entry).map((address) => [address, { claim: `vms/${entry.mac}`, subject }] as const);
  });
  const byMac = entries.map((entry) => [entry.mac, entry] as const);
  return { entries: new Map(byMac), options: new Map(options), guests: new Map(guests), leftOut: 0 };
}
