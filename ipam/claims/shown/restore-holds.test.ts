import { expect } from 'chai';
import type { IPAMClaim } from '../../../api/ipam-claim.js';
import { adminPool, claimOf } from '../../../test/objects/pool-objects.js';
import { ManualClock } from '../../../test/manual-clock.js';
import { RestoreHolds } from './restore-holds.js';
import { SERVED_CLAIM_INDEXES } from '../claim-transform.js';
import { Cache } from '../../../kube/informers/cache.js';
import { type Address, formatAddress } from '../../../addressing/address/address.js';
import { compilePool } from '../../../addressing/pool/pool.js';

describe('holds for restored claims', () => {
  let clock: ManualClock;
  let claims: Cache<IPAMClaim>;
  let held: Set<string>;
  let isServed: boolean;
  let holds: RestoreHolds;

  beforeEach(() => {
    clock = new ManualClock(0);
    claims = new Cache<IPAMClaim>(SERVED_CLAIM_INDEXES);
    held = new Set();
    isServed = true;
    const compiled = compilePool(adminPool('blue'));
    if (!compiled.ok) throw new Error('the pool is valid');
    const resolution = { kind: 'served' as const, pool: compiled.pool };
    const directory = { resolve: () => (isServed ? resolution : { kind: 'foreign' as const, message: '' }) };
    const book = {
      ofClaim: () => [],
      // each claim takes 15 ms
      ofExactClaim: () => (clock.advanceTo(clock.now() + 15), []),
      addRestoreHold: (_space: string, address: Address) => void held.add(formatAddress(address)),
      removeRestoreHold: (_space: string, address: Address) => void held.delete(formatAddress(address)),
    };
    holds = new RestoreHolds({ claims, book, directory, clock });
    for (let n = 1; n <= 4; n++) claims.set(restored(n));
  });

  function restored(n: number): IPAMClaim {
    return { ...claimOf(`vms/${n}`, 'vms/blue'), status: { ips: [`10.0.0.${n + 10}/24`] } };
  }

  /** Waits, and returns how many holds other work saw meanwhile. */
  async function seenDuring(work: Promise<boolean>): Promise<ReadonlySet<number>> {
    const seen = new Set<number>();
    const look = () => {
      seen.add(held.size);
      next = setImmediate(look);
    };
    let next = setImmediate(look);
    expect(await work).to.equal(true);
    clearImmediate(next);
    return seen;
  }

  it('are all there when a leader may sync claims, and other work ran meanwhile', async () => {
    expect(await seenDuring(holds.start())).to.include(2);
    expect([...held]).to.deep.equal(['10.0.0.11', '10.0.0.12', '10.0.0.13', '10.0.0.14']);
  });

  it('are all there when a claim may be synced after its network has changed, and other work ran meanwhile', async () => {
    isServed = false;
    await holds.prepare();
    isServed = true;
    const since = clock.now();
    for (let change = 0; change < 3; change++) holds.onNetworksChange(new Map([['blue', undefined]]));
    expect(await seenDuring(holds.prepare())).to.include(2);
    expect([...held]).to.deep.equal(['10.0.0.11', '10.0.0.12', '10.0.0.13', '10.0.0.14']);
    // each claim was looked at once
    expect(clock.now() - since).to.equal(4 * 15);
  });

  it('are not added for a claim that is deleted before its turn comes', async () => {
    const started = holds.start();
    const object = claims.delete('vms/4');
    if (object !== undefined) holds.onClaimChange({ type: 'removed', object, before: object });
    await started;
    expect([...held]).to.deep.equal(['10.0.0.11', '10.0.0.12', '10.0.0.13']);
  });

  it('are not added any more after the process was stopped', async () => {
    const started = holds.start();
    holds.stop();
    expect([await started, held.size]).to.deep.equal([false, 0]);
  });

  it('follow the changes while the process waits, so that a new leader rechecks only claims that have some', async () => {
    await holds.prepare();
    const before = claims.get('vms/2');
    const moved = { ...restored(2), status: { ips: [] } };
    claims.set(moved);
    holds.onClaimChange({ type: 'changed', object: moved, ...(before && { before }) });
    claims.set(restored(5));
    holds.onClaimChange({ type: 'added', object: restored(5) });
    claims.set(restored(6));
    const since = clock.now();
    expect(await holds.start()).to.equal(true);
    expect([...held]).to.deep.equal(['10.0.0.11', '10.0.0.13', '10.0.0.14', '10.0.0.15']);
    // claim 2 shows no address any more, and nobody has told of claim 6
    expect(clock.now() - since).to.equal(4 * 15);
  });

  it('are not rechecked to the end if the term ends before', async () => {
    await holds.prepare();
    const term = new AbortController();
    term.abort();
    expect([await holds.start(term.signal), held.size]).to.deep.equal([false, 4]);
  });
});
