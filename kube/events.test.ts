import { expect } from 'chai';
import { systemClock } from './clock.js';
import { StatusError, TransportError } from './errors.js';
import { EVENTS } from './events.js';
import { EventHarness, MINUTE, vm } from './testing/event-harness.js';

/** The API server checks the names of events with it. */
const DNS_1123_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

describe('EventRecorder', () => {
  let harness: EventHarness;
  beforeEach(() => {
    harness = new EventHarness();
  });
  afterEach(() => harness.time.restore());

  it('writes an event that kubectl describe finds: namespace, UID of the object, source and times', async () => {
    harness.recorder.event(vm('web', 'shop'), 'Warning', 'ClaimConflict', 'delete claim web.blue');
    await harness.flush();
    expect([...harness.api.tracker.objects(EVENTS).keys()][0]).to.match(/^shop\/web\.[0-9a-f]+$/);
    expect(harness.written()[0]).to.deep.include({
      kind: 'Event',
      apiVersion: 'v1',
      involvedObject: {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachine',
        namespace: 'shop',
        name: 'web',
        uid: 'uid-web',
        resourceVersion: '7',
      },
      type: 'Warning',
      reason: 'ClaimConflict',
      message: 'delete claim web.blue',
      count: 1,
      firstTimestamp: '2030-01-01T00:00:00Z',
      lastTimestamp: '2030-01-01T00:00:00Z',
      source: { component: 'holdfast-controller' },
      reportingComponent: 'holdfast-controller',
    });
  });

  it('writes events about cluster-scoped objects into the default namespace', async () => {
    harness.recorder.event(vm('pool'), 'Normal', 'Reason', 'text');
    await harness.flush();
    expect(harness.written()[0]?.metadata.namespace).to.equal('default');
  });

  it('increments the count of a repeated event instead of writing it again', async () => {
    harness.warn(vm('web', 'shop'));
    await harness.flush();
    harness.time.tick(9 * MINUTE);
    harness.warn(vm('web', 'shop'));
    harness.warn(vm('web', 'shop'));
    await harness.flush();
    expect(harness.written()).to.have.length(1);
    const [firstTimestamp, lastTimestamp] = ['2030-01-01T00:00:00Z', '2030-01-01T00:09:00Z'];
    expect(harness.written()[0]).to.include({ count: 3, firstTimestamp, lastTimestamp });
  });

  it('writes a new event after ten minutes, and if the old event has expired on the server', async () => {
    harness.warn(vm('web', 'shop'));
    await harness.flush();
    harness.time.tick(10 * MINUTE);
    harness.warn(vm('web', 'shop'));
    await harness.flush();
    expect(harness.written()).to.have.length(2);
    for (const { metadata } of harness.written()) harness.api.tracker.remove(EVENTS, metadata);
    harness.time.tick(5 * MINUTE);
    harness.warn(vm('web', 'shop'));
    await harness.flush();
    expect(harness.written().map((event) => event.count)).to.deep.equal([1]);
    expect(harness.dropped).to.deep.equal([]);
  });

  it('writes a repeated event once in five minutes, with the count of all, and takes nothing of the rate limit of the object for it', async () => {
    let writes = 0;
    harness.api.before = () => {
      writes++;
    };
    for (let minute = 0; minute < 61; minute++) {
      harness.warn(vm('web', 'shop'));
      await harness.flush();
      harness.time.tick(MINUTE);
    }
    expect([harness.written().length, harness.written()[0]?.count, writes]).to.deep.equal([1, 61, 13]);
    for (let count = 0; count < 24; count++)
      harness.recorder.event(vm('web', 'shop'), 'Normal', `Reason${count}`, 'text');
    expect(harness.dropped.filter((why) => why === 'rate')).to.deep.equal([]);
  });

  it('only counts repeats that occur while the event is being written', async () => {
    const subject = vm('web', 'shop');
    let writes = 0;
    harness.api.before = () => {
      writes++;
      harness.warn(subject);
    };
    harness.warn(subject);
    await harness.flush();
    expect([writes, harness.written().length]).to.deep.equal([1, 1]);
    harness.time.tick(5 * MINUTE);
    harness.warn(subject);
    await harness.flush();
    harness.time.tick(5 * MINUTE);
    harness.api.before = () => {
      writes++;
    };
    harness.warn(subject);
    await harness.flush();
    expect([writes, harness.written()[0]?.count]).to.deep.equal([3, 5]);
  });

  it('writes separate events for different objects, reasons or messages', async () => {
    harness.warn(vm('web', 'shop'));
    await harness.flush();
    harness.warn(vm('web', 'shop'), 'other text');
    harness.recorder.event(vm('web', 'shop'), 'Warning', 'Other', 'text');
    harness.warn(vm('web', 'other'));
    await harness.flush();
    expect(harness.written().map((event) => event.count)).to.deep.equal([1, 1, 1, 1]);
  });

  it('loses no event while the API server restarts', async () => {
    const back = Date.now() + 5_000;
    harness.api.before = () => {
      if (Date.now() < back) throw new TransportError('unsent', 'refused');
    };
    harness.recorder.event(vm('web', 'shop'), 'Normal', 'Reason', 'text');
    await harness.time.tickAsync(30_000);
    expect(harness.written()).to.have.length(1);
    expect(harness.dropped).to.deep.equal([]);
  });

  it('drops an event that the server rejects, and continues with the next', async () => {
    harness.api.before = (request) => {
      if (!request.path.includes('forbidden')) return;
      throw new StatusError({ request: 'POST', status: 403, reason: 'Forbidden', message: 'is being terminated' });
    };
    harness.recorder.event(vm('web', 'forbidden'), 'Normal', 'Reason', 'text');
    harness.recorder.event(vm('web', 'shop'), 'Normal', 'Reason', 'text');
    await harness.flush();
    expect(harness.dropped).to.deep.equal(['failed']);
    expect(harness.written()).to.have.length(1);
  });

  it('keeps names and messages within the limits of the server', async () => {
    harness.recorder.event(vm('x'.repeat(253), 'shop'), 'Normal', 'Reason', 'y'.repeat(2000));
    await harness.flush();
    expect(harness.written()[0]?.metadata.name).to.have.length(253);
    expect(harness.written()[0]?.message).to.have.length(1024);
  });

  it('cuts a long name of an object so that the name of the event is valid', async () => {
    for (let length = 225; length <= 245; length++) {
      for (const middle of ['-', '.', '--'])
        harness.warn(vm(`${'a'.repeat(length)}${middle}${'b'.repeat(253 - length - middle.length)}`, 'shop'));
    }
    await harness.flush();
    expect(harness.dropped).to.deep.equal([]);
    expect(harness.written()).to.have.length(63);
    const invalid = harness.written().filter(({ metadata }) => !DNS_1123_SUBDOMAIN.test(metadata.name));
    expect(invalid).to.deep.equal([]);
  });

  it('replaces characters of messages that a terminal would obey', async () => {
    harness.recorder.event(vm('web', 'shop'), 'Normal', 'Reason', 'a\n\u001b[31mb\u009b\u202ec\u2028d’s');
    await harness.flush();
    expect(harness.written()[0]?.message).to.equal('a  [31mb  c d’s');
  });

  it('ends a flush at its time limit', async () => {
    harness.api.before = () => systemClock.sleep(1_000_000);
    harness.recorder.event(vm('web', 'shop'), 'Normal', 'Reason', 'text');
    let flushed = false;
    void harness.recorder.flush(3_000).then(() => {
      flushed = true;
    });
    await harness.time.tickAsync(2_999);
    expect(flushed).to.equal(false);
    await harness.time.tickAsync(1);
    expect(flushed).to.equal(true);
  });
});
