import { expect } from 'chai';
import type { AddressPool } from '../../api/address-pool.js';
import { runAtOnce } from '../../kube/run-in-slices.js';
import { adminPool, holdfastConfig, nad } from '../../test/objects/pool-objects.js';
import { slowLookup, slowPool } from '../../test/objects/slow-pool.js';
import { ManualClock } from '../../test/manual-clock.js';
import { TurnCounter } from '../../test/turn-counter.js';
import { validationViewOf } from './testing/validation-view.js';
import { ReviewTurns } from './nad-admission.js';
import { reviewNad } from './nad-review.js';

const REVIEW = { nad: nad('vms/n', holdfastConfig({ subnets: [{ cidr: '10.0.0.0/24' }] })) };
const NO_NETWORKS = {
  poolsOf: () => [],
  poolsBySegment: new Map(),
  poolsIn: () => [],
  nadsOf: () => [],
  pool: () => undefined,
};

const warningsWith = (...pools: AddressPool[]) => runAtOnce(reviewNad(REVIEW, validationViewOf({ pools }))).warnings;

describe('a NAD whose addresses are also in another pool of its address space', () => {
  it('gets a warning that names neither the pool of another namespace nor its addresses', () => {
    const [warning, ...others] = warningsWith(
      adminPool('blue.others', { cidr: '10.0.0.128/25', nadNamespace: 'others' }),
    );
    expect(warning).to.equal(
      'AddressPool blue.vms: spec.subnets: some addresses are also in a pool of others: each is leased only once in address space "blue"',
    );
    expect(others).to.deep.equal([]);
  });

  it("gets warnings that name an administrator's pool, and a pool of its own namespace", () => {
    const said = warningsWith(
      adminPool('q', { network: 'red', addressSpace: 'blue' }),
      adminPool('green.vms', { network: 'green', addressSpace: 'blue', nadNamespace: 'vms' }),
    ).join('\n');
    expect(said).to.include('also in AddressPool q').and.to.include('also in AddressPool green.vms');
  });

  it('is compared by its CIDRs with a pool that has none of them, because pools have thousands of ranges', () => {
    const view = validationViewOf({
      pools: [adminPool('far', { network: 'far', addressSpace: 'blue', cidr: '10.7.0.0/24' })],
    });
    const far = view.networks.pool('far')!;
    const subnets = far.subnets.map((subnet) => ({
      ...subnet,
      get leasable(): never {
        throw new Error('the ranges of a subnet elsewhere were read');
      },
    }));
    const networks = {
      ...NO_NETWORKS,
      poolsIn: () => [{ pool: { ...far, subnets }, createdAt: '1', nadNamespace: 'others' }],
      pool: () => ({ ...far, subnets }),
    };
    expect(runAtOnce(reviewNad(REVIEW, { ...view, networks }))).to.deep.equal({ refusals: [], warnings: [] });
  });

  it('lets other work of the process run after each 20 ms in which it is compared', async () => {
    const [clock, counter] = [new ManualClock(0), new TurnCounter()];
    const of = { network: 'far', addressSpace: 'blue', namespaces: ['others'], nadNamespace: 'others' };
    const view = validationViewOf({ pools: [adminPool('far.others', { ...of, cidr: '10.7.0.0/24' })] });
    const comparedIn: number[] = [];
    const slow = view.networks.poolsIn('blue').map((far) => slowPool(far, clock, () => comparedIn.push(counter.turns)));
    const networks = { ...NO_NETWORKS, poolsIn: () => Array.from({ length: 6 }, () => slow).flat() };
    const result = await new ReviewTurns(clock).run('vms', reviewNad(REVIEW, { ...view, networks }));
    counter.stop();
    expect(result).to.deep.equal({ refusals: [], warnings: [] });
    expect([comparedIn.length, new Set(comparedIn).size]).to.deep.equal([6, 3]);
  });

  it('lets other work of the process run after each 20 ms in which warnings are searched', async () => {
    const [clock, counter] = [new ManualClock(0), new TurnCounter()];
    const pools = Array.from({ length: 6 }, (_, n) => adminPool(`p${n}`, { network: `n${n}`, addressSpace: 'blue' }));
    const view = validationViewOf({ pools });
    const comparedIn: number[] = [];
    const pool = slowLookup(
      (name) => view.networks.pool(name),
      clock,
      () => comparedIn.push(counter.turns),
    );
    const { warnings } = await new ReviewTurns(clock).run(
      'vms',
      reviewNad(REVIEW, { ...view, networks: { ...NO_NETWORKS, pool } }),
    );
    counter.stop();
    expect(warnings).to.have.length(5);
    expect([comparedIn.length, new Set(comparedIn).size]).to.deep.equal([6, 3]);
  });

  it('is compared with no pool of another address space, and with at most 256 of its own', () => {
    const pools = Array.from({ length: 300 }, (_, n) => adminPool(`p${n}`, { network: `n${n}`, addressSpace: 'blue' }));
    const elsewhere = { ...adminPool('far', { network: 'far' }), spec: { network: 'far' } as AddressPool['spec'] };
    Object.defineProperty(elsewhere.spec, 'subnets', {
      get: () => {
        throw new Error('a pool of another address space was compiled');
      },
    });
    const view = validationViewOf({ pools });
    let compared = 0;
    const networks = { ...NO_NETWORKS, pool: (name: string) => (compared++, view.networks.pool(name)) };
    const { warnings } = runAtOnce(
      reviewNad(REVIEW, {
        ...view,
        networks,
        pools: { list: () => [elsewhere, ...pools], get: () => undefined, byIndex: () => [] },
      }),
    );
    expect(compared).to.equal(256);
    expect(warnings).to.have.length(5);
  });
});
