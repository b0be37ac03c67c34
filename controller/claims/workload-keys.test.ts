import { expect } from 'chai';
import type { KubeObject } from '../../api/meta.js';
import type { ObjectChange } from '../../kube/informers/informer.js';
import {
  claim,
  claimOfIpamExtensions,
  launcher,
  nad,
  vm,
  vmReference,
  vmi,
} from '../../test/objects/workload-objects.js';
import { transformNad } from '../../cluster/transforms.js';
import { cachesOf } from './testing/workload-observation.js';
import { allKeys, keysOfClaim, keysOfLauncher, keysOfNad, keysOfNamespace } from './workload-keys.js';
import { BlockedWorkloads } from './waiting-workloads.js';

function added<S extends KubeObject>(object: S): ObjectChange<S> {
  return { type: 'added', object };
}

function changed<S extends KubeObject>(before: S, object: S): ObjectChange<S> {
  return { type: 'changed', object, before };
}

describe('the workloads that a change concerns', () => {
  const nothing = cachesOf({});
  const primary = (namespace: string) => transformNad(nad('udn', { role: 'primary' }, namespace));

  it('include the VMI that controls a changed launcher', () => {
    expect(keysOfLauncher(added(launcher([])), nothing.claims)).to.deep.equal(['vms/vm1']);
  });

  it('of an orphaned launcher are those whose claims it refers to, and its former VMI', () => {
    const before = launcher(
      [
        { nad: 'blue', claim: 'vm1.data' },
        { nad: 'blue', network: 'extra', claim: 'unknown' },
      ],
      { vmiName: 'vm0' },
    );
    const { ownerReferences: _none, ...metadata } = before.metadata;
    const { claims } = cachesOf({ claims: [claim()] });
    expect(keysOfLauncher(changed(before, { ...before, metadata }), claims)).to.deep.equal(['vms/vm0', 'vms/vm1']);
  });

  it('of a changed claim are its old and its new owner', () => {
    const other = claim({ owner: vmReference('u2', 'vm2') });
    expect(keysOfClaim(changed(claim(), other), new BlockedWorkloads())).to.deep.equal(['vms/vm1', 'vms/vm2']);
  });

  it('of a claim without an owner but with our finalizer follow from its label', () => {
    expect(keysOfClaim(added(claimOfIpamExtensions({ owner: null })), new BlockedWorkloads())).to.deep.equal([
      'vms/vm1',
    ]);
    expect(
      keysOfClaim(added(claimOfIpamExtensions({ owner: null, finalizers: [] })), new BlockedWorkloads()),
    ).to.deep.equal([]);
  });

  it('of a changed claim include those that wait for its name', () => {
    const waiters = new BlockedWorkloads();
    waiters.set('vms/vm3', ['vms/vm1.data', 'vms/vm1.extra']);
    waiters.set('vms/vm4', ['vms/vm1.data']);
    waiters.set('vms/vm3', ['vms/vm1.extra']);
    const foreign = claim({ owner: null, label: null, finalizers: [] });
    expect(keysOfClaim({ type: 'removed', object: foreign, before: foreign }, waiters)).to.deep.equal(['vms/vm4']);
  });

  it('of a NAD are the VMs and VMIs that name it', () => {
    const caches = cachesOf({ vm: vm({ data: 'blue', extra: 'blue' }), vmi: vmi({ data: 'green' }, { name: 'vm2' }) });
    const keysOf = (...given: Parameters<typeof nad>) => keysOfNad(added(transformNad(nad(...given))), caches, true);
    expect(keysOf('blue', {})).to.deep.equal(['vms/vm1']);
    expect(keysOf('green', {})).to.deep.equal(['vms/vm2']);
    expect(keysOf('blue', {}, 'elsewhere')).to.deep.equal([]);
  });

  it('of a NAD whose labels change are none', () => {
    const caches = cachesOf({ vm: vm({ data: 'blue' }) });
    const [before, after] = ['1', '2'].map((resourceVersion) => {
      const blue = nad('blue', { name: 'blue' });
      const labels = { written: resourceVersion };
      return transformNad({ ...blue, metadata: { ...blue.metadata, labels, resourceVersion } });
    });
    expect(keysOfNad(changed(before!, after!), caches, true)).to.deep.equal([]);
    const other = transformNad(nad('blue', { name: 'blue', allowPersistentIPs: true }));
    expect(keysOfNad(changed(after!, other), caches, true)).to.deep.equal(['vms/vm1']);
  });

  it('of a NAD that is or was that of a primary network are all VMs and VMIs of its namespace', () => {
    const caches = cachesOf({ vm: vm({}), vmi: vmi({}, { name: 'vm2' }), isPrimary: true });
    expect(keysOfNad(added(primary('vms')), caches, true)).to.deep.equal(['vms/vm1', 'vms/vm2']);
    const change = changed(primary('vms'), transformNad(nad('udn', {})));
    expect(keysOfNad(change, caches, true)).to.deep.equal(['vms/vm1', 'vms/vm2']);
    expect(keysOfNad(added(primary('elsewhere')), caches, true)).to.deep.equal([]);
  });

  it('of a NAD of a primary network that Holdfast does not serve are none', () => {
    const workloads = { vm: vm({}), vmi: vmi({}, { name: 'vm2' }) };
    expect(keysOfNad(added(primary('vms')), cachesOf({ ...workloads, isPrimary: true }), false)).to.deep.equal([]);
    expect(keysOfNad(added(primary('vms')), cachesOf(workloads), true)).to.deep.equal([]);
  });

  it('of a namespace that opts in or out are all of its VMs and VMIs', () => {
    const caches = cachesOf({ vm: vm({}), vmi: vmi({}) });
    const before = { metadata: { name: 'vms' } };
    const after = { metadata: { name: 'vms', labels: { 'ipam.holdfast.dev/persistent-ips': 'disabled' } } };
    expect(keysOfNamespace(changed(before, after), caches)).to.deep.equal(['vms/vm1', 'vms/vm1']);
    expect(keysOfNamespace(changed(after, { ...after }), caches)).to.deep.equal([]);
  });

  it('of a namespace that is being deleted include those of which only a claim is left', () => {
    const before = { metadata: { name: 'vms' } };
    const after = { metadata: { name: 'vms', deletionTimestamp: '2026-01-01T00:00:00Z' } };
    const caches = cachesOf({ claims: [claim({ owner: vmReference('u3', 'vm3') })] });
    expect(keysOfNamespace(changed(before, after), caches)).to.deep.equal(['vms/vm3']);
  });

  it('of the whole cluster are every VM, VMI and owner of a claim', () => {
    const caches = cachesOf({
      ...{ vm: vm({}), vmi: vmi({}, { name: 'vm2' }) },
      claims: [claim({ owner: vmReference('u3', 'vm3') })],
    });
    expect(keysOfAll(caches)).to.have.members(['vms/vm1', 'vms/vm2', 'vms/vm3']);
  });

  it('of the whole cluster begin with those that have no claim, which may be new', () => {
    const others = [vm({}, { name: 'new1' }), vm({}, { name: 'new2' })];
    const caches = cachesOf({ vm: vm({}), otherVms: others, claims: [claim()] });
    expect(keysOfAll(caches)).to.deep.equal(['vms/new1', 'vms/new2', 'vms/vm1']);
  });
});

function keysOfAll(caches: Parameters<typeof allKeys>[0]): string[] {
  return [...new Set([...allKeys(caches)].filter((key) => key !== undefined))];
}
