import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { Pod } from '../../api/pod.js';
import { claim, launcher, vm, vmReference, vmi } from '../../test/objects/workload-objects.js';
import type { Action } from './plan/action.js';
import { UnreportedChanges, lifeEventsOf } from './life-events.js';
import { plan } from './plan/plan.js';
import { observationOf } from './testing/workload-observation.js';

describe('the events of created and released claims', () => {
  const messagesOf = (actions: readonly Action[]) => lifeEventsOf(actions).map(({ message }) => message);
  const claimOf = (network: string, uid = 'vm-uid'): IPAMClaim =>
    claim({ name: `vm1.${network}`, vmNetwork: network, owner: vmReference(uid), deleting: true });

  it('name an owner that is gone, and not its UID', () => {
    const actions = plan(observationOf({ claims: [claimOf('data', 'secret-uid')] }));
    expect(messagesOf(actions)).to.deep.equal(['Released IPAMClaim vm1.data: VirtualMachine vm1 is gone']);
  });

  it('give the reason of each release, and name all claims that have it together', () => {
    const claims = ['data', 'extra', 'unplugged'].map((network) => claimOf(network));
    const actions = plan(observationOf({ vm: vm({ data: 'blue', extra: 'blue' }), claims }));
    expect(messagesOf(actions)).to.deep.equal([
      'Released IPAMClaim vm1.data, IPAMClaim vm1.extra: it was deleted, but its VM still exists: the controller creates a new claim',
      'Released IPAMClaim vm1.unplugged: its interface is unplugged',
    ]);
  });

  it('are separate for claims of an earlier VM of the same name', () => {
    const actions = plan(observationOf({ claims: [claimOf('data', 'one'), claimOf('extra', 'two')] }));
    expect(lifeEventsOf(actions).map(({ subject }) => subject.metadata.uid)).to.deep.equal(['one', 'two']);
  });

  it('quote names of networks, which users may write in any way', () => {
    const created: Action = { kind: 'create', claim: claim({ network: `a\n"${'x'.repeat(500)}` }), reason: '' };
    expect(messagesOf([created])).to.deep.equal([
      `Created IPAMClaim vms/vm1.data for network "a\\n\\"${'x'.repeat(77)}"`,
    ]);
  });
});

const KEY = 'vms/vm1';
/** The attachment of network `data` of the VM, as Multus reports it. */
const DATA = { name: 'vms/blue', interface: 'pod3a6eb0790f3', ips: ['10.0.0.5'] };

function withStatus(pod: Pod, status: unknown): Pod {
  const annotations = { ...pod.metadata.annotations, 'k8s.v1.cni.cncf.io/network-status': JSON.stringify(status) };
  return { ...pod, metadata: { ...pod.metadata, annotations } };
}

describe('the events of what happened to a VM', () => {
  let now: number;
  let unreported: UnreportedChanges;
  beforeEach(() => {
    now = 0;
    unreported = new UnreportedChanges({ now: () => now });
  });

  const served = (name: string, ...ips: string[]): IPAMClaim => ({ ...claimOf(name), status: { ips } });
  const claimOf = (name: string) => claim({ name: `vm1.${name}`, vmNetwork: name });
  const refused = (name: string): IPAMClaim => ({
    ...claimOf(name),
    status: { ips: [], conditions: [{ type: 'IPsAllocated', status: 'False', reason: 'SubnetExhausted' } as never] },
  });

  function take(claims: IPAMClaim[], launchers: Pod[] = []) {
    const { events, againAfterMs } = unreported.take(
      KEY,
      observationOf({ vm: vm({}), vmi: vmi({}), claims, launchers }),
    );
    const told = events.map(({ subject, reason, message }) => `${subject.kind} ${reason}: ${message}`);
    return againAfterMs === undefined ? told : againAfterMs;
  }

  function onNode(pod: Pod, ips: readonly string[], nodeName = 'node1'): Pod {
    return { ...withStatus(pod, [{ ...DATA, ips }]), spec: { nodeName } };
  }

  it('say once that the claims have addresses', () => {
    const after = served('data', '10.0.0.5/24', 'fd00::5/64');
    unreported.claimChanged({ type: 'changed', object: after, before: claimOf('data') });
    expect(take([after])).to.deep.equal([
      'VirtualMachine AddressesAllocated: Allocated 10.0.0.5/24 and fd00::5/64 to IPAMClaim vm1.data',
    ]);
    expect(take([after])).to.deep.equal([]);
  });

  it('wait ten seconds for the other claims, so that one event names all', () => {
    const [one, two] = [served('data', '10.0.0.5/24'), served('extra', '10.0.0.6/24')];
    unreported.claimChanged({ type: 'changed', object: one, before: claimOf('data') });
    expect(take([one, claimOf('extra')])).to.equal(10_000);
    now = 500;
    unreported.claimChanged({ type: 'changed', object: two, before: claimOf('extra') });
    expect(take([one, two])).to.deep.equal([
      'VirtualMachine AddressesAllocated: Allocated 10.0.0.5/24 to IPAMClaim vm1.data, 10.0.0.6/24 to IPAMClaim vm1.extra',
    ]);
  });

  it('do not wait for a claim that was refused, nor longer than ten seconds', () => {
    const one = served('data', '10.0.0.5/24');
    unreported.claimChanged({ type: 'changed', object: one, before: claimOf('data') });
    expect(take([one, refused('extra')])).to.have.lengthOf(1);
    unreported.claimChanged({ type: 'changed', object: one, before: refused('data') });
    now = 10_000;
    expect(take([one, claimOf('extra')])).to.have.lengthOf(1);
  });

  it('say on which node which pod uses the addresses, and do not repeat it if Multus writes again', () => {
    const pod = launcher([{ nad: 'blue', claim: 'vm1.data' }]);
    const running = onNode(pod, ['10.0.0.5']);
    unreported.launcherChanged({ type: 'changed', object: running, before: pod });
    expect(take([served('data', '10.0.0.5/24')], [running])).to.deep.equal([
      'VirtualMachine AddressesInUse: Pod virt-launcher-vm1-abcde on node node1 uses 10.0.0.5 of IPAMClaim vm1.data',
    ]);
    const again = onNode(pod, ['10.0.0.5']);
    const { annotations } = again.metadata;
    again.metadata.annotations = {
      ...annotations,
      'k8s.v1.cni.cncf.io/network-status': `${annotations?.['k8s.v1.cni.cncf.io/network-status'] ?? ''} `,
    };
    unreported.launcherChanged({ type: 'changed', object: again, before: running });
    expect(take([served('data', '10.0.0.5/24')], [again])).to.deep.equal([]);
  });

  it('say nothing about a launcher whose claim has no addresses', () => {
    const pod = launcher([{ nad: 'blue', claim: 'vm1.data' }]);
    const running = onNode(pod, ['10.0.0.5']);
    unreported.launcherChanged({ type: 'changed', object: running, before: pod });
    expect(take([claimOf('data')], [running])).to.deep.equal([]);
  });

  it('show no text as an address that a user wrote into the annotation', () => {
    const pod = launcher([{ nad: 'blue', claim: 'vm1.data' }]);
    const running = onNode(pod, ['10.9.9.9', '10.0.0.5\n\u001b[31mWarning: call 555', 'fd00::5']);
    unreported.launcherChanged({ type: 'changed', object: running, before: pod });
    expect(take([served('data', '10.0.0.5/24', 'fd00::5/64')], [running])).to.deep.equal([
      'VirtualMachine AddressesInUse: Pod virt-launcher-vm1-abcde on node node1 uses fd00::5 of IPAMClaim vm1.data',
    ]);
  });

  it('say that the address was allocated before they say that it is used', () => {
    const pod = launcher([{ nad: 'blue', claim: 'vm1.data' }]);
    const running = onNode(pod, ['10.0.0.5']);
    const after = served('data', '10.0.0.5/24');
    unreported.claimChanged({ type: 'changed', object: after, before: claimOf('data') });
    unreported.launcherChanged({ type: 'changed', object: running, before: pod });
    expect((take([after, claimOf('extra')], [running]) as string[]).map((text) => text.split(' ')[1])).to.deep.equal([
      'AddressesAllocated:',
      'AddressesInUse:',
    ]);
  });

  it('are not repeated when a new leader lists everything, and not for addresses that only changed', () => {
    const after = served('data', '10.0.0.5/24');
    unreported.claimChanged({ type: 'added', object: after });
    unreported.claimChanged({ type: 'changed', object: after, before: served('data', '10.0.0.4/24') });
    unreported.launcherChanged({ type: 'added', object: onNode(launcher([{ nad: 'blue' }]), ['10.0.0.5']) });
    expect(take([after], [onNode(launcher([{ nad: 'blue' }]), ['10.0.0.5'])])).to.deep.equal([]);
  });

  it('name at most eight claims', () => {
    const all = Array.from({ length: 10 }, (_, n) => served(`n${n}`, `10.0.0.${n + 1}/24`));
    unreported.claimChanged({ type: 'changed', object: all[0]!, before: claimOf('n0') });
    expect(take(all)).to.match(/10\.0\.0\.8\/24 to IPAMClaim vm1\.n7 and 2 more$/);
  });

  it('are not repeated for the claims of a launcher because an interface without a claim is plugged in', () => {
    const before = withStatus(launcher([{ nad: 'blue', claim: 'vm1.data' }]), [DATA]);
    const after = withStatus(before, [DATA, { name: 'vms/red', interface: 'net7', ips: ['10.7.0.7'] }]);
    unreported.launcherChanged({ type: 'changed', object: after, before });
    expect(take([served('data', '10.0.0.5/24')], [after])).to.deep.equal([]);
  });

  it('are not recorded for a launcher that was removed meanwhile', () => {
    const pod = launcher([{ nad: 'blue', claim: 'vm1.data' }]);
    const running = onNode(pod, ['10.0.0.5']);
    unreported.launcherChanged({ type: 'changed', object: running, before: pod });
    unreported.launcherChanged({ type: 'removed', object: running, before: running });
    expect(take([served('data', '10.0.0.5/24')], [running])).to.deep.equal([]);
  });

  it('wait for at most 4096 launchers', () => {
    const pods = Array.from({ length: 4_097 }, (_, n) => launcher([{ nad: 'blue' }], { name: `launcher-${n}` }));
    for (const pod of pods) {
      unreported.launcherChanged({ type: 'changed', object: onNode(pod, ['10.0.0.5']), before: pod });
    }
    const [first, second] = pods.map((pod) => onNode(pod, ['10.0.0.5']));
    expect(take([served('data', '10.0.0.5/24')], [first!])).to.deep.equal([]);
    expect(take([served('data', '10.0.0.5/24')], [second!])).to.have.lengthOf(1);
  });

  for (const [pods, references] of [
    ['that no VMI controls', []],
    ['of workloads that are not reconciled yet', undefined],
  ] as const) {
    it(`need no memory for the annotations of pods ${pods}`, () => {
      setFlagsFromString('--expose-gc');
      const gc = runInNewContext('gc') as () => void;
      const usedHeap = () => (gc(), getHeapStatistics().used_heap_size);
      const before = usedHeap();
      for (let n = 0; n < 100; n++) {
        const pod = launcher([], { name: `launcher-${n}` });
        if (references !== undefined) pod.metadata.ownerReferences = [...references];
        // of its own, as if the API server had sent it
        const ips = [`${n}${'x'.repeat(200_000)}`];
        const big = { name: 'vms/blue', interface: 'net1', ips };
        const change = {
          before: withStatus(pod, [big]),
          object: withStatus(pod, [DATA, { ...DATA, interface: ips[0] }]),
        };
        unreported.launcherChanged({ type: 'changed', ...change });
      }
      const grown = usedHeap() - before;
      // the garbage collector may not free what is still in use
      expect(take([])).to.deep.equal([]);
      expect(grown).to.be.below(5_000_000);
    });
  }

  it('are forgotten with the pod that they are about', () => {
    const pod = launcher([{ nad: 'blue', claim: 'vm1.data' }]);
    unreported.launcherChanged({ type: 'changed', object: onNode(pod, ['10.0.0.5']), before: pod });
    expect(take([served('data', '10.0.0.5/24')])).to.deep.equal([]);
  });
});
