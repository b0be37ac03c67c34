import { expect } from 'chai';
import { Client } from '../../kube/client.js';
import { ManualClock } from '../../test/manual-clock.js';
import { NAMESPACE, vm } from '../../test/objects/workload-objects.js';
import { VIRTUAL_MACHINES } from '../../kube/resources.js';
import { WatchedCluster } from './testing/watched-cluster.js';
import { VmStories } from './vm-stories.js';

describe('The stories of VMs on the web page', () => {
  let cluster: WatchedCluster;
  let clock: ManualClock;
  let stories: VmStories;
  let reads: number;

  beforeEach(() => {
    cluster = new WatchedCluster();
    cluster.tracker.put(VIRTUAL_MACHINES, vm({ data: 'blue' }));
    clock = new ManualClock(0);
    reads = 0;
    stories = new VmStories({ client: new Client(cluster), clusterFlags: '', clock, onRead: () => (reads += 1) });
  });
  afterEach(() => stories.stop());

  const pass = () => clock.advanceTo(clock.now() + 2_000);

  it('are read when somebody looks, and at most every two seconds after changes', async () => {
    stories.open(NAMESPACE, 'vm1');
    await clock.untilAlarmsSet();
    expect(stories.of(NAMESPACE, 'vm1')?.value).to.include({ kind: 'VirtualMachine', name: `${NAMESPACE}/vm1` });
    for (let n = 0; n < 100; n += 1) stories.changed();
    expect(reads).to.equal(1);
    pass();
    await clock.untilAlarmsSet();
    expect(reads).to.equal(2);
  });

  it('are not read again when nothing has changed', async () => {
    stories.open(NAMESPACE, 'vm1');
    await clock.untilAlarmsSet();
    pass();
    await new Promise((resolve) => setImmediate(resolve));
    expect([reads, clock.next]).to.deep.equal([1, undefined]);
  });

  it('are shared by all who look, and forgotten when the last one has left', async () => {
    const ends = [stories.open(NAMESPACE, 'vm1'), stories.open(NAMESPACE, 'vm1')];
    await clock.untilAlarmsSet();
    expect(cluster.requests.filter(({ path }) => path.endsWith('/virtualmachines/vm1'))).to.have.length(1);
    ends[0]?.();
    expect(stories.of(NAMESPACE, 'vm1')?.value).to.not.equal(undefined);
    ends[1]?.();
    expect(stories.of(NAMESPACE, 'vm1')).to.equal(undefined);
  });

  it('keep what is known, and say why it could not be read again', async () => {
    stories.open(NAMESPACE, 'vm1');
    await clock.untilAlarmsSet();
    cluster.request = () => Promise.reject(new TypeError('the API server is gone'));
    stories.changed();
    pass();
    await clock.untilAlarmsSet();
    expect(stories.of(NAMESPACE, 'vm1')).to.deep.include({ failure: 'the API server is gone' });
    expect(stories.of(NAMESPACE, 'vm1')?.value).to.not.equal(undefined);
  });
});
