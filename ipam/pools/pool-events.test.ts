import { expect } from 'chai';
import { PoolCondition } from '../../api/conditions.js';
import { EventReason } from '../../api/event-reasons.js';
import { type EventSubject, LASTING_EVENT_MS } from '../../kube/events.js';
import { adminPool, holdfastConfig, nad } from '../../test/objects/pool-objects.js';
import { NadEvents, recordConditionEvents } from './pool-events.js';
import { PoolsWorld } from './testing/pools-world.js';

describe('the events of a pool', () => {
  /** Whose share of the events they take. */
  let takers: (string | undefined)[];
  const events = { event: ({ tenant, metadata }: EventSubject) => void takers.push(metadata.namespace ?? tenant) };
  const condition = { type: PoolCondition.Conflict, status: 'True' as const, reason: 'Conflict', message: 'Conflicts' };
  beforeEach(() => (takers = []));

  it('take the share of the namespace of the NADs from which the pool is derived, like those of its NADs', () => {
    recordConditionEvents(
      adminPool('blue.vms', { nadNamespace: 'vms' }),
      [{ ...condition, lastTransitionTime: '' }],
      events,
    );
    new NadEvents(events, { now: () => 0 }).record({
      nad: nad('vms/blue', holdfastConfig()),
      reason: EventReason.PoolMissing,
      message: '',
    });
    expect(takers).to.deep.equal(['vms', 'vms']);
  });

  it('take the share of no tenant if an administrator created the pool', () => {
    recordConditionEvents(adminPool('blue'), [{ ...condition, lastTransitionTime: '' }], events);
    expect(takers).to.deep.equal([undefined]);
  });

  it('do not call a pool invalid whose ranges are drained', () => {
    const type = PoolCondition.Draining;
    recordConditionEvents(adminPool('blue'), [{ ...condition, type, lastTransitionTime: '' }], events);
    expect(takers).to.deep.equal([]);
  });
});

describe('the NAD of an event', () => {
  it('is looked at again while the event holds, because the API server deletes an event after an hour', async () => {
    const world = new PoolsWorld();
    world.putNads(nad('vms/blue', holdfastConfig()));
    await world.settle();
    expect(await world.sync('vms/blue')).to.deep.equal({ requeueAfterMs: LASTING_EVENT_MS });
    world.putPool(adminPool('p'));
    expect(await world.sync('vms/blue')).to.equal(undefined);
  });
});
