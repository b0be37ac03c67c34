import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { CLAIM_MAC_SINCE, VELERO_RESTORE_NAME } from '../../api/names.js';
import { Client } from '../../kube/client.js';
import { ManualClock } from '../../test/manual-clock.js';
import { type WorkloadClaimOptions, claim, vm } from '../../test/objects/workload-objects.js';
import { createSync } from './sync.js';
import { FORMER } from './testing/restored-workload.js';
import { syncDependencies } from './testing/sync-dependencies.js';
import { type WorkloadScenario, cachesOf } from './testing/workload-observation.js';
import { ClaimsWorld } from './testing/model/world.js';
import { WorldApi } from './testing/model/world-api.js';

const HOUR_MS = 3_600_000;
const MAC = '02:00:00:00:00:01';

describe('a sync in a process whose monotonic clock differs from the time of day', () => {
  let world: ClaimsWorld;
  let stored: IPAMClaim;
  /** Half an hour after the claim was created. */
  let wall: number;

  beforeEach(() => (world = new ClaimsWorld()));

  function store(given: WorkloadClaimOptions = {}, labels: Record<string, string> = {}) {
    const { uid: _uid, resourceVersion: _version, ...metadata } = claim(given).metadata;
    const labelled = { ...metadata, labels: { ...metadata.labels, ...labels } };
    stored = world.create('claims', { ...claim(given), metadata: labelled });
    wall = Date.parse(stored.metadata.creationTimestamp ?? '') + HOUR_MS / 2;
  }

  /** @param aheadMs by how much the monotonic clock is ahead of the time of day */
  function sync(given: WorkloadScenario, aheadMs: number) {
    const clock = new ManualClock(wall + aheadMs);
    clock.setBack(aheadMs);
    return createSync({ ...syncDependencies(cachesOf(given), new Client(new WorldApi(world))), clock })('vms/vm1');
  }

  it('keeps a restored claim for its time although the clock was ahead when the process started', async () => {
    store({ owner: null, recordedOwner: FORMER }, { [VELERO_RESTORE_NAME]: 'nightly-1' });
    expect(await sync({ claims: [stored] }, 2 * HOUR_MS)).to.deep.equal({ requeueAfterMs: HOUR_MS / 2 });
    expect(world.list('claims')).to.deep.equal([stored]);
  });

  it('keeps a restored claim for its time although the clock was set forward since the process started', async () => {
    store({ owner: null, recordedOwner: FORMER }, { [VELERO_RESTORE_NAME]: 'nightly-1' });
    expect(await sync({ claims: [stored] }, -24 * HOUR_MS)).to.deep.equal({ requeueAfterMs: HOUR_MS });
    expect(world.list('claims')).to.deep.equal([stored]);
  });

  it('records a new MAC address with the time of day although the machine was suspended', async () => {
    store();
    const given = vm({ data: 'blue' });
    Object.assign(given.spec?.template?.spec?.domain?.devices?.interfaces?.[0] ?? {}, { macAddress: MAC });
    await sync({ vm: given, claims: [stored] }, -3 * HOUR_MS);
    const { annotations = {} } = world.get('claims', 'vms/vm1.data')?.metadata ?? {};
    expect(annotations[CLAIM_MAC_SINCE]).to.equal(`${MAC} ${new Date(wall).toISOString()}`);
  });
});
