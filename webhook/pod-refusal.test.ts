import { expect } from 'chai';
import { CLAIM_REFERENCE_KEY, DEFAULT_NETWORK_ANNOTATION, NETWORKS_ANNOTATION } from '../api/names.js';
import { type RawPod, makeClaim, makeLauncherPod, makeNad, makeVm, makeVmi } from '../test/objects/kubevirt-objects.js';
import { CLUSTER, DATA, VM1, elementWith, reviewCreate, type ReviewedCluster } from '../test/objects/pod-review.js';
import type { PodCheck, PodDecision } from './pod-decision.js';

function expectRefusal(verdict: PodDecision, check: PodCheck, ...parts: string[]): void {
  expect(verdict.allowed, 'allowed').to.be.false;
  if (verdict.allowed) return;
  expect(verdict.check).to.equal(check);
  for (const part of parts) expect(verdict.reason).to.include(part);
  expect(verdict.reason, 'a UID').not.to.match(/\b\w+-uid\b/);
}

describe('a launcher pod is refused', () => {
  const foreign = makeClaim('vm1', 'data', { ownerUid: 'other-uid' });
  /** It says that vm1 controls it: by its UID, under its own name. */
  const forged = makeVmi('evil', { data: 'blue' }, { vm: 'vm1-vm-uid' });
  const refusals: {
    name: string;
    given: ReviewedCluster;
    networks?: string;
    pod?: RawPod;
    check: PodCheck;
    parts: string[];
  }[] = [
    {
      name: 'while the claim of its name belongs to another owner',
      given: { ...CLUSTER, claims: [foreign] },
      check: 'claim-free',
      parts: ['IPAMClaim vms/vm1.data', 'belongs to another VirtualMachine vm1', 'starts when that claim is gone'],
    },
    {
      name: 'until a restored claim is assigned to its VM',
      given: { ...CLUSTER, claims: [makeClaim('vm1', 'data', { ownerUid: 'other-uid', orphaned: true })] },
      check: 'claim-free',
      parts: ['IPAMClaim vms/vm1.data was restored from a backup', 'when the controller has assigned'],
    },
    {
      name: 'while a claim without an owner is for another network',
      given: { ...CLUSTER, claims: [makeClaim('vm1', 'data', { ownerUid: null, network: 'green' })] },
      check: 'claim-free',
      parts: ['vms/vm1.data', 'has no owner and is for network "green"'],
    },
    {
      name: 'while a claim without an owner is being deleted',
      given: { ...CLUSTER, claims: [makeClaim('vm1', 'data', { ownerUid: null, terminating: true })] },
      check: 'claim-free',
      parts: ['vms/vm1.data', 'is being deleted'],
    },
    {
      name: 'with a reference to another claim than its own',
      given: CLUSTER,
      networks: elementWith({ [CLAIM_REFERENCE_KEY]: 'vm2.data' }),
      check: 'reference-expected',
      parts: ['element 0', `${DATA} on vms/blue`, '"vm2.data"', 'expected "vm1.data"'],
    },
    {
      name: 'with a reference on a network without the flag',
      given: { ...CLUSTER, claims: [], nads: [makeNad('blue', { persistent: false })] },
      networks: elementWith({ [CLAIM_REFERENCE_KEY]: 'vm1.data' }),
      check: 'reference-expected',
      parts: ['"vm1.data"', 'NetworkAttachmentDefinition vms/blue does not allow persistent addresses'],
    },
    {
      name: "with a reference on an interface that is not the VM's",
      given: CLUSTER,
      networks: elementWith({ interface: 'mine', [CLAIM_REFERENCE_KEY]: 'vm1.data' }),
      check: 'reference-expected',
      parts: ['VirtualMachineInstance vms/vm1 has no such network'],
    },
    {
      name: 'with addresses in addition to its reference',
      given: CLUSTER,
      networks: elementWith({ ips: ['10.0.0.9'], [CLAIM_REFERENCE_KEY]: 'vm1.data' }),
      check: 'addresses-or-claim',
      parts: ['element 0', '"ips"', '4.1.2.1.11', 'network.kubevirt.io/addresses'],
    },
    {
      name: 'with addresses in addition to the reference that it would get',
      given: { ...CLUSTER, claims: [] },
      networks: elementWith({ ips: [] }),
      check: 'addresses-or-claim',
      parts: ['vm1.data'],
    },
    {
      name: 'with an invalid annotation',
      given: CLUSTER,
      networks: '[{"name":5}]',
      check: 'annotation',
      parts: [NETWORKS_ANNOTATION, 'vms/virt-launcher-vm1-', '"name" is 5'],
    },
    {
      name: 'while its VMI does not exist',
      given: {},
      check: 'vmi-exists',
      parts: ['VirtualMachineInstance vms/vm1,', 'does not exist'],
    },
    {
      name: 'when its VMI has been replaced by another of the name',
      given: { vmis: [{ ...VM1, metadata: { ...VM1.metadata, uid: 'new-uid' } }] },
      check: 'vmi-exists',
      parts: ['VirtualMachineInstance vms/vm1,', 'another object has that name now: its UID differs'],
    },
    {
      name: 'while its VMI cannot be read',
      given: { unavailable: 'connection refused' },
      check: 'vmi-exists',
      parts: ['could not be read: connection refused'],
    },
    {
      name: 'while the VM of its VMI does not exist',
      given: { ...CLUSTER, vms: [] },
      check: 'vm-exists',
      parts: ['VirtualMachineInstance vms/vm1', 'VirtualMachine vms/vm1,', 'which does not exist'],
    },
    {
      name: 'while the VM of its VMI cannot be read',
      given: { ...CLUSTER, vms: [], unavailable: 'connection refused' },
      check: 'vm-exists',
      parts: ['could not be read: connection refused'],
    },
    {
      name: 'while the NAD of a network without a claim cannot be read',
      given: { ...CLUSTER, claims: [], nads: [], unavailable: 'connection refused' },
      check: 'claim-free',
      parts: ['NetworkAttachmentDefinition vms/blue could not be read: connection refused'],
    },
    {
      name: 'when its VMI names the UID of another VM, and there is none of its own name',
      given: { ...CLUSTER, vmis: [VM1, forged] },
      pod: makeLauncherPod(forged),
      check: 'vm-exists',
      parts: ['VirtualMachine vms/evil,', 'which does not exist'],
    },
    {
      name: 'when its VMI names the UID of another VM, and there is one of its own name',
      given: { ...CLUSTER, vmis: [VM1, forged], vms: [makeVm('vm1'), makeVm('evil')] },
      pod: makeLauncherPod(forged),
      check: 'vm-exists',
      parts: ['VirtualMachine vms/evil,', 'another object has that name now'],
    },
  ];
  for (const { name, given, networks: value, pod, check, parts } of refusals) {
    it(name, () => {
      expectRefusal(reviewCreate(given, value, pod), check, ...parts);
    });
  }

  const defaults: { name: string; value: string; check: PodCheck; parts: string[] }[] = [
    {
      name: 'that refers to a claim',
      value: elementWith({ [CLAIM_REFERENCE_KEY]: 'vm2.data' }),
      check: 'default-network',
      parts: [DEFAULT_NETWORK_ANNOTATION, '"vm2.data"', 'expected "vm1.default"'],
    },
    {
      name: 'that refers to a claim in a way that only Go parses',
      value: elementWith({ 'IPAM-claim-reference': 'vm2.data' }),
      check: 'annotation',
      parts: [DEFAULT_NETWORK_ANNOTATION, '"IPAM-claim-reference"'],
    },
  ];
  for (const { name, value, check, parts } of defaults) {
    it(`with a default network ${name}, whatever its other networks`, () => {
      const pod = makeLauncherPod(VM1);
      pod.metadata.annotations[DEFAULT_NETWORK_ANNOTATION] = value;
      expectRefusal(reviewCreate(CLUSTER, undefined, pod), check, ...parts);
      pod.metadata.annotations = { [DEFAULT_NETWORK_ANNOTATION]: value };
      expectRefusal(reviewCreate(CLUSTER, undefined, pod), check, ...parts);
    });
  }

  const impostors: { name: string; owners: unknown }[] = [
    { name: 'that has no owner', owners: [] },
    {
      name: 'that has its VMI as an owner but not as controller',
      owners: [{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: 'vm1', uid: 'vm1-vmi-uid' }],
    },
    {
      name: 'that an object of another API group controls',
      owners: [
        { apiVersion: 'evil.io/v1', kind: 'VirtualMachineInstance', name: 'vm1', uid: 'vm1-vmi-uid', controller: true },
      ],
    },
  ];
  for (const { name, owners } of impostors) {
    it(`if it is a pod with a launcher's labels ${name}`, () => {
      const pod = makeLauncherPod(VM1);
      pod.metadata.ownerReferences = owners;
      expectRefusal(
        reviewCreate(CLUSTER, undefined, pod),
        'controlled-by-vmi',
        'no VirtualMachineInstance controls it',
      );
    });
  }
});
