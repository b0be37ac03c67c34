import { expect } from 'chai';
import { parseAddress } from '../../addressing/address/address.js';
import { compiledPool } from '../../test/objects/lease-objects.js';
import { ManualClock } from '../../test/manual-clock.js';
import { claim, vmReference } from '../../test/objects/workload-objects.js';
import { Reports } from './reports.js';
import { receivedTableOf } from '../testing/received-table-of.js';
import { runAtOnce } from '../../kube/run-in-slices.js';
import type { ReceivedTable } from './received-table.js';
import { buildTable } from '../responder-tables/table.js';

const STRANGER = '02:00:00:00:00:99';
const MAC = '02:00:00:00:00:0a';
const COMPILED = compiledPool({ subnets: [{ cidr: '10.1.0.0/24' }, { cidr: 'fd00:1::/64' }] });
const POOL = { name: 'blue', uid: 'blue-uid', network: 'blue', hasIpv6Gateway: true };
const GUEST = {
  claim: claim(),
  mac: MAC,
  addresses: [parseAddress('10.1.0.5')],
  nadOptions: undefined,
  hasDefaultRoute: false,
};
/** Of the same VM. */
const SECOND = '02:00:00:00:00:0b';
const OTHER = { ...GUEST, mac: STRANGER, addresses: [parseAddress('10.1.0.7')] };
const TABLE = runAtOnce(
  buildTable(COMPILED, [
    GUEST,
    { ...GUEST, mac: SECOND, addresses: [parseAddress('10.1.0.6')] },
    { ...OTHER, claim: claim({ owner: vmReference('other-uid', 'vm2') }) },
  ]),
);

describe('the reports of a responder', () => {
  let clock: ManualClock;
  let recorded: { subject: string; reason: string; message: string }[];
  let reports: Reports;
  let asked: unknown[];
  let received: ReceivedTable;
  before(async () => {
    received = await receivedTableOf(TABLE);
  });
  /** The hosts that have an address. */
  let macs: string[] | undefined;
  beforeEach(() => {
    clock = new ManualClock(1_000_000);
    recorded = [];
    asked = [];
    macs = [];
    const event = (subject: { kind: string; metadata: { name: string } }, _: string, reason: string, message: string) =>
      recorded.push({ subject: `${subject.kind} ${subject.metadata.name}`, reason, message });
    const probe = (...question: unknown[]) => {
      asked.push(question);
      return Promise.resolve(macs);
    };
    reports = new Reports({ clock, events: { event }, session: { probe } });
  });

  const table = [
    { kind: 'server', mac: STRANGER, address: '10.1.0.99', expect: ['AddressPool blue ForeignDHCPServer'] },
    { kind: 'conflict', mac: STRANGER, address: '10.1.0.5', expect: ['VirtualMachine vm1 AddressConflict'] },
    { kind: 'conflict', mac: STRANGER, address: '10.1.0.2', expect: ['AddressPool blue AddressConflict'] },
    { kind: 'declined', mac: MAC, address: '10.1.0.5', expect: ['VirtualMachine vm1 AddressDeclined'] },
    { kind: 'declined', mac: MAC, address: '10.1.0.8', expect: [] },
    { kind: 'overloaded', mac: MAC, address: '10.1.0.5', expect: ['VirtualMachine vm1 GuestRequestsLimited'] },
    { kind: 'router', mac: STRANGER, address: 'fe80::99', expect: [] },
  ] as const;
  for (const { expect: wanted, ...seen } of table) {
    it(`are ${wanted.join() || 'none'} for ${seen.kind} with ${seen.address}`, async () => {
      reports.observed(seen);
      await reports.report(received);
      await Promise.resolve();
      expect(recorded.map(({ subject, reason }) => `${subject} ${reason}`)).to.deep.equal(wanted);
      for (const { message } of recorded) expect(message).to.include(seen.mac);
    });
  }

  const declines = [
    { name: 'names the host that has the declined address', macs: [STRANGER], text: STRANGER },
    { name: 'says that no other host has the declined address', macs: [MAC], text: 'no other host answers for it' },
    { name: 'says that nobody could be asked for the declined address', macs: undefined, text: 'could find out' },
  ];
  for (const { name, text, ...found } of declines) {
    it(`are an event that ${name}`, async () => {
      macs = found.macs;
      reports.observed({ kind: 'declined', mac: MAC, address: '10.1.0.5' });
      await reports.report(received);
      await Promise.resolve();
      expect(asked).to.deep.equal([['10.1.0.5', [MAC, SECOND]]]);
      expect(recorded.map(({ message }) => message.includes(text))).to.deep.equal([true]);
    });
  }

  it('are few at one time, because every host of the network can cause them', async () => {
    for (let index = 0; index < 200; index++)
      reports.observed({ kind: 'conflict', mac: STRANGER, address: `10.1.0.${index}` });
    await reports.report(received);
    await reports.report(received);
    expect(recorded.length).to.equal(64);
  });

  it('tell when no router has advertised itself for half an hour, because guests lack the IPv6 default route', () => {
    clock.advanceTo(clock.now() + 29 * 60_000);
    reports.checkRouter(POOL);
    reports.observed({ kind: 'router', mac: STRANGER, address: 'fe80::99' });
    clock.advanceTo(clock.now() + 29 * 60_000);
    reports.checkRouter(POOL);
    expect(recorded).to.deep.equal([]);
    clock.advanceTo(clock.now() + 60_000);
    reports.checkRouter(POOL);
    expect(recorded.map(({ reason }) => reason)).to.deep.equal(['RouterAdvertisementMissing']);
  });

  it('do not miss a router of a pool without an IPv6 gateway', () => {
    clock.advanceTo(clock.now() + 60 * 60_000);
    reports.checkRouter({ ...POOL, hasIpv6Gateway: false });
    expect(recorded).to.deep.equal([]);
  });
});
