import { expect } from 'chai';
import type { KubeObject } from '../../api/meta.js';
import { NAMESPACE, claim } from '../../test/objects/workload-objects.js';
import type { ClusterWatch } from './cluster-watch.js';
import type { ServerView, VmView, VmsView } from './protocol.js';
import { buildView } from './views.js';
import { VmTable } from './vm-table.js';

/** Objects that can be found by name only. */
function kindOf(...objects: readonly KubeObject[]) {
  const list = () => {
    throw new Error('all objects of a kind are looked at');
  };
  const get = (key: string) => objects.find(({ metadata }) => key === `${metadata.namespace}/${metadata.name}`);
  return { cache: { list, get }, status: {} };
}

function viewOf(name: string, cluster: object, view = 'vm'): VmView & ServerView {
  const none = { vms: kindOf(), vmis: kindOf(), claimsOfVm: () => [], leasesOfOwner: () => [], eventsOf: () => [] };
  const request = { view, namespace: NAMESPACE, name, query: '', sort: '', at: '', bits: undefined };
  return buildView(request, {
    cluster: { parts: () => [], ...none, ...cluster } as unknown as ClusterWatch,
    ...{ history: {} as never, stories: { of: () => undefined }, wall: () => 0 },
    ...{ findings: { value: undefined, failure: undefined }, leaders: { value: [] } },
  }) as VmView & ServerView;
}

describe('The list of VMs', () => {
  const [first, second] = ['vm1', 'vm2'].map((name) => ({
    metadata: { namespace: NAMESPACE, name },
    status: 'Running',
  }));
  const objects = [second!, first!];
  const sources = { vms: kindOf(...objects), vmis: kindOf(), claimsOfVm: () => [claim({ ips: ['10.0.0.5/24'] })] };

  it('looks at the objects of a VM when one of them changes, and at none for a view', () => {
    const vmTable = new VmTable(sources as unknown as ClusterWatch);
    for (const { metadata } of objects) vmTable.changed(metadata);
    const view = viewOf('', { vmTable, vms: {}, vmis: {} }, 'vms') as unknown as VmsView;
    expect(view.vms.rows.map(({ name, addresses }) => [name, addresses[0]])).to.deep.equal([
      ['vm1', '10.0.0.5/24'],
      ['vm2', '10.0.0.5/24'],
    ]);
  });

  it('makes the row of a VM once if many of its claims come at the same time, and before anybody looks', async () => {
    let made = 0;
    const claimsOfVm = () => ((made += 1), sources.claimsOfVm());
    const vmTable = new VmTable({ ...sources, claimsOfVm } as unknown as ClusterWatch);
    for (let claims = 0; claims < 1_000; claims += 1) vmTable.changed(first!.metadata);
    await Promise.resolve();
    expect(made).to.equal(1);
    expect(vmTable.rows()).to.have.length(1);
    vmTable.changed(first!.metadata);
    expect(vmTable.rows()).to.have.length(1);
    expect(made).to.equal(2);
  });

  it('has no VM of which all objects are gone', () => {
    const vms = kindOf(first!);
    const vmTable = new VmTable({ ...sources, vms, claimsOfVm: () => [] } as unknown as ClusterWatch);
    for (const { metadata } of objects) vmTable.changed(metadata);
    expect(vmTable.rows().map(({ name }) => name)).to.deep.equal(['vm1']);
    vms.cache.get = () => undefined;
    vmTable.changed(first!.metadata);
    expect(vmTable.rows()).to.deep.equal([]);
  });
});

describe('The view of a VM', () => {
  it('looks at the objects of this VM only, however many the cluster has', () => {
    const vmi = { metadata: { namespace: NAMESPACE, name: 'vm1' }, phase: 'Running', node: 'node-1', macs: [] };
    const cluster = {
      vms: kindOf({ metadata: { namespace: NAMESPACE, name: 'vm1' }, status: '' } as KubeObject),
      vmis: kindOf(vmi),
      claimsOfVm: (key: string) => (key === `${NAMESPACE}/vm1` ? [claim({ ips: ['10.0.0.5/24'] })] : []),
    };
    expect(viewOf('vm1', cluster).vm).to.deep.equal({
      ...{ namespace: NAMESPACE, name: 'vm1', status: 'Running', node: 'node-1' },
      ...{ addresses: ['10.0.0.5/24'], problem: '' },
    });
    expect(viewOf('vm2', cluster).vm).to.equal(undefined);
  });

  for (const [name, other] of [
    ['web', 'web-db'],
    ['w'.repeat(50), 'w'.repeat(43)],
  ] as const)
    it(`has the events of the launchers of VM ${name}, and none of those of VM ${other}`, () => {
      const launcherOf = (vm: string) => `${`virt-launcher-${vm}-`.slice(0, 58)}x7k2p`;
      const events = [name, other].map(launcherOf).map((name) => {
        const row = { type: 'Warning', reason: 'FailedCreatePodSandBox', message: '', count: 1, last: '' };
        return { object: { kind: 'Pod', name }, row: { ...row, object: `Pod ${name}` } };
      });
      const { rows } = viewOf(name, { eventsOf: () => events }).events;
      expect(rows.map(({ object }) => object)).to.deep.equal([`Pod ${launcherOf(name)}`]);
    });
});
