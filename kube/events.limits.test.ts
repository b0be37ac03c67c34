import { expect } from 'chai';
import { EventHarness, MINUTE, vm } from './testing/event-harness.js';

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
