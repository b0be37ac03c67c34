import { expect } from 'chai';
import { type ClaimScenario, ALLOCATED_CONDITION, createClaim } from './testing/claim-observation.js';
import { claim, vmReference } from '../../test/workload-objects.js';
import { claimEventSubjects } from '../../cluster/claim-event-subjects.js';
import { claimEventsOf } from './claim-events.js';
import type { DesiredClaimStatus } from './step.js';

const SERVED: DesiredClaimStatus = {
  ips: ['10.0.0.5/24'],
  allocated: { status: 'True', reason: 'SuccessfulAllocation', message: 'leased from AddressPool blue' },
};
const FULL: DesiredClaimStatus = {
  ips: [],
  allocated: { status: 'False', reason: 'SubnetExhausted', message: 'pool blue is full: 4 of 4 leased' },
};
const PENDING = { status: 'False' as const, reason: 'ClaimInUse', message: 'stop the VM' };

describe('what users are told of a claim', () => {
  const failed: ClaimScenario = { ips: [], conditions: [{ type: 'IPsAllocated', ...FULL.allocated }] };
  const served: ClaimScenario = { ips: ['10.0.0.5/24'], conditions: [ALLOCATED_CONDITION] };
  const rows: { name: string; given: ClaimScenario; verdict: DesiredClaimStatus; expect: string[] }[] = [
    { name: 'is nothing where all went well', given: {}, verdict: SERVED, expect: [] },
    {
      name: 'is why it has no addresses',
      given: {},
      verdict: FULL,
      expect: ['Warning AddressesNotAllocated SubnetExhausted: pool blue is full: 4 of 4 leased'],
    },
    { name: 'is not said twice', given: failed, verdict: FULL, expect: [] },
    {
      name: 'is that it has addresses at last',
      given: failed,
      verdict: SERVED,
      expect: ['Normal AddressesAllocated 10.0.0.5/24 leased from AddressPool blue'],
    },
    {
      name: 'is that it has moved',
      given: { ...served, ips: ['10.0.0.9/24'] },
      verdict: SERVED,
      expect: ['Normal AddressesAllocated 10.0.0.5/24 in place of 10.0.0.9/24'],
    },
    {
      name: 'is why its request is not met',
      given: served,
      verdict: { ...SERVED, request: PENDING },
      expect: ['Warning RequestedAddressesPending ClaimInUse: stop the VM'],
    },
  ];
  for (const { name, given, verdict, expect: expected } of rows) {
    it(name, () => {
      const notices = claimEventsOf(createClaim(given), verdict);
      expect(notices.map(({ type, reason, message }) => `${type} ${reason} ${message}`)).to.deep.equal(expected);
    });
  }
});

describe('who is told', () => {
  const told = (...given: Parameters<typeof claim>) =>
    claimEventSubjects(claim(...given)).map(
      ({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name} ${metadata.uid ?? ''}`,
    );

  it('is the claim and its VM', () => {
    const [itself, owner] = told({ owner: vmReference('vm-uid') });
    expect(itself).to.match(/^IPAMClaim vms\/vm1\.data /);
    expect(owner).to.equal('VirtualMachine vms/vm1 vm-uid');
  });

  it('is the VM that the claim remembers, too', () => {
    expect(told({ owner: null, recordedOwner: { name: 'vm1', uid: 'vm-uid' } })[1]).to.equal(
      'VirtualMachine vms/vm1 vm-uid',
    );
  });

  it('is the claim alone where others own it, or nobody', () => {
    const other = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd', uid: 'd', controller: true };
    expect(told({ owner: other, recordedOwner: null })).to.have.lengthOf(1);
    expect(told({ owner: null, recordedOwner: null })).to.have.lengthOf(1);
  });
});
