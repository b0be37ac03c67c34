import jsonpatch, { type Operation } from 'fast-json-patch';
import { expect } from 'chai';
import { DEFAULT_NETWORK_ANNOTATION, NETWORKS_ANNOTATION, PRIMARY_CLAIM_ANNOTATION } from '../api/names.js';
import { claimName } from '../api/ipam-claim.js';
import { makeClaim, makeLauncherPod, makeNad, makeVm, makeVmi } from '../test/objects/kubevirt-objects.js';
import { reviewCreate } from '../test/objects/pod-review.js';
import { claim, claimOfIpamExtensions, nad, vmiReference } from '../test/objects/workload-objects.js';
import type { PodCheck, PodDecision } from './pod-decision.js';
import {
  type Given,
  CLAIMED,
  MAC,
  OWNER,
  SUBNETS,
  UDN,
  VM1,
  WITH_MAC,
  annotationsAfter,
  create,
  launcherOf,
  requesting,
} from './testing/primary-review.js';

const withoutPodNetwork = { ...VM1, spec: { domain: { devices: { autoattachPodInterface: false } } } };

function expectRefusal(verdict: PodDecision, check: PodCheck, ...parts: string[]): void {
  if (verdict.allowed) throw new Error('allowed');
  expect(verdict.check).to.equal(check);
  for (const part of parts) expect(verdict.reason).to.include(part);
  expect(verdict.reason, 'a UID').not.to.match(/\b\w+-uid\b/);
}

describe('a launcher in a namespace with a primary network', () => {
  const creations: { name: string; given: Given; annotations: Record<string, string> }[] = [
    { name: 'gets the claim of its pod network', given: {}, annotations: CLAIMED },
    {
      name: 'gets the MAC address that its VM requests',
      given: { vmi: requesting(undefined, MAC) },
      annotations: { ...CLAIMED, [DEFAULT_NETWORK_ANNOTATION]: WITH_MAC },
    },
    {
      name: 'gets the MAC address and the addresses that its VM requests',
      given: { vmi: requesting({ default: ['192.168.1.10', 'fd12:1234::200'] }, MAC) },
      annotations: {
        ...CLAIMED,
        [DEFAULT_NETWORK_ANNOTATION]:
          '[{"name":"default","namespace":"ovn","ips":["192.168.1.10/16","fd12:1234::200/64"],' +
          `"mac":"${MAC}","ipam-claim-reference":"vm1.default"}]`,
      },
    },
    {
      name: 'keeps what kubevirt/ipam-extensions set before, but for the name of the claim',
      given: {
        vmi: {
          ...VM1,
          spec: {
            networks: [{ name: 'Pod_Net', pod: {} }],
            domain: { devices: { interfaces: [{ name: 'Pod_Net', macAddress: MAC }] } },
          },
        },
        annotations: {
          [PRIMARY_CLAIM_ANNOTATION]: 'vm1.pod.net',
          [DEFAULT_NETWORK_ANNOTATION]: WITH_MAC.replace('vm1.default', 'vm1.pod.net'),
        },
      },
      annotations: {
        [PRIMARY_CLAIM_ANNOTATION]: claimName('vm1', 'Pod_Net'),
        [DEFAULT_NETWORK_ANNOTATION]: WITH_MAC.replace('vm1.default', claimName('vm1', 'Pod_Net')),
      },
    },
    {
      name: 'gets its claim before the claim exists, and gets the same one afterwards',
      given: {
        claims: [
          claim({ name: 'vm1.default', vmNetwork: 'default', network: 'tenant-net', nad: 'vms/udn', owner: OWNER }),
        ],
      },
      annotations: CLAIMED,
    },
    {
      name: 'gets the claim that kubevirt/ipam-extensions created, under its name',
      given: {
        vmi: { ...VM1, spec: { networks: [{ name: 'Pod_Net', pod: {} }] } },
        claims: [claimOfIpamExtensions({ name: 'vm1.pod.net', network: 'tenant-net', owner: OWNER })],
      },
      annotations: { [PRIMARY_CLAIM_ANNOTATION]: 'vm1.pod.net' },
    },
    {
      name: 'gets its own claim in place of one that the template of the VM names',
      given: { annotations: { [PRIMARY_CLAIM_ANNOTATION]: 'vm2.default' } },
      annotations: CLAIMED,
    },
    {
      name: 'gets no claim if the network does not allow persistent addresses',
      given: { nads: [nad('udn', { name: 'tenant-net', role: 'primary' })] },
      annotations: {},
    },
    {
      name: 'loses the claim that its template names if it has none',
      given: {
        nads: [nad('udn', { name: 'tenant-net', role: 'primary' })],
        annotations: { [PRIMARY_CLAIM_ANNOTATION]: 'vm2.default' },
      },
      annotations: {},
    },
    {
      name: 'loses the claim that its template names if its VM has no pod network',
      given: { vmi: withoutPodNetwork, annotations: { [PRIMARY_CLAIM_ANNOTATION]: 'vm2.default' } },
      annotations: {},
    },
    {
      name: 'may have its own default network if its VM has no pod network',
      given: { vmi: withoutPodNetwork, annotations: { [DEFAULT_NETWORK_ANNOTATION]: 'blue' } },
      annotations: { [DEFAULT_NETWORK_ANNOTATION]: 'blue' },
    },
    { name: 'gets no claim while new ones are disabled', given: { enabled: false }, annotations: {} },
    {
      name: 'gets no claim while it is unknown which user creates launchers',
      given: { kubevirt: { problem: 'the ConfigMap is missing' }, annotations: CLAIMED },
      annotations: {},
    },
    {
      name: 'gets the claim of the first of several primary networks',
      given: { nads: [nad('z', { name: 'z', role: 'primary' }), UDN] },
      annotations: CLAIMED,
    },
    {
      name: 'gets its claim although other NADs of the namespace are invalid',
      given: { nads: [nad('a', '{not json}'), nad('b', { role: 'primary', subnets: 7 }), nad('c', '[]'), UDN] },
      annotations: CLAIMED,
    },
  ];
  for (const { name, given, annotations } of creations) {
    it(name, () => {
      const pod = launcherOf(given.vmi ?? VM1, given.annotations);
      expect(annotationsAfter(create(given, pod), pod)).to.deep.equal(annotations);
    });

    it(`${name}; a second review changes nothing`, () => {
      const pod = launcherOf(given.vmi ?? VM1, given.annotations);
      const once = launcherOf(given.vmi ?? VM1, annotationsAfter(create(given, pod), pod));
      expect(create(given, once)).to.deep.include({ allowed: true, patch: [] });
    });
  }

  it('keeps the reference of its secondary network, which another webhook sets', () => {
    const vmi = makeVmi('vm1', { data: 'blue' });
    const cluster = {
      vmis: [vmi],
      vms: [makeVm('vm1')],
      claims: [makeClaim('vm1', 'data')],
      nads: [makeNad('blue'), UDN],
    };
    const pod = makeLauncherPod(vmi);
    const secondary = reviewCreate(cluster, undefined, pod);
    const primary = create({ ...cluster, vmi }, pod);
    if (!secondary.allowed || !primary.allowed) throw new Error('refused');
    const patches = [...secondary.patch, ...primary.patch] as Operation[];
    const { annotations } = jsonpatch.applyPatch(pod, patches, true).newDocument.metadata;
    expect(annotations).to.include(CLAIMED);
    expect(annotations[NETWORKS_ANNOTATION]).to.include('"ipam-claim-reference":"vm1.data"');
  });

  it('is not changed if it is no launcher, or if no VMI controls it', () => {
    const pod = launcherOf(VM1);
    const stranger = { ...pod, metadata: { ...pod.metadata, ownerReferences: [] } };
    const plain = { ...pod, metadata: { ...pod.metadata, labels: {} } };
    for (const each of [stranger, plain]) expect(create({}, each)).to.deep.include({ allowed: true, patch: [] });
  });

  it('loses its claim if a VMI owns it but does not control it', () => {
    const pod = launcherOf(VM1, { [PRIMARY_CLAIM_ANNOTATION]: 'vm2.default' });
    const ownerReferences = [{ ...vmiReference('vm1-uid', 'vm1'), controller: false }];
    const owned = { ...pod, metadata: { ...pod.metadata, ownerReferences } };
    const verdict = create({ username: 'system:serviceaccount:vms:kubevirt-controller' }, owned);
    expect(annotationsAfter(verdict, owned)).to.deep.equal({});
    expect(verdict).to.have.nested.property(
      'warnings[0]',
      `annotation ${PRIMARY_CLAIM_ANNOTATION} is removed: no VirtualMachineInstance controls the pod`,
    );
  });

  const refusals: { name: string; given: Given; check: PodCheck; parts: string[] }[] = [
    {
      name: 'whose template has a default network',
      given: {
        vmi: requesting({ default: ['192.168.1.10'] }),
        annotations: { [DEFAULT_NETWORK_ANNOTATION]: '[{"name":"not-podnet"}]' },
      },
      check: 'default-network',
      parts: [
        'multus default network annotation "v1.multus-cni.io/default-network" is not allowed on pod creation',
        'remove it',
      ],
    },
    {
      name: 'whose template has a default network with the right request in other bytes',
      given: { vmi: requesting(undefined, MAC), annotations: { [DEFAULT_NETWORK_ANNOTATION]: `${WITH_MAC} ` } },
      check: 'default-network',
      parts: ['is not allowed on pod creation'],
    },
    {
      name: 'whose template has a default network without any request',
      given: { annotations: { [DEFAULT_NETWORK_ANNOTATION]: 'default' } },
      check: 'default-network',
      parts: ['is not allowed on pod creation'],
    },
    {
      name: 'whose VM requests an address outside the subnets',
      given: { vmi: requesting({ default: ['10.0.0.1'] }) },
      check: 'address-request',
      parts: ['VirtualMachineInstance vms/vm1', 'network.kubevirt.io/addresses', '10.0.0.1 is outside', SUBNETS],
    },
    {
      name: 'whose VM requests an invalid MAC address',
      given: { vmi: requesting(undefined, 'not-a-mac') },
      check: 'address-request',
      parts: ['"not-a-mac" is not a MAC address'],
    },
    {
      name: 'while the namespace has no primary network',
      given: { nads: [makeNad('blue'), nad('udn', '{"role": "primary", "subnets": 5}')] },
      check: 'primary-network',
      parts: ['namespace vms', '"role": "primary"', 'starts when its UserDefinedNetwork exists'],
    },
    {
      name: 'while its claim belongs to another VM',
      given: { claims: [makeClaim('vm1', 'default', { network: 'tenant-net', ownerUid: 'other-uid' })] },
      check: 'claim-free',
      parts: ['IPAMClaim vms/vm1.default', 'belongs to another VirtualMachine vm1'],
    },
    {
      name: 'while its VMI is not found',
      given: { vmis: [] },
      check: 'vmi-exists',
      parts: ['VirtualMachineInstance vms/vm1'],
    },
    { name: 'while its VM is not found', given: { vms: [] }, check: 'vm-exists', parts: ['VirtualMachine vms/vm1'] },
    {
      name: 'that another user than KubeVirt creates',
      given: { username: 'system:serviceaccount:vms:kubevirt-controller' },
      check: 'created-by-kubevirt',
      parts: ['system:serviceaccount:vms:kubevirt-controller'],
    },
  ];
  for (const { name, given, check, parts } of refusals) {
    it(`is refused ${name}`, () => expectRefusal(create(given), check, ...parts));
  }

  it('is reviewed again after a live read if its VMI, its VM or its claim could be missing in the caches', () => {
    expect(create({ vmis: [] }).rechecks).to.deep.equal([{ kind: 'vmi', key: 'vm1' }]);
    expect(create({ vms: [] }).rechecks).to.deep.equal([{ kind: 'vm', key: 'vm1' }]);
    expect(create().rechecks).to.deep.include({ kind: 'claim', key: 'vm1.default' });
  });
});
