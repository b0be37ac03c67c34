import { expect } from 'chai';
import { swappedClaimName } from '../../../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../../../api/kubevirt.js';
import type { Pod } from '../../../api/pod.js';
import {
  claim,
  claimOfIpamExtensions,
  launcher,
  nad,
  vm,
  vmReference,
  vmi,
} from '../../../test/objects/workload-objects.js';
import { itPlansClaims } from '../testing/claim-plan-cases.js';
import { BLUE, type WorkloadScenario, observationOf } from '../testing/workload-observation.js';
import { plan } from './plan.js';

const UDN = nad('udn', { name: 'tenant-net', role: 'primary', allowPersistentIPs: true, subnets: '10.100.0.0/16' });
const PLAIN_UDN = nad('udn', { name: 'tenant-net', role: 'primary', subnets: '10.100.0.0/16' });
const WITHOUT_NETWORKS = { ...vm({}), spec: { template: { spec: {} } } };
/** A namespace with a primary network, and the feature gate is on. */
const PRIMARY = { isPrimary: true, servesPrimaryNetworks: true, nads: [BLUE, UDN] };
const primaryClaim = (options: Parameters<typeof claim>[0] = {}) =>
  claim({
    name: 'vm1.default',
    vmNetwork: 'default',
    network: 'tenant-net',
    nad: 'vms/udn',
    interface: 'ovn-udn1',
    ...options,
  });

/** A launcher whose only network is the primary one. */
function primaryLauncher(options: Parameters<typeof launcher>[1] = {}, reference = 'vm1.default'): Pod {
  const pod = launcher([], options);
  pod.metadata.annotations = { 'k8s.ovn.org/primary-udn-ipamclaim': reference };
  return pod;
}

function orphaned(pod: Pod): Pod {
  return { ...pod, metadata: { ...pod.metadata, ownerReferences: [] } };
}

function replaced(nadName: string, request?: object): VirtualMachine {
  const annotations = request && { 'network.kubevirt.io/addresses': JSON.stringify(request) };
  const spec = { networks: [{ name: 'multus', multus: { networkName: nadName, default: true } }] };
  return { ...vm({}), spec: { template: { ...(annotations && { metadata: { annotations } }), spec } } };
}

function withoutPodNetwork<T extends VirtualMachineInstance>(object: T): T {
  return { ...object, spec: { domain: { devices: { autoattachPodInterface: false } } } };
}

function events(given: WorkloadScenario): string[] {
  return plan(observationOf(given)).flatMap((action) => (action.kind === 'refuse' ? [action.event.message] : []));
}

describe('the plan for a primary network', () => {
  itPlansClaims([
    {
      name: 'creates the claim of the pod network, besides those of secondary networks',
      given: { ...PRIMARY, vm: vm({ data: 'blue' }), vmi: vmi({ data: 'blue' }) },
      expect: ['create vm1.data for vm-uid', 'create vm1.default for vm-uid'],
    },
    {
      name: 'creates the claim before the VM runs',
      given: { ...PRIMARY, vm: vm({}) },
      expect: ['create vm1.default for vm-uid'],
    },
    {
      name: 'keeps the claim of a stopped VM to which KubeVirt adds the pod network at its start',
      given: { ...PRIMARY, vm: WITHOUT_NETWORKS, claims: [primaryClaim()] },
      expect: ['keep vm1.default'],
    },
    {
      name: 'creates the claim of a VMI without a VM',
      given: { ...PRIMARY, vmi: vmi({}, { vm: null }) },
      expect: ['create vm1.default for vmi-uid'],
    },
    {
      name: 'keeps its claim',
      given: { ...PRIMARY, vm: vm({}), claims: [primaryClaim()] },
      expect: ['keep vm1.default'],
    },
    {
      name: 'adopts the claim of kubevirt/ipam-extensions, and does not change its interface',
      given: {
        ...PRIMARY,
        vm: vm({}),
        claims: [claimOfIpamExtensions({ name: 'vm1.default', network: 'tenant-net' })],
      },
      expect: ['update vm1.default for vm-uid: annotations'],
    },
    { name: 'needs the feature gate', given: { ...PRIMARY, servesPrimaryNetworks: false, vm: vm({}) }, expect: [] },
    { name: 'needs the label of the namespace', given: { ...PRIMARY, isPrimary: false, vm: vm({}) }, expect: [] },
    {
      name: 'needs the feature gate for persistent addresses',
      given: { ...PRIMARY, gateClosed: true, vm: vm({}) },
      expect: [],
    },
    {
      name: 'creates no claim in a namespace that has opted out',
      given: { ...PRIMARY, optedOut: true, vm: vm({}) },
      expect: [],
    },
    {
      name: 'creates no claim if the network does not allow persistent addresses',
      given: { ...PRIMARY, nads: [PLAIN_UDN], vm: vm({}) },
      expect: [],
    },
    {
      name: 'creates no claim for a VMI without a pod network',
      given: { ...PRIMARY, vmi: withoutPodNetwork(vmi({}, { vm: null })) },
      expect: [],
    },
    {
      name: 'reports a namespace without a primary network',
      given: { ...PRIMARY, nads: [BLUE, nad('udn', '{bad')], vm: vm({}) },
      expect: ['refuse NetworkAttachmentNotFound on vm'],
    },
    {
      name: 'uses the first of several primary networks, and reports the others',
      given: {
        ...PRIMARY,
        nads: [nad('zzz', { name: 'z', role: 'primary', allowPersistentIPs: true }), UDN],
        vm: vm({}),
      },
      expect: ['create vm1.default for vm-uid', 'refuse NetworkAttachmentInvalid on vm'],
    },
    {
      name: 'is not affected by invalid NADs of the namespace',
      given: { ...PRIMARY, nads: [nad('a', '{bad'), nad('b', { role: 'primary', subnets: 1 }), UDN], vm: vm({}) },
      expect: ['create vm1.default for vm-uid'],
    },
    {
      name: 'waits while the claim of another owner has the name',
      given: { ...PRIMARY, vm: vm({}), claims: [primaryClaim({ owner: vmReference('other-uid', 'other') })] },
      expect: ['refuse IPAMClaimConflict on vm'],
    },
    {
      name: 'waits with the claim if the requested addresses are invalid',
      given: { ...PRIMARY, vm: requesting({ default: ['nonsense'] }) },
      expect: ['wait for vm1.default', 'refuse RequestedAddressesInvalid on vm'],
    },
    {
      name: 'keeps the claim after the feature gate is off',
      given: { ...PRIMARY, servesPrimaryNetworks: false, vm: vm({}), claims: [primaryClaim()] },
      expect: ['keep vm1.default'],
    },
    {
      name: 'keeps the claim after the primary network is deleted',
      given: { ...PRIMARY, nads: [], vm: vm({}), claims: [primaryClaim()] },
      expect: ['keep vm1.default', 'refuse NetworkAttachmentNotFound on vm'],
    },
    {
      name: 'keeps the claim after the network no longer allows persistent addresses',
      given: { ...PRIMARY, nads: [PLAIN_UDN], vm: vm({}), claims: [primaryClaim()] },
      expect: ['keep vm1.default'],
    },
    {
      name: 'keeps the claim of a deleted VM while its launcher runs, which has no other network',
      given: { ...PRIMARY, launchers: [primaryLauncher()], claims: [primaryClaim()] },
      expect: ['wait for vm1.default'],
    },
    {
      name: 'releases the claim of a deleted VM when its launcher has ended',
      given: { ...PRIMARY, launchers: [primaryLauncher({ phase: 'Succeeded' })], claims: [primaryClaim()] },
      expect: ['release vm1.default'],
    },
    {
      name: 'keeps the claim of a deleted VM while its launcher runs, from which the garbage collector removed the VMI',
      given: { ...PRIMARY, launchers: [orphaned(primaryLauncher())], claims: [primaryClaim()] },
      expect: ['wait for vm1.default'],
    },
    {
      name: 'keeps the claim of a deleted VM while its launcher runs although the feature gate is off',
      given: { ...PRIMARY, servesPrimaryNetworks: false, launchers: [primaryLauncher()], claims: [primaryClaim()] },
      expect: ['wait for vm1.default'],
    },
    {
      name: 'releases a claim although a pod that no VMI controls names it, in a namespace without a primary network',
      given: {
        ...PRIMARY,
        isPrimary: false,
        launchers: [orphaned(primaryLauncher({}, 'vm1.data'))],
        claims: [claim({ deleting: true })],
      },
      expect: ['release vm1.data'],
    },
    {
      name: 'keeps a claim that a user deletes while its VM runs',
      given: {
        ...PRIMARY,
        vm: vm({}),
        vmi: vmi({}),
        launchers: [primaryLauncher()],
        claims: [primaryClaim({ deleting: true })],
      },
      expect: ['wait for vm1.default, IPAMClaimInUse on the claim and its owner'],
    },
    {
      name: 'replaces a claim that a user deletes while its VM is stopped',
      given: { ...PRIMARY, vm: vm({}), claims: [primaryClaim({ deleting: true })] },
      expect: ['release vm1.default, then create it'],
    },
    {
      name: 'keeps the claim of a network that was renamed while its VM runs',
      given: {
        ...PRIMARY,
        vm: vm({}),
        vmi: vmi({}),
        launchers: [primaryLauncher()],
        claims: [primaryClaim({ network: 'old-net' })],
      },
      expect: ['wait for vm1.default', `create ${swappedClaimName('vm1', 'default', 'tenant-net')} for vm-uid`],
    },
    {
      name: 'gives the claim to the VMI of a VM that is deleted without it',
      given: {
        ...PRIMARY,
        vmi: vmi({}, { vm: null }),
        launchers: [primaryLauncher()],
        claims: [primaryClaim({ owner: null, recordedOwner: { name: 'vm1', uid: 'vm-uid' } })],
      },
      expect: ['update vm1.default for vmi-uid: annotations ownerReferences'],
    },
    {
      name: 'reports a device of a ResourceClaim, which has no NAD',
      given: {
        vm: {
          ...vm({}),
          spec: { template: { spec: { networks: [{ name: 'fast', resourceClaim: { claimName: 'nic' } }] } } },
        },
      },
      expect: ['refuse NetworkNotServed on vm'],
    },
    {
      name: 'reports default routes of two networks',
      given: {
        nads: [nad('blue', { name: 'blue-net', type: 'bridge', isDefaultGateway: true, ipam: { type: 'host-local' } })],
        vm: vm({ data: 'blue' }),
      },
      expect: ['refuse SeveralDefaultRoutes on vm'],
    },
    {
      name: 'reports a network in place of the pod network that allows persistent addresses',
      given: { vm: replaced('blue') },
      expect: ['refuse NetworkNotServed on vm'],
    },
    {
      name: 'reports a network in place of the pod network for which addresses are requested',
      given: { vm: replaced('plain', { multus: ['10.0.0.5'] }), nads: [nad('plain', { name: 'plain-net' })] },
      expect: ['refuse NetworkNotServed on vm'],
    },
    {
      name: 'does not report a network in place of the pod network of which nobody expects persistent addresses',
      given: { vm: replaced('plain'), nads: [nad('plain', { name: 'plain-net' })] },
      expect: [],
    },
    {
      name: 'does not report a network in place of the pod network while the feature gate is off',
      given: { vm: replaced('blue'), gateClosed: true },
      expect: [],
    },
  ]);

  it('creates a claim on the network of the NAD, with the name of the interface and the request', () => {
    const [action] = plan(observationOf({ ...PRIMARY, vm: requesting({ default: ['10.100.0.5'] }) }));
    if (action?.kind !== 'create') throw new Error('no claim');
    expect(action.claim.spec).to.deep.equal({ network: 'tenant-net', interface: 'ovn-udn1' });
    expect(action.claim.metadata.annotations).to.include({
      'ipam.holdfast.dev/vm-network': 'default',
      'ipam.holdfast.dev/network-attachment-definition': 'vms/udn',
      'ipam.holdfast.dev/requested-addresses': '["10.100.0.5"]',
    });
  });

  it('says what to do with a network that it does not serve', () => {
    const [message] = events({ vm: replaced('blue') });
    expect(message).to.include('Network "multus" replaces the pod network (multus.default)');
    expect(message).to.include('NetworkAttachmentDefinition vms/blue').and.include('PrimaryUserDefinedNetwork');
  });

  it('names the primary network that it uses if there are several', () => {
    const [message] = events({ ...PRIMARY, nads: [nad('zzz', { role: 'primary' }), UDN], vm: vm({}) });
    expect(message).to.include('namespace vms has 2').and.include('vms/udn is used').and.include('delete the others');
  });
});

function requesting(request: object): VirtualMachine {
  const made = vm({});
  const annotations = { 'network.kubevirt.io/addresses': JSON.stringify(request) };
  Object.assign(made.spec?.template ?? {}, { metadata: { annotations } });
  return made;
}
