import { expect } from 'chai';
import type { Pod } from '../../api/pod.js';
import type { Client, ListOptions } from '../../kube/client.js';
import { launcher, vm } from '../../test/objects/workload-objects.js';
import { LauncherList, readLiveWorkload } from './live-workload.js';

describe('a workload that is read live', () => {
  it('is transformed like a cached one', async () => {
    const networks = Array.from({ length: 20_000 }, (_, index) => ({ name: `net${index}` }));
    const large = { ...vm({}), spec: { networks, template: { spec: { networks } } } };
    const client = { get: () => Promise.resolve(large) } as unknown as Pick<Client, 'get'>;
    const read = await readLiveWorkload('vms/vm1', client, { of: () => Promise.resolve([]) });
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
    list = new LauncherList(client);
  });

  async function begun(count: number): Promise<Pending> {
    while (client.lists.length < count) await Promise.resolve();
    return client.lists[count - 1]!;
  }

  it('requests the non-terminal launchers of one namespace', async () => {
    const launchers = list.of('vms/vm1');
    const { options, answer } = await begun(1);
    expect(options).to.deep.equal({
      namespace: 'vms',
      labelSelector: 'kubevirt.io=virt-launcher',
      fieldSelector: 'status.phase!=Succeeded,status.phase!=Failed',
      metadataOnly: true,
    });
    answer([one, other]);
    expect(await launchers).to.deep.equal([one]);
  });

  it('includes launchers without a VMI', async () => {
    const { ownerReferences: _none, ...metadata } = launcher([], { name: 'abandoned' }).metadata;
    const abandoned = { metadata };
    const launchers = list.of('vms/vm1');
    (await begun(1)).answer([other, abandoned]);
    expect(await launchers).to.deep.equal([abandoned]);
  });

  it('answers all calls during a list from one next list', async () => {
    const first = list.of('vms/vm1');
    await begun(1);
    const later = [list.of('vms/vm1'), list.of('vms/vm2'), list.of('vms/vm3')];
    client.lists[0]!.answer([]);
    expect(await first).to.deep.equal([]);
    (await begun(2)).answer([one, other]);
    expect(await Promise.all(later)).to.deep.equal([[one], [other], []]);
    expect(client.lists).to.have.lengthOf(2);
  });

  it('starts a third list for calls during the second', async () => {
    void list.of('vms/vm1');
    const second = list.of('vms/vm1');
    (await begun(1)).answer([]);
    await begun(2);
    const third = list.of('vms/vm1');
    client.lists[1]!.answer([]);
    expect(await second).to.deep.equal([]);
    (await begun(3)).answer([one]);
    expect(await third).to.deep.equal([one]);
  });

  it('requests a new list if none is running', async () => {
    const first = list.of('vms/vm1');
    (await begun(1)).answer([one]);
    await first;
    const second = list.of('vms/vm1');
    (await begun(2)).answer([]);
    expect(await second).to.deep.equal([]);
  });

  it('keeps the lists of namespaces apart', async () => {
    void list.of('vms/vm1');
    void list.of('other/vm1');
    expect((await begun(2)).options.namespace).to.equal('other');
  });

  it('reports a failed list only to the calls that requested it', async () => {
    const first = list.of('vms/vm1').catch((error: unknown) => String(error));
    const second = list.of('vms/vm1');
    (await begun(1)).fail(new Error('away'));
    expect(await first).to.equal('Error: away');
    (await begun(2)).answer([one]);
    expect(await second).to.deep.equal([one]);
  });
});
