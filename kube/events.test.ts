import { expect } from 'chai';
import sinon from 'sinon';
import { FAKED } from './testing/fake-time.js';
import { MemoryApi } from '../test/memory-api.js';
import { Client } from './client.js';
import { systemClock } from './clock.js';
import { StatusError, TransportError } from './errors.js';
import { type Event, EventRecorder, type EventSubject } from './events.js';
import { silentLogger } from './log.js';
import { silentMetrics } from './metrics.js';

const MINUTE = 60_000;

function vm(name: string, namespace?: string): EventSubject {
  const metadata = { name, uid: `uid-${name}`, resourceVersion: '7' };
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: namespace === undefined ? metadata : { ...metadata, namespace },
  };
}

describe('EventRecorder', () => {
  let time: sinon.SinonFakeTimers;
  let api: MemoryApi;
  let dropped: string[];
  let draws = 0;
  let recorder: EventRecorder;
  beforeEach(() => {
    time = sinon.useFakeTimers({ now: Date.UTC(2030, 0, 1), toFake: FAKED });
    api = new MemoryApi();
    dropped = [];
    recorder = recorderWith({ queueSize: 3 });
  });
  afterEach(() => time.restore());

  function recorderWith(options: { queueSize?: number }): EventRecorder {
    return new EventRecorder({
      client: new Client(api),
      component: 'holdfast-controller',
      clock: systemClock,
      log: silentLogger,
      random: () => (draws++ % 1000) / 1000,
      metrics: { ...silentMetrics, eventDropped: (why) => dropped.push(why) },
      ...options,
    });
  }

  function written(): Event[] {
    return [...api.objects.values()] as Event[];
  }

  async function flush(): Promise<void> {
    const flushed = recorder.flush();
    await time.runAllAsync();
    await flushed;
  }

  it('writes an event that kubectl describe finds: namespace, UID of the object, source and times', async () => {
    recorder.event(vm('web', 'shop'), 'Warning', 'ClaimConflict', 'delete claim web.blue');
    await flush();
    expect([...api.objects.keys()][0]).to.match(/^\/api\/v1\/namespaces\/shop\/events\/web\.[0-9a-f]+$/);
    expect(written()[0]).to.deep.include({
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
    recorder.event(vm('pool'), 'Normal', 'Reason', 'text');
    await flush();
    expect(written()[0]?.metadata.namespace).to.equal('default');
  });

  it('increments the count of a repeated event instead of writing it again', async () => {
    recorder.event(vm('web', 'shop'), 'Warning', 'Reason', 'text');
    await flush();
    time.tick(9 * MINUTE);
    recorder.event(vm('web', 'shop'), 'Warning', 'Reason', 'text');
    recorder.event(vm('web', 'shop'), 'Warning', 'Reason', 'text');
    await flush();
    expect(written()).to.have.length(1);
    const [firstTimestamp, lastTimestamp] = ['2030-01-01T00:00:00Z', '2030-01-01T00:09:00Z'];
    expect(written()[0]).to.include({ count: 3, firstTimestamp, lastTimestamp });
  });

  it('writes a new event after ten minutes, and if the old event has expired on the server', async () => {
    recorder.event(vm('web', 'shop'), 'Warning', 'Reason', 'text');
    await flush();
    time.tick(10 * MINUTE);
    recorder.event(vm('web', 'shop'), 'Warning', 'Reason', 'text');
    await flush();
    expect(written()).to.have.length(2);
    api.objects.clear();
    time.tick(5 * MINUTE);
    recorder.event(vm('web', 'shop'), 'Warning', 'Reason', 'text');
    await flush();
    expect(written().map((event) => event.count)).to.deep.equal([1]);
    expect(dropped).to.deep.equal([]);
  });

  it('writes a repeated event once in five minutes, with the count of all, and takes nothing of the rate limit of the object for it', async () => {
    let writes = 0;
    api.before = () => {
      writes++;
    };
    for (let minute = 0; minute < 61; minute++) {
      recorder.event(vm('web', 'shop'), 'Warning', 'Reason', 'text');
      await flush();
      time.tick(MINUTE);
    }
    expect([written().length, written()[0]?.count, writes]).to.deep.equal([1, 61, 13]);
    for (let count = 0; count < 24; count++) recorder.event(vm('web', 'shop'), 'Normal', `Reason${count}`, 'text');
    expect(dropped.filter((why) => why === 'rate')).to.deep.equal([]);
  });

  it('writes separate events for different objects, reasons or messages', async () => {
    recorder.event(vm('web', 'shop'), 'Warning', 'Reason', 'text');
    await flush();
    recorder.event(vm('web', 'shop'), 'Warning', 'Reason', 'other text');
    recorder.event(vm('web', 'shop'), 'Warning', 'Other', 'text');
    recorder.event(vm('web', 'other'), 'Warning', 'Reason', 'text');
    await flush();
    expect(written().map((event) => event.count)).to.deep.equal([1, 1, 1, 1]);
  });

  it('allows an object 25 events at once and then one in five minutes, without an effect on other objects', async () => {
    for (let count = 0; count < 30; count++) {
      recorder.event(vm('loud', 'shop'), 'Warning', 'Reason', `text ${count}`);
      await flush();
    }
    expect([written().length, dropped.length]).to.deep.equal([25, 5]);
    recorder.event(vm('quiet', 'shop'), 'Warning', 'Reason', 'text');
    time.tick(5 * MINUTE);
    recorder.event(vm('loud', 'shop'), 'Warning', 'Reason', 'text after a while');
    recorder.event(vm('loud', 'shop'), 'Warning', 'Reason', 'one too many');
    await flush();
    expect([written().length, dropped.length]).to.deep.equal([27, 6]);
    expect(new Set(dropped)).to.deep.equal(new Set(['rate']));
  });

  it('drops and counts events that exceed its queue, without an error or a delay', async () => {
    for (let count = 0; count < 5; count++) recorder.event(vm(`vm-${count}`, 'shop'), 'Warning', 'Reason', 'text');
    expect(dropped).to.deep.equal(['full', 'full']);
    await flush();
    expect(written()).to.have.length(3);
  });

  it('keeps room for warnings if normal events come faster than they are written', async () => {
    for (let count = 0; count < 9; count++) recorder.event(vm(`vm-${count}`, 'shop'), 'Normal', 'Reason', 'text');
    recorder.event(vm('web', 'shop'), 'Warning', 'Reason', 'text');
    await flush();
    expect(written().map(({ type }) => type)).to.deep.equal(['Normal', 'Normal', 'Warning']);
  });

  it('allows a namespace 1000 events at once and then one a second, without an effect on other namespaces', async () => {
    recorder = recorderWith({});
    for (let count = 0; count < 1_100; count++) recorder.event(vm(`vm-${count}`, 'loud'), 'Warning', 'Reason', 'text');
    recorder.event(vm('web', 'shop'), 'Warning', 'Reason', 'text');
    await flush();
    expect([written().length, dropped.length]).to.deep.equal([1_001, 100]);
    time.tick(2_000);
    for (let count = 0; count < 3; count++) recorder.event(vm(`new-${count}`, 'loud'), 'Warning', 'Reason', 'text');
    await flush();
    expect([written().length, dropped.length]).to.deep.equal([1_003, 101]);
    expect(new Set(dropped)).to.deep.equal(new Set(['rate']));
  });

  it('counts events about cluster-scoped objects of a tenant to its namespace, so that they displace none of others', async () => {
    recorder = recorderWith({ queueSize: 4096 });
    const pool = (name: string, tenant?: string) => ({ ...vm(name), ...(tenant !== undefined && { tenant }) });
    for (let n = 0; n < 1_200; n++) recorder.event(pool(`derived-${n}`, 'shop'), 'Warning', 'PoolInvalid', 'text');
    expect(dropped).to.have.length(200);
    recorder.event(pool('office'), 'Warning', 'ForeignDHCPServer', 'text');
    recorder.event(vm('web', 'shop'), 'Warning', 'ClaimConflict', 'text');
    expect(dropped).to.have.length(201);
    await flush();
    expect(written().map(({ reason }) => reason))
      .to.include('ForeignDHCPServer')
      .and.not.include('ClaimConflict');
  });

  it('limits also the repeats of a namespace', async () => {
    recorder = recorderWith({});
    const repeat = () => {
      for (let count = 0; count < 600; count++) recorder.event(vm(`vm-${count}`, 'loud'), 'Warning', 'Reason', 'text');
    };
    for (let round = 0; round < 3; round++) {
      repeat();
      await flush();
      time.tick(5 * MINUTE);
    }
    // the bucket got 300 tokens before each of the two repeats
    expect(dropped).to.have.lengthOf(3 * 600 - 1_000 - 2 * 300);
  });

  it('takes no token of the namespace for an object that has too many events', async () => {
    recorder = recorderWith({});
    for (let count = 0; count < 3_000; count++)
      recorder.event(vm('loud', 'shop'), 'Warning', 'Reason', `text ${count}`);
    for (let count = 0; count < 975; count++) recorder.event(vm(`vm-${count}`, 'shop'), 'Warning', 'Reason', 'text');
    await flush();
    expect(written()).to.have.length(1_000);
  });

  it('writes the events of namespaces in turns', async () => {
    recorder = recorderWith({ queueSize: 9 });
    const order: string[] = [];
    api.before = ({ path }) => void order.push(path.split('/')[4] ?? '');
    for (const [index, namespace] of ['loud', 'loud', 'loud', 'shop', 'shop', 'quiet'].entries()) {
      recorder.event(vm(`vm-${index}`, namespace), 'Warning', 'Reason', 'text');
    }
    await flush();
    expect(order).to.deep.equal(['loud', 'shop', 'quiet', 'loud', 'shop', 'loud']);
  });

  it('drops the oldest events of the namespace with the most if its queue is full', async () => {
    for (const name of ['a', 'b', 'c']) recorder.event(vm(name, 'loud'), 'Warning', 'Reason', 'text');
    recorder.event(vm('d', 'shop'), 'Normal', 'Reason', 'text');
    expect(dropped).to.deep.equal(['full']);
    recorder.event(vm('e', 'shop'), 'Warning', 'Reason', 'text');
    recorder.event(vm('f', 'loud'), 'Warning', 'Reason', 'text');
    expect(dropped).to.deep.equal(['full', 'full', 'full']);
    await flush();
    expect(written().map(({ involvedObject }) => involvedObject.name)).to.have.members(['b', 'c', 'd']);
  });

  it('loses no event while the API server restarts', async () => {
    const back = Date.now() + 5_000;
    api.before = () => {
      if (Date.now() < back) throw new TransportError('unsent', 'refused');
    };
    recorder.event(vm('web', 'shop'), 'Normal', 'Reason', 'text');
    await time.tickAsync(30_000);
    expect(written()).to.have.length(1);
    expect(dropped).to.deep.equal([]);
  });

  it('drops an event that the server rejects, and continues with the next', async () => {
    api.before = (request) => {
      if (!request.path.includes('forbidden')) return;
      throw new StatusError({ request: 'POST', status: 403, reason: 'Forbidden', message: 'is being terminated' });
    };
    recorder.event(vm('web', 'forbidden'), 'Normal', 'Reason', 'text');
    recorder.event(vm('web', 'shop'), 'Normal', 'Reason', 'text');
    await flush();
    expect(dropped).to.deep.equal(['failed']);
    expect(written()).to.have.length(1);
  });

  it('keeps names and messages within the limits of the server', async () => {
    recorder.event(vm('x'.repeat(253), 'shop'), 'Normal', 'Reason', 'y'.repeat(2000));
    await flush();
    expect(written()[0]?.metadata.name).to.have.length(253);
    expect(written()[0]?.message).to.have.length(1024);
  });

  it('replaces characters of messages that a terminal would obey', async () => {
    recorder.event(vm('web', 'shop'), 'Normal', 'Reason', 'a\n\u001b[31mb\u009b\u202ec\u2028d’s');
    await flush();
    expect(written()[0]?.message).to.equal('a  [31mb  c d’s');
  });

  it('ends a flush at its time limit', async () => {
    api.before = () => systemClock.sleep(1_000_000);
    recorder.event(vm('web', 'shop'), 'Normal', 'Reason', 'text');
    let flushed = false;
    void recorder.flush(3_000).then(() => {
      flushed = true;
    });
    await time.tickAsync(2_999);
    expect(flushed).to.equal(false);
    await time.tickAsync(1);
    expect(flushed).to.equal(true);
  });
});
