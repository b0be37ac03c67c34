import { expect } from 'chai';
import { type ClaimScenario, ALLOCATED_CONDITION, createClaim } from './testing/claim-observation.js';
import { claim, vmReference } from '../../test/objects/workload-objects.js';
import { claimEventSubjects } from '../../cluster/event-subjects.js';
import { claimEventsOf } from './status.js';
import type { DesiredClaimStatus } from './step.js';

const SERVED: DesiredClaimStatus = {
  ips: ['10.0.0.5/24'],
  allocated: { status: 'True', reason: 'SuccessfulAllocation', message: 'Leased from AddressPool blue' },
};
const FULL: DesiredClaimStatus = {
  ips: [],
  allocated: { status: 'False', reason: 'SubnetExhausted', message: 'Pool blue is full: 4 of 4 leased' },
};
const PENDING = { status: 'False', reason: 'ClaimInUse', message: 'stop the VM' } as const;

describe('the event for a new status of a claim', () => {
  const failed: ClaimScenario = { ips: [], conditions: [{ type: 'IPsAllocated', ...FULL.allocated }] };
  const served: ClaimScenario = { ips: ['10.0.0.5/24'], conditions: [ALLOCATED_CONDITION] };

  function check(name: string, given: ClaimScenario, desired: DesiredClaimStatus, expected: string[]): void {
    it(name, () => {
      const events = claimEventsOf(createClaim(given), desired);
      expect(events.map(({ type, reason, message }) => `${type} ${reason} ${message}`)).to.deep.equal(expected);
    });
  }

  check('is absent if the first allocation succeeds', {}, SERVED, []);
  check('says why the claim has no addresses', {}, FULL, [
    'Warning AddressesNotAllocated SubnetExhausted: Pool blue is full: 4 of 4 leased',
  ]);
  check('is not repeated while the reason is the same', failed, FULL, []);
  check('says that the claim has addresses after a refusal', failed, SERVED, [
    'Normal AddressesAllocated Allocated 10.0.0.5/24. Leased from AddressPool blue',
  ]);
  check("says that the claim's address has changed", { ...served, ips: ['10.0.0.9/24'] }, SERVED, [
    'Normal AddressesAllocated Changed from 10.0.0.9/24 to 10.0.0.5/24',
  ]);
  check('says why the request is not fulfilled', served, { ...SERVED, request: PENDING }, [
    'Warning RequestedAddressesPending ClaimInUse: stop the VM',
  ]);
});

describe('the objects of an event about a claim', () => {
  const subjectsOf = (...given: Parameters<typeof claim>) =>
    claimEventSubjects(claim(...given)).map(
      ({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name} ${metadata.uid ?? ''}`,
    );

  it('are the claim and its VM', () => {
    const [itself, owner] = subjectsOf({ owner: vmReference('vm-uid') });
    expect(itself).to.match(/^IPAMClaim vms\/vm1\.data /);
    expect(owner).to.equal('VirtualMachine vms/vm1 vm-uid');
  });

  it("include the VM that the claim's annotations name", () => {
    const [, owner] = subjectsOf({ owner: null, recordedOwner: { name: 'vm1', uid: 'vm-uid' } });
    expect(owner).to.equal('VirtualMachine vms/vm1 vm-uid');
  });

  it('are only the claim if it has no owner or one of another kind', () => {
    const other = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd', uid: 'd', controller: true };
    expect(subjectsOf({ owner: other, recordedOwner: null })).to.have.lengthOf(1);
    expect(subjectsOf({ owner: null, recordedOwner: null })).to.have.lengthOf(1);
  });
});
