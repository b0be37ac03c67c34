import { expect } from 'chai';
import { runAtOnce } from '../../kube/run-in-slices.js';
import { type PoolGiven, adminPool } from '../../test/objects/pool-objects.js';
import { type SpacePool, addressSpaceRefusal, usersWithoutConsent } from './address-space-rights.js';
import { type Pool, compilePool } from './pool.js';

const CIDR = '10.9.0.0/24';

function pool(name: string, given: PoolGiven): Pool {
  const compiled = compilePool(adminPool(name, { network: 'red', addressSpace: 'lan', cidr: CIDR, ...given }));
  if (!compiled.ok) expect.fail(compiled.problems[0]?.message);
  return compiled.pool;
}

const guard = (namespaces?: string[], more: PoolGiven = {}): SpacePool => ({
  pool: pool('guard', { ...(namespaces && { namespaces }), ...more }),
  createdAt: '1',
});
/** The pool of a NAD of network blue. */
const derived = (nadNamespace: string, more: PoolGiven = {}, createdAt = '1'): SpacePool => ({
  pool: pool(`blue.${nadNamespace}`, { network: 'blue', namespaces: [nadNamespace], ...more }),
  createdAt,
  nadNamespace,
});
const subnet = (more: object) => ({ subnets: [{ cidr: CIDR, ...more }] });
const OF_BLUE = { network: 'blue' };
const ELSEWHERE = { cidr: '10.8.0.0/24' };
const HALF = subnet({ ranges: ['10.9.0.128/25'] });

interface Case {
  others: SpacePool[];
  /** Of the pool that namespace `a` requests. */
  pool?: PoolGiven;
  isNamed?: boolean;
  isOwnershipEnforced?: boolean;
  refused?: boolean;
}

describe('addressSpaceRefusal', () => {
  const rows: Record<string, Case> = {
    'allows the pool of a NAD if nobody has a pool in the address space': { others: [] },
    'allows it if the administrator’s pool serves all namespaces': { others: [guard()] },
    'allows it if the administrator’s pool serves the namespace of the NAD': { others: [guard(['x', 'a'])] },
    'refuses it if the administrator’s pool serves only other namespaces': { others: [guard(['x'])], refused: true },
    'refuses it if the pool serves only other namespaces, even if no address is shared': {
      others: [guard(['x'], ELSEWHERE)],
      refused: true,
    },
    'refuses it if one pool serves the namespace but addresses of another pool are shared': {
      others: [guard(['a'], ELSEWHERE), guard(['x'])],
      refused: true,
    },
    'allows it if addresses are shared only with a pool that serves the namespace': {
      others: [guard(['a']), guard(['x'], ELSEWHERE)],
    },
    "refuses addresses of an administrator's pool that serves only others, also in the address space of the network's name":
      { others: [guard(['x'], OF_BLUE)], isNamed: false, refused: true },
    "refuses the gateway of an administrator's pool that serves only others": {
      others: [guard(['x'], { ...OF_BLUE, ...subnet({ gateway: '10.9.0.1', ranges: ['10.9.0.200'] }) })],
      pool: subnet({ ranges: ['10.9.0.1-10.9.0.9'] }),
      isNamed: false,
      refused: true,
    },
    "refuses addresses that an administrator's pool excludes": {
      others: [guard(['x'], { ...OF_BLUE, ...subnet({ exclude: ['10.9.0.5'] }) })],
      pool: subnet({ ranges: ['10.9.0.5'] }),
      isNamed: false,
      refused: true,
    },
    "allows other addresses in the address space of the network's name": {
      others: [guard(['x'], { ...OF_BLUE, ...ELSEWHERE })],
      isNamed: false,
    },
    'refuses a pool that would give the addresses to namespaces that the administrator’s pool does not serve': {
      others: [guard(['a'])],
      pool: { namespaces: ['a', 'b'] },
      refused: true,
    },
    'refuses it for a network with the name of an address space of other namespaces': {
      others: [guard(['x'])],
      isNamed: false,
      refused: true,
    },
    "refuses it if a NAD sets an address space that equals its network's name": {
      others: [guard(['x'], { ...OF_BLUE, ...ELSEWHERE })],
      refused: true,
    },
    'allows equal subnets in NADs of several namespaces': { others: [derived('b')], isNamed: false },
    'allows equal subnets of which one is draining': {
      others: [derived('b', subnet({ draining: ['10.9.0.128/25'] }))],
      isNamed: false,
    },
    'refuses some of the addresses of a pool of another namespace': {
      others: [derived('b')],
      pool: HALF,
      isNamed: false,
      refused: true,
    },
    'refuses the same subnet with another gateway': {
      others: [derived('b', subnet({ gateway: '10.9.0.1' }))],
      refused: true,
    },
    'allows some of the addresses if the pool of the other namespace serves this one': {
      others: [derived('b', { namespaces: ['b', 'a'] })],
      pool: HALF,
      isOwnershipEnforced: true,
    },
    'refuses equal subnets without consent if the administrator enforces it': {
      others: [derived('b')],
      isOwnershipEnforced: true,
      refused: true,
    },
    'allows what the namespace itself has in another pool': { others: [derived('a', OF_BLUE)], pool: HALF },
    'refuses the addresses of an older pool to one that exists': {
      others: [derived('b', {}, '1'), derived('a', HALF, '2')],
      pool: HALF,
      refused: true,
    },
    'allows a pool what a younger pool has taken of it': {
      others: [derived('b', {}, '2'), derived('a', HALF, '1')],
      pool: HALF,
    },
    'refuses to an older pool the addresses that only a younger pool has': {
      others: [derived('b', {}, '2'), derived('a', ELSEWHERE, '1')],
      pool: HALF,
      refused: true,
    },
  };
  for (const [
    name,
    { others, pool: given, isNamed = true, isOwnershipEnforced = false, refused = false },
  ] of Object.entries(rows)) {
    it(name, () => {
      const requested = pool('blue', { network: 'blue', namespaces: ['a'], ...given });
      const request = { pool: requested, name: 'blue.a', namespace: 'a', isNamed, isOwnershipEnforced };
      const refusal = runAtOnce(addressSpaceRefusal(request, others));
      expect(refusal !== undefined).to.equal(refused);
      if (refused)
        expect(refusal).to.match(/^"lan" is an address space of .* not serve namespace [ab]: .* ask the administrator/);
      for (const secret of ['guard', 'blue.b', 'namespace x', '10.']) expect(refusal ?? '').to.not.include(secret);
    });
  }
});

describe('usersWithoutConsent', () => {
  const namesOf = (owner: SpacePool, ...others: SpacePool[]) =>
    runAtOnce(usersWithoutConsent(owner, [owner, ...others])).map((user) => user.pool.name);

  it("names the derived pools with addresses of an administrator's pool that does not serve them", () => {
    const others = [derived('x'), derived('b', HALF), derived('c', ELSEWHERE)];
    expect(namesOf(guard(['x']), ...others)).to.deep.equal(['blue.b']);
    expect(namesOf(guard(), ...others)).to.deep.equal([]);
  });

  it('names, for a derived pool, the younger ones of other namespaces, also with equal subnets', () => {
    const [first, second] = [derived('a', {}, '1'), derived('b', {}, '2')];
    expect(namesOf(first, second)).to.deep.equal(['blue.b']);
    expect(namesOf(second, first)).to.deep.equal([]);
    expect(namesOf(derived('a', { namespaces: ['a', 'b'] }, '1'), second)).to.deep.equal([]);
  });
});
