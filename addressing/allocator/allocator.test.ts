import { expect } from 'chai';
import { AllocationReason } from '../../api/names.js';
import { type LeaseOptions, compiledPool, leaseOf, leaseOwner } from '../../test/objects/lease-objects.js';
import { LeaseBook } from '../../ipam/leases/lease-book.js';
import { formatAddress, parseAddress } from '../address/address.js';
import { type AllocationContext, type AllocationRequest, findCandidates } from './allocator.js';
import type { Pool } from '../pool/pool.js';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const MAC = '02:00:00:00:00:ab';
const TERMS: AllocationContext = { now: NOW, cooldownMs: 60_000, stickyMs: 0 };
const REMEDY = 'Delete VMs and pods that are no longer needed, or ask the administrator to add a range to the pool';
const FOREIGN = { ...leaseOwner('new'), namespace: 'b' };
const STICKY: AllocationContext = { ...TERMS, stickyMs: 3_600_000, isStickyForClaims: true };

interface Question {
  pool?: Pool;
  /** By the last part of the address. */
  leases?: Record<string, LeaseOptions>;
  reserved?: Record<string, { mac?: string }>;
  wish?: Partial<Omit<AllocationRequest, 'addresses'>> & { addresses?: string[] };
  terms?: AllocationContext;
  hold?: string[];
}

const POOL = compiledPool({ subnets: [{ cidr: '10.0.0.0/29' }] });
const DUAL = compiledPool({ subnets: [{ cidr: '10.0.0.0/29' }, { cidr: 'fd00::/125' }] });
/** .1 is the gateway, .2 and .3 are open, .4 is reserved, .5 and .6 excluded. */
const NARROW = compiledPool({
  subnets: [{ cidr: '10.0.0.0/29', gateway: '10.0.0.1', reserved: ['10.0.0.4'], exclude: ['10.0.0.5-10.0.0.6'] }],
});
const RANGED = compiledPool({ subnets: [{ cidr: '10.0.0.0/29', ranges: ['10.0.0.2-10.0.0.4'] }] });
const FULL = Object.fromEntries([1, 2, 3, 4, 5, 6].map((n) => [n, { name: `c${n}` }]));

function ask({ pool = POOL, leases = {}, reserved = {}, wish = {}, terms = TERMS, hold = [] }: Question) {
  const book = new LeaseBook([pool]);
  const ip = (last: string) => (last.includes(':') ? last : `10.0.0.${last}`);
  const all = { ...leases, ...reserved };
  for (const [last, given] of Object.entries(all)) {
    const lease = leaseOf(ip(last), 100, { uid: `u${last}`, ...given });
    const { owner: _nobody, ...spec } = lease.spec;
    book.recordWrite(last in leases ? lease : { ...lease, spec });
  }
  for (const last of hold) book.markPending('blue', parseAddress(ip(last)));
  const { addresses = [], families = [4], ...rest } = wish;
  const asked = { owner: leaseOwner('new'), families, addresses: addresses.map((text) => parseAddress(text)), ...rest };
  return findCandidates(pool, asked, book.view(pool), terms);
}

function chosen(question: Question): string[] {
  const answer = ask(question);
  if (!answer.ok) throw new Error(answer.refusal.message);
  return answer.candidates.map((choice) => {
    const { address } = choice.kind === 'take' ? choice.lease : choice;
    return `${choice.kind} ${formatAddress(address)}`;
  });
}

function refused(question: Question) {
  const answer = ask(question);
  if (answer.ok) throw new Error('it was granted');
  return answer.refusal;
}

const released = (secondsAgo: number, more: LeaseOptions = {}) => ({ releasedAt: NOW - secondsAgo * 1000, ...more });

describe('findCandidates', () => {
  describe('grants', () => {
    const granted: [string, Question, string[]][] = [
      ['the next free address', { leases: { 1: {} } }, ['create 10.0.0.2']],
      ['the requested address', { wish: { addresses: ['10.0.0.5'] } }, ['create 10.0.0.5']],
      ['a requested reserved address', { pool: NARROW, wish: { addresses: ['10.0.0.4'] } }, ['create 10.0.0.4']],
      ['an address of each family', { pool: DUAL, wish: { families: [4, 6] } }, ['create 10.0.0.1', 'create fd00::1']],
      [
        'the requested address of one family, and any address of the other',
        { pool: DUAL, wish: { families: [4, 6], addresses: ['fd00::3'] } },
        ['create fd00::3', 'create 10.0.0.1'],
      ],
      ['a request without families', { wish: { families: [], addresses: ['10.0.0.3'] } }, ['create 10.0.0.3']],
      [
        'the sticky address of the MAC address',
        { leases: { 3: released(120, { mac: MAC }) }, wish: { mac: MAC }, terms: STICKY },
        ['take 10.0.0.3'],
      ],
      [
        'the address that an administrator reserved for the MAC address',
        { reserved: { 3: { mac: MAC } }, wish: { mac: MAC.toUpperCase() } },
        ['take 10.0.0.3'],
      ],
      [
        'another address if addresses of claims are not sticky in the pool',
        { leases: { 3: released(120, { mac: MAC }) }, wish: { mac: MAC }, terms: { ...TERMS, stickyMs: 3_600_000 } },
        ['create 10.0.0.4'],
      ],
      [
        'another address if the sticky time is not longer than the cool-down',
        { leases: { 3: released(10, { mac: MAC }) }, wish: { mac: MAC }, terms: { ...STICKY, stickyMs: 60_000 } },
        ['create 10.0.0.4'],
      ],
      [
        'another address while the one that another namespace had with this MAC address cools down',
        { leases: { 3: released(10, { mac: MAC }) }, wish: { mac: MAC, owner: FOREIGN }, terms: STICKY },
        ['create 10.0.0.4'],
      ],
      [
        'another address if the sticky one is not leasable any more',
        { pool: NARROW, leases: { 6: released(120, { mac: MAC }) }, wish: { mac: MAC }, terms: STICKY },
        ['create 10.0.0.2'],
      ],
      [
        'a released address that its own workload requests at once',
        {
          leases: { 3: released(1, { name: 'old' }) },
          wish: { addresses: ['10.0.0.3'], owner: { ...leaseOwner('new'), workloadUID: 'vm-old' } },
        },
        ['take 10.0.0.3'],
      ],
      [
        'the address that cooled down first if nothing is free',
        { leases: { ...FULL, 2: released(70), 5: released(90), 6: released(10) } },
        ['take 10.0.0.5'],
      ],
      [
        'the next cooled-down address if a write for the first one is pending',
        { leases: { ...FULL, 2: released(70), 5: released(90) }, hold: ['5'] },
        ['take 10.0.0.2'],
      ],
      [
        'a cooled-down address before any sticky one',
        { leases: { ...FULL, 2: released(70), 5: released(900, { mac: MAC }) }, terms: STICKY },
        ['take 10.0.0.2'],
      ],
      [
        'the sticky address that was released first if nothing else is left',
        {
          leases: { ...FULL, 2: released(30), 4: released(70, { mac: MAC }), 5: released(90, { mac: MAC }) },
          terms: STICKY,
        },
        ['take 10.0.0.5'],
      ],
    ];
    for (const [what, question, choices] of granted) {
      it(`grants ${what}`, () => expect(chosen(question)).to.deep.equal(choices));
    }
  });

  describe('refuses', () => {
    const until = (seconds: number) => NOW + seconds * 1000;
    const exactly = (address: string): Pick<Question, 'wish'> => ({ wish: { addresses: [address] } });
    const conflicts: [string, Question, string, number?][] = [
      [
        'an address that another owner holds',
        { leases: { 5: { name: 'vm1.blue' } }, ...exactly('10.0.0.5') },
        '10.0.0.5 is allocated to IPAMClaim a/vm1.blue',
      ],
      [
        'a cooling address',
        { leases: { 5: released(20) }, ...exactly('10.0.0.5') },
        '10.0.0.5 cools down until 2026-01-01T00:00:40.000Z',
        until(40),
      ],
      [
        'an address that is sticky for another MAC address',
        { leases: { 5: released(120, { mac: MAC }) }, ...exactly('10.0.0.5'), terms: STICKY },
        `10.0.0.5 is kept for MAC address ${MAC} until 2026-01-01T00:58:00.000Z`,
        until(3480),
      ],
      [
        'any other address for a recreated VM whose own address cools down',
        { leases: { 5: released(20, { mac: MAC }) }, wish: { mac: MAC }, terms: STICKY },
        '10.0.0.5 cools down until 2026-01-01T00:00:40.000Z',
        until(40),
      ],
      [
        'any other address for a MAC address whose reserved one cools down',
        { leases: { 5: released(20, { mac: MAC, reserved: true }) }, wish: { mac: MAC } },
        '10.0.0.5 cools down until 2026-01-01T00:00:40.000Z',
        until(40),
      ],
      [
        'an address that an administrator reserved',
        { reserved: { 5: {} }, ...exactly('10.0.0.5') },
        '10.0.0.5 is reserved by AddressLease blue.10-0-0-5',
      ],
      [
        'an address with a pending write',
        { hold: ['5'], ...exactly('10.0.0.5') },
        '10.0.0.5 is being allocated to another owner',
        until(1),
      ],
    ];
    for (const [what, question, message, retryAt] of conflicts) {
      it(`refuses ${what}`, () => {
        const address = parseAddress('10.0.0.5');
        const expected = { reason: AllocationReason.Conflict, message, address };
        expect(refused(question)).to.deep.equal(retryAt === undefined ? expected : { ...expected, retryAt });
      });
    }

    const impossible: [string, string, string, Pool?][] = [
      ['an address of another subnet', '10.0.1.5', '10.0.1.5 is not in pool blue (10.0.0.0/29): request one of 10.0.0.1-10.0.0.6'],
      ['a family that the pool lacks', 'fd00::5', 'fd00::5 is not in pool blue (10.0.0.0/29): do not request one, the pool has no IPv6 addresses'],
      ['an excluded address', '10.0.0.5', '10.0.0.5 is excluded from pool blue: request one of 10.0.0.2-10.0.0.4', NARROW],
      ['an address outside the ranges', '10.0.0.5', '10.0.0.5 is outside the ranges of 10.0.0.0/29 in pool blue: request one of 10.0.0.2-10.0.0.4', RANGED],
      ['the gateway', '10.0.0.1', '10.0.0.1 is the gateway of pool blue: request one of 10.0.0.2-10.0.0.4', NARROW],
      ['the network address', '10.0.0.0', '10.0.0.0 is the network address of 10.0.0.0/29 in pool blue: request one of 10.0.0.1-10.0.0.6'],
      ['the broadcast address', '10.0.0.7', '10.0.0.7 is the broadcast address of 10.0.0.0/29 in pool blue: request one of 10.0.0.1-10.0.0.6'],
      ['the subnet-router anycast address', 'fd00::', 'fd00:: is the subnet-router anycast address of fd00::/125 in pool blue: request one of fd00::1-fd00::7', DUAL],
    ]; // oxfmt-ignore
    for (const [what, address, message, pool = POOL] of impossible) {
      it(`refuses ${what}`, () => {
        const expected = { reason: AllocationReason.OutOfRange, message, address: parseAddress(address) };
        expect(refused({ pool, ...exactly(address) })).to.deep.equal(expected);
      });
    }

    const full: [string, Question, string, number?][] = [
      ['any request if the pool is full', { leases: FULL }, `pool blue is full: 6 of 6 leased. ${REMEDY}`],
      [
        'a request in a full pool with the number of addresses of stopped VMs',
        { leases: FULL, terms: { ...TERMS, heldByStopped: () => 3 } },
        `pool blue is full: 6 of 6 leased, 3 of them by stopped VMs. ${REMEDY}`,
      ],
      [
        'addresses that have not cooled down',
        { leases: { ...FULL, 2: released(10), 3: released(20) } },
        `pool blue is full: 4 of 6 leased, 2 cooling down. ${REMEDY}`,
        until(40),
      ],
      [
        'sticky addresses that have not cooled down',
        { leases: { ...FULL, 2: released(10, { mac: MAC }), 3: released(5) }, terms: STICKY },
        `pool blue is full: 4 of 6 leased, 2 cooling down. ${REMEDY}`,
        until(50),
      ],
      [
        'reservations of other MAC addresses, no matter how long ago they were released',
        { leases: { ...FULL, 2: released(900, { mac: MAC, reserved: true }) }, terms: STICKY },
        `pool blue is full: 6 of 6 leased. ${REMEDY}`,
      ],
      [
        'all families if one of them is full',
        { pool: DUAL, leases: FULL, wish: { families: [6, 4] } },
        `pool blue is full for IPv4: 6 of 6 leased. ${REMEDY}`,
      ],
      [
        'addresses in reserved ranges without a request',
        { pool: NARROW, leases: { 2: {}, 3: {}, 4: released(120) } },
        `pool blue is full: 2 of 2 leased. ${REMEDY}`,
      ],
    ];
    for (const [what, question, message, retryAt] of full) {
      it(`refuses ${what}`, () => {
        const expected = { reason: AllocationReason.Exhausted, message, family: 4 };
        expect(refused(question)).to.deep.equal(retryAt === undefined ? expected : { ...expected, retryAt });
      });
    }
  });

  describe('with a restore hold of another claim', () => {
    const promising = (isWish: boolean): AllocationContext => ({
      ...TERMS,
      restoreHoldOn: (address) =>
        formatAddress(address) === '10.0.0.5' ? { namespace: 'vms', name: 'other', wasRefused: isWish } : undefined,
    });
    const wish = { addresses: ['10.0.0.5'] };
    const conflict = {
      reason: AllocationReason.Conflict,
      message: '10.0.0.5 is kept for an IPAMClaim of another namespace, which has it in its status and no lease yet',
      address: parseAddress('10.0.0.5'),
    };

    it('refuses a request for the held address, with or without a cooled-down lease', () => {
      expect(refused({ wish, terms: promising(true) })).to.deep.equal(conflict);
      expect(refused({ wish, terms: promising(false), leases: { 5: released(61) } })).to.deep.equal(conflict);
    });

    it('names the end of the cool-down instead of the hold', () => {
      const { message } = refused({ wish, terms: promising(false), leases: { 5: released(1) } });
      expect(message).to.match(/^10\.0\.0\.5 cools down until/);
    });

    it('grants the address to the workload that had it last if the holding claim was refused it', () => {
      const leases = { 5: released(1, { name: 'new' }) };
      expect(chosen({ wish, terms: promising(true), leases })).to.deep.equal(['take 10.0.0.5']);
      expect(refused({ wish, terms: promising(false), leases })).to.deep.equal(conflict);
    });

    it('does not use the held address as a sticky address', () => {
      const terms = { ...STICKY, ...promising(false), stickyMs: 3_600_000 };
      const leases = { 5: released(61, { mac: MAC }) };
      expect(chosen({ wish: { mac: MAC }, terms, leases })).to.deep.equal(['create 10.0.0.6']);
    });
  });
});
