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

describe('The limits of EventRecorder', () => {
  let harness: EventHarness;
  afterEach(() => harness.time.restore());

  it('allows an object 25 events at once and then one in five minutes, without an effect on other objects', async () => {
    harness = new EventHarness(3);
    for (let count = 0; count < 30; count++) {
      harness.warn(vm('loud', 'shop'), `text ${count}`);
      await harness.flush();
    }
    expect([harness.written().length, harness.dropped.length]).to.deep.equal([25, 5]);
    harness.warn(vm('quiet', 'shop'));
    harness.time.tick(5 * MINUTE);
    harness.warn(vm('loud', 'shop'), 'text after a while');
    harness.warn(vm('loud', 'shop'), 'one too many');
    await harness.flush();
    expect([harness.written().length, harness.dropped.length]).to.deep.equal([27, 6]);
    expect(new Set(harness.dropped)).to.deep.equal(new Set(['rate']));
  });

  it('drops and counts events that exceed its queue, without an error or a delay', async () => {
    harness = new EventHarness(3);
    for (let count = 0; count < 5; count++) harness.warn(vm(`vm-${count}`, 'shop'));
    expect(harness.dropped).to.deep.equal(['full', 'full']);
    await harness.flush();
    expect(harness.written()).to.have.length(3);
  });

  it('keeps room for warnings if normal events come faster than they are written', async () => {
    harness = new EventHarness(3);
    for (let count = 0; count < 9; count++)
      harness.recorder.event(vm(`vm-${count}`, 'shop'), 'Normal', 'Reason', 'text');
    harness.warn(vm('web', 'shop'));
    await harness.flush();
    expect(harness.written().map(({ type }) => type)).to.deep.equal(['Normal', 'Normal', 'Warning']);
  });

  it('allows a namespace 1000 events at once and then one a second, without an effect on other namespaces', async () => {
    harness = new EventHarness();
    for (let count = 0; count < 1_100; count++) harness.warn(vm(`vm-${count}`, 'loud'));
    harness.warn(vm('web', 'shop'));
    await harness.flush();
    expect([harness.written().length, harness.dropped.length]).to.deep.equal([1_001, 100]);
    harness.time.tick(2_000);
    for (let count = 0; count < 3; count++) harness.warn(vm(`new-${count}`, 'loud'));
    await harness.flush();
    expect([harness.written().length, harness.dropped.length]).to.deep.equal([1_003, 101]);
    expect(new Set(harness.dropped)).to.deep.equal(new Set(['rate']));
  });

  it('counts events about cluster-scoped objects of a tenant to its namespace, so that they displace none of others', async () => {
    harness = new EventHarness(4096);
    const pool = (name: string, tenant?: string) => ({ ...vm(name), ...(tenant !== undefined && { tenant }) });
    for (let n = 0; n < 1_200; n++)
      harness.recorder.event(pool(`derived-${n}`, 'shop'), 'Warning', 'PoolInvalid', 'text');
    expect(harness.dropped).to.have.length(200);
    harness.recorder.event(pool('office'), 'Warning', 'ForeignDHCPServer', 'text');
    harness.recorder.event(vm('web', 'shop'), 'Warning', 'ClaimConflict', 'text');
    expect(harness.dropped).to.have.length(201);
    await harness.flush();
    expect(harness.written().map(({ reason }) => reason))
      .to.include('ForeignDHCPServer')
      .and.not.include('ClaimConflict');
  });

  it('limits also the repeats of a namespace', async () => {
    harness = new EventHarness();
    const repeat = () => {
      for (let count = 0; count < 600; count++) harness.warn(vm(`vm-${count}`, 'loud'));
    };
    for (let round = 0; round < 3; round++) {
      repeat();
      await harness.flush();
      harness.time.tick(5 * MINUTE);
    }
    // the bucket got 300 tokens before each of the two repeats
    expect(harness.dropped).to.have.lengthOf(3 * 600 - 1_000 - 2 * 300);
  });

  it('takes no token of the namespace for an object that has too many events', async () => {
    harness = new EventHarness();
    for (let count = 0; count < 3_000; count++) harness.warn(vm('loud', 'shop'), `text ${count}`);
    for (let count = 0; count < 975; count++) harness.warn(vm(`vm-${count}`, 'shop'));
    await harness.flush();
    expect(harness.written()).to.have.length(1_000);
  });

  it('writes the events of namespaces in turns', async () => {
    harness = new EventHarness(9);
    const order: string[] = [];
    harness.api.before = ({ path }) => void order.push(path.split('/')[4] ?? '');
    for (const [index, namespace] of ['loud', 'loud', 'loud', 'shop', 'shop', 'quiet'].entries()) {
      harness.warn(vm(`vm-${index}`, namespace));
    }
    await harness.flush();
    expect(order).to.deep.equal(['loud', 'shop', 'quiet', 'loud', 'shop', 'loud']);
  });

  it('drops the oldest events of the namespace with the most if its queue is full', async () => {
    harness = new EventHarness(3);
    for (const name of ['a', 'b', 'c']) harness.warn(vm(name, 'loud'));
    harness.recorder.event(vm('d', 'shop'), 'Normal', 'Reason', 'text');
    expect(harness.dropped).to.deep.equal(['full']);
    harness.warn(vm('e', 'shop'));
    harness.warn(vm('f', 'loud'));
    expect(harness.dropped).to.deep.equal(['full', 'full', 'full']);
    await harness.flush();
    expect(harness.written().map(({ involvedObject }) => involvedObject.name)).to.have.members(['b', 'c', 'd']);
  });
});
