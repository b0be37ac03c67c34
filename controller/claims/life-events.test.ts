import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { claim, vm, vmReference } from '../../test/workload-objects.js';
import type { Action } from './action.js';
import { lifeEventsOf } from './life-events.js';
import { plan } from './plan.js';
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
