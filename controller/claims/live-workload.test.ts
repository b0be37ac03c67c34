import { expect } from 'chai';
import { splitKey } from '../../api/meta.js';
import type { Pod } from '../../api/pod.js';
import type { Client, ListOptions } from '../../kube/client.js';
import { Cache } from '../../kube/informers/cache.js';
import { BY_WORKLOAD } from '../../cluster/watch-specs.js';
import { BY_CLAIM } from '../caches.js';
import { launcher, vm } from '../../test/objects/workload-objects.js';
import { LauncherList, readLiveWorkload } from './live-workload.js';

describe('a workload that is read live', () => {
  it('is transformed like a cached one', async () => {
    const networks = Array.from({ length: 20_000 }, (_, index) => ({ name: `net${index}` }));
    const large = { ...vm({}), spec: { networks, template: { spec: { networks } } } };
    const client = { get: () => Promise.resolve(large) } as unknown as Pick<Client, 'get'>;
    const read = await readLiveWorkload('vms/vm1', client, { of: () => Promise.resolve(new Cache()) });
    expect(read.vm?.spec?.template?.spec?.networks).to.have.length(256);
    expect(read.vmi?.spec?.networks).to.have.length(256);
  });
});

interface Pending {
  options: ListOptions;
  answer: (pods: Pod[]) => void;
  fail: (error: Error) => void;
}

/** A client whose lists are answered by hand. */
class SlowClient {
  readonly lists: Pending[] = [];

  list(_resource: unknown, options: ListOptions): Promise<never> {
    return new Promise((resolve, reject) => {
      const answer = (items: Pod[]) => resolve({ items, resourceVersion: '1' } as never);
      this.lists.push({ options, answer, fail: reject });
    });
  }
}

const one = launcher([], { name: 'one' });
const other = launcher([], { name: 'other', vmiName: 'vm2' });

describe('the list of launchers', () => {
  let client: SlowClient;
  let list: LauncherList;

  beforeEach(() => {
    client = new SlowClient();
    list = new LauncherList(client, { now: () => 0 });
  });

  /** The names of the launchers of a workload. */
  async function namesOf(workload: string): Promise<string[]> {
    const launchers = await list.of(splitKey(workload).namespace);
    return launchers.byIndex(BY_WORKLOAD, workload).map(({ metadata }) => metadata.name);
  }

  async function begun(count: number): Promise<Pending> {
    while (client.lists.length < count) await new Promise(setImmediate);
    return client.lists[count - 1]!;
  }

  it('requests the non-terminal launchers of one namespace', async () => {
    const launchers = namesOf('vms/vm1');
    const { options, answer } = await begun(1);
    expect(options).to.deep.equal({
      namespace: 'vms',
      labelSelector: 'kubevirt.io=virt-launcher',
      fieldSelector: 'status.phase!=Succeeded,status.phase!=Failed',
      metadataOnly: true,
      signal: undefined,
    });
    answer([one, other]);
    expect(await launchers).to.deep.equal(['one']);
  });

  it('includes launchers without a VMI', async () => {
    const { ownerReferences: _none, ...metadata } = launcher([{ nad: 'blue', claim: 'vm1.blue' }], {
      name: 'abandoned',
    }).metadata;
    const launchers = list.of('vms');
    (await begun(1)).answer([other, { metadata }]);
    expect((await launchers).byIndex(BY_CLAIM, 'vms/vm1.blue').map((pod) => pod.metadata.name)).to.deep.equal([
      'abandoned',
    ]);
  });

  it('answers all calls during a list from one next list', async () => {
    const first = namesOf('vms/vm1');
    await begun(1);
    const later = [namesOf('vms/vm1'), namesOf('vms/vm2'), namesOf('vms/vm3')];
    client.lists[0]!.answer([]);
    expect(await first).to.deep.equal([]);
    (await begun(2)).answer([one, other]);
    expect(await Promise.all(later)).to.deep.equal([['one'], ['other'], []]);
    expect(client.lists).to.have.lengthOf(2);
  });

  it('starts a third list for calls during the second', async () => {
    void namesOf('vms/vm1');
    const second = namesOf('vms/vm1');
    (await begun(1)).answer([]);
    await begun(2);
    const third = namesOf('vms/vm1');
    client.lists[1]!.answer([]);
    expect(await second).to.deep.equal([]);
    (await begun(3)).answer([one]);
    expect(await third).to.deep.equal(['one']);
  });

  it('requests a new list if none is running', async () => {
    const first = namesOf('vms/vm1');
    (await begun(1)).answer([one]);
    await first;
    const second = namesOf('vms/vm1');
    (await begun(2)).answer([]);
    expect(await second).to.deep.equal([]);
  });

  it('keeps the lists of namespaces apart', async () => {
    void namesOf('vms/vm1');
    void namesOf('other/vm1');
    expect((await begun(2)).options.namespace).to.equal('other');
  });

  it('reports a failed list only to the calls that requested it', async () => {
    const first = namesOf('vms/vm1').catch((error: unknown) => String(error));
    const second = namesOf('vms/vm1');
    (await begun(1)).fail(new Error('away'));
    expect(await first).to.equal('Error: away');
    (await begun(2)).answer([one]);
    expect(await second).to.deep.equal(['one']);
  });
});
