import { expect } from 'chai';
import type { ParsedNad } from '../../cluster/transforms.js';
import { runAtOnce } from '../../kube/run-in-slices.js';
import { holdfastConfig, nad } from '../../test/objects/pool-objects.js';
import type { POOL_FIELDS } from '../../api/networks/ipam-keys.js';
import { type DerivationInput, type DerivationPlan, planDerivation } from './derivation.js';
import { compilePool } from '../../addressing/pool/pool.js';
import { derivedPool } from '../../addressing/pool/derived-pool.js';
import { readLease } from '../../addressing/lease/lease.js';
import { leaseOf } from '../../test/objects/lease-objects.js';

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
/** Each field that a NAD can set besides its addresses. */
const SETTINGS: Record<Exclude<(typeof POOL_FIELDS)[number], 'addressSpace'>, unknown> = {
  cooldownSeconds: 600,
  stickyMAC: { ttl: '1h' },
  blockSize: { ipv4: 28 },
  nodeSelector: { zone: 'a' },
  publishCapacity: true,
  guard: { mode: 'Enforce' },
};
const PENDING = ['tell green AddressSpaceMovePending', 'MovePending'];

function planned(nads: ParsedNad[], given: Partial<DerivationInput> = {}): DerivationPlan {
  const existing = given.pool && compilePool(given.pool);
  const plan = planDerivation({
    namespace: 'vms',
    network: 'blue',
    nads,
    leases: () => [],
    blockingLeases: () => 0,
    hasAdminPool: false,
    rights: { servesAll: true, publishesCapacity: true, isOwnershipEnforced: false },
    poolsIn: () => [],
    ...(existing?.ok === true && { compiled: existing.pool }),
    ...given,
  });
  return runAtOnce(plan);
}

/** @param expected the action and its CIDR, the NAD and reason of each event, and the reason of condition NetworksAgree */
function check(name: string, nads: ParsedNad[], expected: string[], given: Partial<DerivationInput> = {}): void {
  it(name, () => {
    const { action, events, agreement } = planned(nads, given);
    const done = (action === undefined ? [] : [action]).map((action) => {
      if (action.kind === 'delete') return action.kind;
      const spec = action.kind === 'create' ? action.pool.spec : action.spec;
      return `${action.kind} ${spec.subnets[0]?.cidr ?? ''}`;
    });
    const recorded = events.map(({ nad, reason }) => `tell ${nad.metadata.name} ${reason}`);
    expect([...done, ...recorded, agreement.reason]).to.deep.equal(expected);
  });
}

describe('a derived pool that is planned', () => {
  it('is compared as the directory compiled it, because a large pool takes long to compile', () => {
    const compiled = compilePool(derivedPool('vms', { network: 'blue', subnets: [{ cidr: '10.8.0.0/24' }] }));
    if (!compiled.ok) expect.fail(compiled.problems[0]?.message);
    expect(planned([OTHER], { pool: POOL, compiled: compiled.pool }).action).to.equal(undefined);
  });

  it('keeps what an administrator has set about its metrics when its NAD changes', () => {
    const pool = { ...POOL, spec: { ...POOL.spec, publishMetrics: false } };
    expect(planned([OLD], { pool }).action).to.equal(undefined);
    const { action } = planned([OTHER], { pool });
    expect(action?.kind === 'update' && action.spec).to.include({ publishMetrics: false });
  });

  for (const [field, value] of Object.entries(SETTINGS)) {
    it(`follows its NAD in ${field}, and a younger NAD that differs in it disagrees`, () => {
      const set = nad('vms/set', holdfastConfig({ ...subnets('10.9.0.0/24'), [field]: value }), 1);
      const { action } = planned([set], { pool: POOL });
      expect(action?.kind === 'update' && action.spec).to.deep.include({ [field]: value });
      const pool = { ...POOL, spec: { ...POOL.spec, [field]: value } };
      expect(planned([OLD], { pool }).action?.kind).to.equal('update');
      const { agreement, events } = planned(
        [OLD, { ...set, metadata: { ...set.metadata, creationTimestamp: SAME.metadata.creationTimestamp! } }],
        { pool: POOL },
      );
      expect([agreement.reason, events.length]).to.deep.equal(['NetworksDisagree', 1]);
    });
  }

  it('follows the oldest of thousands of NADs, of which 512 are read and the next gets an event', () => {
    const nads = Array.from({ length: 4_000 }, (_, n) =>
      nad(`vms/n${n}`, holdfastConfig(subnets(`10.${n % 9}.0.0/24`)), n),
    );
    const { action, events, agreement } = planned(nads);
    expect(action?.pool.spec.subnets).to.deep.equal([{ cidr: '10.0.0.0/24' }]);
    expect(events).to.have.length(456);
    const [last] = events.filter(({ message }) => message.startsWith('Namespace vms has more than 512 NADs'));
    expect(last?.nad.metadata.name).to.equal('n512');
    expect(agreement.reason).to.equal('NetworksDisagree');
  });

  it('is missing for thousands of NADs without subnets, and 512 of them get an event', () => {
    const nads = Array.from({ length: 4_000 }, (_, n) => nad(`vms/n${n}`, holdfastConfig(), n));
    expect(planned(nads).events).to.have.length(512);
    const last = nad('vms/last', holdfastConfig(subnets('10.9.0.0/24')), 4_000);
    expect(planned([...nads, last]).action?.kind).to.equal('create');
  });

  check('is created from the oldest NAD', [OLD, SAME], ['create 10.9.0.0/24', 'NetworksAgree']);
  check('is unchanged if it follows the oldest NAD', [OLD, SAME], ['NetworksAgree'], { pool: POOL });
  check(
    'is created from the oldest NAD, with an event on those that disagree',
    [OLD, SAME, OTHER],
    ['create 10.9.0.0/24', 'tell other NetworkAttachmentsDisagree', 'NetworksDisagree'],
  );
  check('follows the next NAD once the oldest is gone', [OTHER], ['update 10.8.0.0/24', 'NetworksAgree'], {
    pool: POOL,
  });
  check('agrees with NADs without subnets', [OLD, BARE], ['NetworksAgree'], { pool: POOL });
  check(
    'ignores an invalid NAD',
    [BROKEN, OTHER],
    ['create 10.8.0.0/24', 'tell broken NetworkAttachmentInvalid', 'NetworkInvalid'],
  );
  check('is unchanged if no NAD is valid', [BROKEN], ['tell broken NetworkAttachmentInvalid', 'NetworkInvalid'], {
    pool: POOL,
  });
  check('is deleted if no NAD requests it', [FOREIGN], ['delete', 'NetworkGone'], { pool: POOL });
  check('is kept for a NAD that still delegates to whereabouts', [MOVING], ['NetworkGone'], { pool: POOL });
  check('is not created while its NAD delegates to whereabouts', [MOVING], ['NetworkGone']);
  check('follows the first NAD that delegates to Holdfast', [MOVING, OTHER], ['update 10.8.0.0/24', 'NetworksAgree'], {
    pool: POOL,
  });
  check('is kept while its addresses are leased', [], ['NetworkGone'], { pool: POOL, blockingLeases: () => 1 });
  check('is not deleted twice', [], ['NetworkGone'], { pool: DELETING });
  check('is not changed while it is being deleted', [OTHER], ['NetworksAgree'], { pool: DELETING });
  check('is not created for NADs of other IPAMs', [FOREIGN], ['NetworkGone']);
  check('is reported as missing if the NAD has no subnets', [BARE], ['tell bare AddressPoolMissing', 'NetworkGone']);
  check('stays in its address space while one of its addresses is held', [GREEN], PENDING, {
    pool: POOL,
    leases: HELD,
    blockingLeases: () => 1,
  });
  check('stays in its address space while one of its addresses cools down', [GREEN], PENDING, {
    pool: POOL,
    leases: COOLING,
  });
  check('is deleted for another address space once no lease is left', [GREEN], ['delete', 'NetworksAgree'], {
    pool: POOL,
  });
  check('is not replaced while an ADD that began before its deletion may be running', [GREEN], PENDING, {
    pool: DELETING,
    fenceMs: 1000,
  });
  check('is replaced at once if its NAD has returned to its address space', [OLD], ['NetworksAgree'], {
    pool: DELETING,
    fenceMs: 1000,
  });
  check('is not created in another address space while an earlier pool of its name has leases', [GREEN], PENDING, {
    leases: COOLING,
  });
  check(
    'is created in the address space of the leases of an earlier pool of its name',
    [OLD],
    ['create 10.9.0.0/24', 'NetworksAgree'],
    { leases: COOLING },
  );
  check("is not reported as missing beside an administrator's pool", [BARE], ['NetworkGone'], { hasAdminPool: true });

  it('has a condition of limited length, however many NADs disagree or are invalid', () => {
    const named = (index: number) => `vms/${'n'.repeat(240)}${index}`;
    const others = Array.from({ length: 300 }, (_, index) => index);
    const disagreeing = others.map((index) => nad(named(index), holdfastConfig(subnets('10.8.0.0/24')), index + 2));
    const broken = others.map((index) => nad(named(index), holdfastConfig({ subnet: 'x' }), index + 2));
    for (const rest of [disagreeing, broken]) {
      const { agreement } = planned([OLD, ...rest]);
      expect(agreement.message).to.match(/ and 295 more$/);
      expect(agreement.message.length).to.be.below(2_000);
    }
  });
});
