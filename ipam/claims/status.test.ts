import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { conditionMessage, statusChanges, statusPatch } from './status.js';
import type { DesiredClaimStatus } from './step.js';
import { ALLOCATED_CONDITION, type ClaimScenario, createClaim } from './testing/claim-observation.js';

const NOW = Date.UTC(2026, 0, 5);
const SERVED: DesiredClaimStatus = {
  ips: ['10.0.0.5/24'],
  allocated: { status: 'True', reason: 'SuccessfulAllocation', message: 'Leased from AddressPool blue' },
};
const full = (counts: string): DesiredClaimStatus => ({
  ips: [],
  allocated: { status: 'False', reason: 'SubnetExhausted', message: `Pool blue is full: ${counts}` },
});

describe('the status of a claim', () => {
  const claim = (given: ClaimScenario): IPAMClaim => ({
    ...createClaim(given),
    metadata: { ...createClaim(given).metadata, generation: 3 },
  });
  const FULL: ClaimScenario = { ips: [], conditions: [{ type: 'IPsAllocated', ...full('4 of 4 leased').allocated }] };
  const patched = (given: ClaimScenario, desired: DesiredClaimStatus) =>
    statusPatch(claim(given), desired, NOW) as { metadata: object; status: IPAMClaim['status'] };

  it('is written with the version of the claim that was read as its precondition', () => {
    expect(patched({}, SERVED).metadata).to.deep.equal({ uid: 'c1', resourceVersion: '7' });
  });

  it('contains the addresses and the transition time of the condition', () => {
    const written = { lastTransitionTime: '2026-01-05T00:00:00Z', observedGeneration: 3 };
    expect(patched({}, SERVED).status).to.deep.equal({
      ips: ['10.0.0.5/24'],
      conditions: [{ type: 'IPsAllocated', ...SERVED.allocated, ...written }],
    });
    expect(statusChanges(claim({}), full('4 of 4 leased'))).to.deep.equal(['ips', 'IPsAllocated']);
  });

  it('keeps the transition time if only the reason changes', () => {
    const before: ClaimScenario = {
      ips: [],
      conditions: [{ type: 'IPsAllocated', status: 'False', reason: 'InternalError', message: '' }],
    };
    const [condition] = patched(before, full('4 of 4 leased')).status?.conditions ?? [];
    expect(condition).to.include({ reason: 'SubnetExhausted', lastTransitionTime: '2025-12-31T00:00:00Z' });
  });

  it('is not written again if only the counts of a full pool change', () => {
    expect(statusChanges(claim(FULL), full('3 of 4 leased, 1 cooling down'))).to.deep.equal([]);
    expect(statusChanges(claim(FULL), { ...SERVED, ips: [] })).to.deep.equal(['IPsAllocated']);
  });

  it('shows new counts of a full pool when they may be updated, and keeps the transition time', () => {
    const after = full('4 of 4 leased, 2 of them by stopped VMs');
    expect(statusChanges(claim(FULL), after, () => true)).to.deep.equal(['IPsAllocated']);
    expect(statusChanges(claim(FULL), full('4 of 4 leased'), () => true)).to.deep.equal([]);
    const [condition] = patched(FULL, after).status?.conditions ?? [];
    expect(condition).to.include({ ...after.allocated, lastTransitionTime: '2025-12-31T00:00:00Z' });
  });

  it('keeps the conditions of other writers, and drops conditions that no longer apply', () => {
    const before: ClaimScenario = {
      ips: ['10.0.0.5/24'],
      conditions: [{ type: 'Theirs' }, ALLOCATED_CONDITION, { type: 'RequestHonoured', status: 'False' }],
    };
    expect(statusChanges(claim(before), SERVED)).to.deep.equal(['RequestHonoured']);
    const types = patched(before, SERVED).status?.conditions?.map(({ type }) => type);
    expect(types).to.deep.equal(['Theirs', 'IPsAllocated']);
  });

  it('names the owner pod, or removes its name', () => {
    const before: ClaimScenario = { ips: ['10.0.0.5/24'], conditions: [ALLOCATED_CONDITION], ownerPod: 'p1' };
    expect(statusChanges(claim(before), SERVED)).to.deep.equal(['ownerPod']);
    expect(patched(before, SERVED).status).to.have.property('ownerPod', null);
    expect(patched(before, { ...SERVED, ownerPod: 'p2' }).status?.ownerPod).to.deep.equal({ name: 'p2' });
    expect(patched(before, { ...SERVED, ownerPod: 'p1' }).status).to.not.have.property('ownerPod');
  });

  it('reports that no pod gets the addresses for as long as that is so', () => {
    const launchers = { status: 'False', reason: 'KubeVirtNamespaceUnknown', message: 'it is wrong' } as const;
    const before: ClaimScenario = { ips: ['10.0.0.5/24'], conditions: [ALLOCATED_CONDITION] };
    expect(statusChanges(claim(before), { ...SERVED, launchers })).to.deep.equal(['LaunchersVerified']);
    const { status } = patched(before, { ...SERVED, launchers });
    expect(status?.conditions?.map(({ type, status }) => `${type} ${status}`)).to.deep.equal([
      'IPsAllocated True',
      'LaunchersVerified False',
    ]);
    const reported: ClaimScenario = {
      ...before,
      conditions: [ALLOCATED_CONDITION, { type: 'LaunchersVerified', ...launchers }],
    };
    expect(statusChanges(claim(reported), { ...SERVED, launchers })).to.deep.equal([]);
    expect(statusChanges(claim(reported), SERVED)).to.deep.equal(['LaunchersVerified']);
    expect(patched(reported, SERVED).status?.conditions).to.have.length(1);
  });

  it('keeps the end of a cool-down that an earlier process wrote, because each counts by its own clock', () => {
    const until = (time: string) => ({
      status: 'False' as const,
      reason: 'IPAddressConflict' as const,
      message: `10.0.0.5 cools down until ${time}`,
    });
    const before: ClaimScenario = {
      ips: [],
      conditions: [{ type: 'IPsAllocated', ...until('2026-01-01T00:01:00.000Z') }],
    };
    const desired = { ips: [], allocated: until('2026-01-01T00:01:01.500Z') };
    expect(statusChanges(claim(before), desired)).to.deep.equal([]);
    const other = { ...desired.allocated, message: '10.0.0.6 cools down until 2026-01-01T00:01:00.000Z' };
    expect(statusChanges(claim(before), { ...desired, allocated: other })).to.deep.equal(['IPsAllocated']);
  });
});

describe('the message of a condition', () => {
  for (const [from, to] of [
    ['pool blue is full', 'Pool blue is full'],
    ['NAD vms/blue does not exist', 'NAD vms/blue does not exist'],
  ] as const)
    it(`begins with a capital: ${to}`, () => expect(conditionMessage(from)).to.equal(to));

  for (const text of [
    'fd00::5 is allocated to IPAMClaim vms/a',
    'ipam.holdfast.dev/requested-addresses: the list is empty',
    'status.ips: "x" is not an IP address',
  ])
    it(`keeps a field or address at its beginning: ${text}`, () => expect(conditionMessage(text)).to.equal(text));
});
