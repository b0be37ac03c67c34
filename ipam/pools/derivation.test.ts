import { expect } from 'chai';
import type { ParsedNad } from '../../cluster/transforms.js';
import { holdfastConfig, nad } from '../../test/pool-objects.js';
import { type DerivationInput, planDerivation } from './derivation.js';
import { derivedPool } from '../core/derived-pool.js';
import { readLease } from '../core/lease.js';
import { leaseOf } from '../../test/lease-objects.js';

const subnets = (cidr: string) => ({ subnets: [{ cidr }] });
const OLD = nad('vms/old', holdfastConfig(subnets('10.9.0.0/24')), 1);
const SAME = nad('vms/same', holdfastConfig({ range: '10.9.0.7/24' }), 2);
const OTHER = nad('vms/other', holdfastConfig(subnets('10.8.0.0/24')), 3);
const BARE = nad('vms/bare', holdfastConfig(), 4);
const BROKEN = nad('vms/broken', holdfastConfig({ subnet: 'x' }), 5);
const FOREIGN = nad('vms/foreign', { name: 'blue', ipam: { type: 'dhcp' } }, 0);
const MOVING = nad('vms/moving', { name: 'blue', ipam: { type: 'whereabouts', range: '10.9.0.0/24' } }, 0);
const POOL = derivedPool('vms', { network: 'blue', subnets: [{ cidr: '10.9.0.0/24' }] });
const DELETING = { ...POOL, metadata: { ...POOL.metadata, deletionTimestamp: 'x' } };
const GREEN = nad('vms/green', holdfastConfig({ ...subnets('10.9.0.0/24'), addressSpace: 'green' }), 1);
const HELD = () => [readLease(leaseOf('10.9.0.5', 7))];
const COOLING = () => [readLease(leaseOf('10.9.0.5', 7, { releasedAt: Date.UTC(2026, 0, 1) }))];
const PENDING = ['tell green AddressSpaceMovePending', 'MovePending'];

interface Row {
  name: string;
  nads: ParsedNad[];
  given?: Partial<DerivationInput>;
  /** Kind of the action and its CIDR; of notices NAD and reason; and the reason of the agreement. */
  expect: string[];
}

const rows: Row[] = [
  { name: 'made of the oldest', nads: [OLD, SAME], expect: ['create 10.9.0.0/24', 'NetworksAgree'] },
  {
    name: 'nothing to do where it is as the oldest says',
    nads: [OLD, SAME],
    given: { pool: POOL },
    expect: ['NetworksAgree'],
  },
  {
    name: 'made of the oldest, the others are told',
    nads: [OLD, SAME, OTHER],
    expect: ['create 10.9.0.0/24', 'tell other NetworkAttachmentsDisagree', 'NetworksDisagree'],
  },
  {
    name: 'the next NAD is in force once the oldest is gone',
    nads: [OTHER],
    given: { pool: POOL },
    expect: ['update 10.8.0.0/24', 'NetworksAgree'],
  },
  { name: 'NADs without subnets agree with any', nads: [OLD, BARE], given: { pool: POOL }, expect: ['NetworksAgree'] },
  {
    name: 'one that cannot be used does not count',
    nads: [BROKEN, OTHER],
    expect: ['create 10.8.0.0/24', 'tell broken NetworkAttachmentInvalid', 'NetworkInvalid'],
  },
  {
    name: 'nothing where none can be used',
    nads: [BROKEN],
    given: { pool: POOL },
    expect: ['tell broken NetworkAttachmentInvalid', 'NetworkInvalid'],
  },
  { name: 'deleted where none asks for it', nads: [FOREIGN], given: { pool: POOL }, expect: ['delete', 'NetworkGone'] },
  { name: 'kept for one that is to move over', nads: [MOVING], given: { pool: POOL }, expect: ['NetworkGone'] },
  { name: 'not made before one moves over', nads: [MOVING], expect: ['NetworkGone'] },
  {
    name: 'as the first NAD says that has moved over',
    nads: [MOVING, OTHER],
    given: { pool: POOL },
    expect: ['update 10.8.0.0/24', 'NetworksAgree'],
  },
  { name: 'kept while it is leased from', nads: [], given: { pool: POOL, blockingLeases: 1 }, expect: ['NetworkGone'] },
  { name: 'not deleted twice', nads: [], given: { pool: DELETING }, expect: ['NetworkGone'] },
  { name: 'not changed while it goes', nads: [OTHER], given: { pool: DELETING }, expect: ['NetworksAgree'] },
  { name: 'nothing for the NADs of others', nads: [FOREIGN], expect: ['NetworkGone'] },
  { name: 'missed where there is none', nads: [BARE], expect: ['tell bare AddressPoolMissing', 'NetworkGone'] },
  {
    name: 'stays in its address space while an address of it is held',
    nads: [GREEN],
    given: { pool: POOL, leases: HELD, blockingLeases: 1 },
    expect: PENDING,
  },
  {
    name: 'stays in its address space while an address of it cools down',
    nads: [GREEN],
    given: { pool: POOL, leases: COOLING },
    expect: PENDING,
  },
  {
    name: 'is deleted for another address space once no lease is left',
    nads: [GREEN],
    given: { pool: POOL },
    expect: ['delete', 'NetworksAgree'],
  },
  {
    name: 'is not replaced while an ADD that began before its deletion may be under way',
    nads: [GREEN],
    given: { pool: DELETING, fenceMs: 1000 },
    expect: PENDING,
  },
  {
    name: 'may be replaced at once if its NAD is back in its address space',
    nads: [OLD],
    given: { pool: DELETING, fenceMs: 1000 },
    expect: ['NetworksAgree'],
  },
  {
    name: 'is not made in another address space while an earlier pool of its name has leases',
    nads: [GREEN],
    given: { leases: COOLING },
    expect: PENDING,
  },
  {
    name: 'is made in the address space of the leases that an earlier pool of its name has',
    nads: [OLD],
    given: { leases: COOLING },
    expect: ['create 10.9.0.0/24', 'NetworksAgree'],
  },
  { name: "not missed beside an admin's", nads: [BARE], given: { hasAdminPool: true }, expect: ['NetworkGone'] },
];

describe('what is to be done about a derived pool', () => {
  for (const { name, nads, given = {}, expect: expected } of rows) {
    it(name, () => {
      const { actions, events, agreement } = planDerivation({
        namespace: 'vms',
        network: 'blue',
        nads,
        leases: () => [],
        blockingLeases: 0,
        hasAdminPool: false,
        rights: { servesAll: true, publishesCapacity: false },
        adminPoolsIn: () => [],
        ...given,
      });
      const done = actions.map((action) => {
        if (action.kind === 'delete') return action.kind;
        const spec = action.kind === 'create' ? action.pool.spec : action.spec;
        return `${action.kind} ${spec.subnets[0]?.cidr ?? ''}`;
      });
      const told = events.map((notice) => `tell ${notice.nad.metadata.name} ${notice.reason}`);
      expect([...done, ...told, agreement.reason]).to.deep.equal(expected);
    });
  }

  it('is said with a message that fits into a condition, however many NADs disagree or cannot be used', () => {
    const named = (index: number) => `vms/${'n'.repeat(240)}${index}`;
    const others = Array.from({ length: 300 }, (_, index) => index);
    const disagreeing = others.map((index) => nad(named(index), holdfastConfig(subnets('10.8.0.0/24')), index + 2));
    const broken = others.map((index) => nad(named(index), holdfastConfig({ subnet: 'x' }), index + 2));
    for (const rest of [disagreeing, broken]) {
      const { agreement } = planDerivation({
        namespace: 'vms',
        network: 'blue',
        nads: [OLD, ...rest],
        leases: () => [],
        blockingLeases: 0,
        hasAdminPool: false,
        rights: { servesAll: true, publishesCapacity: false },
        adminPoolsIn: () => [],
      });
      expect(agreement.message).to.match(/ and 295 more$/);
      expect(agreement.message.length).to.be.below(2_000);
    }
  });
});
