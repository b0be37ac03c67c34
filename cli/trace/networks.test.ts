import type { VirtualMachine } from '../../api/kubevirt.js';
import { claim, nad, vmReference } from '../../test/objects/workload-objects.js';
import { STOPPED, blueNad, describeStories, eventOn, tracedVm, tracedVmi } from '../testing/vm-story.js';

function requestingVm(addresses: object): VirtualMachine {
  const made = tracedVm();
  const annotations = { 'network.kubevirt.io/addresses': JSON.stringify(addresses) };
  return { ...made, spec: { template: { metadata: { annotations }, spec: made.spec!.template!.spec! } } };
}

describeStories('the networks in the story of a VM', [
  {
    title: 'a VM with a device of a ResourceClaim',
    given: {
      ...STOPPED,
      vm: {
        ...tracedVm(undefined, 'Stopped'),
        spec: { template: { spec: { networks: [{ name: 'fast', resourceClaim: { claimName: 'nic' } }] } } },
      },
      claims: [],
      leases: [],
    },
    health: 'warning',
    includes: [
      'warning NetworkNotServed: it is a device of a ResourceClaim (resourceClaim) and has no NetworkAttachmentDefinition',
      'Attach it by multus.networkName',
    ],
  },
  {
    title: 'a VM with default routes on two networks',
    given: {
      ...STOPPED,
      vm: {
        ...tracedVm(undefined, 'Stopped'),
        spec: {
          template: {
            spec: {
              networks: [
                { name: 'default', pod: {} },
                { name: 'data', multus: { networkName: 'blue' } },
              ],
            },
          },
        },
      },
      nads: { blue: blueNad({ type: 'bridge', ipam: { type: 'holdfast', routes: [{ dst: '0.0.0.0/0' }] } }) },
    },
    health: 'warning',
    includes: ['warning SeveralDefaultRoutes: DHCP gives the guest a default route on each of the networks "default"'],
  },
  {
    title: 'a VM whose claim does not fit into a quota',
    given: {
      ...STOPPED,
      claims: [],
      leases: [],
      events: [
        eventOn('vm1', 'IPAMClaimQuotaExceeded', 'older', '2026-01-01T00:00:00Z'),
        eventOn(
          'vm1',
          'IPAMClaimQuotaExceeded',
          'ResourceQuota claims has no room. Delete VMs',
          '2026-01-01T00:01:00Z',
        ),
      ],
    },
    health: 'wrong',
    includes: ['wrong IPAMClaimQuotaExceeded: ResourceQuota claims has no room. Delete VMs'],
    excludes: ['older', '→'],
  },
  {
    title: 'a VM whose request cannot be read',
    given: {
      ...STOPPED,
      claims: [],
      events: [eventOn('vm1', 'RequestedAddressesInvalid', 'Network "data": the event says it again')],
      vm: {
        ...tracedVm(undefined, 'Stopped'),
        spec: {
          template: {
            metadata: { annotations: { 'network.kubevirt.io/addresses': '{"data": ["10.0.0.300"]}' } },
            spec: tracedVm().spec!.template!.spec!,
          },
        },
      },
    },
    health: 'wrong',
    includes: [
      'wrong RequestedAddressesInvalid: network.kubevirt.io/addresses: network "data": "10.0.0.300" is not an IP',
    ],
    excludes: ['says it again'],
  },
  {
    title: 'a VM whose NAD misspells the flag',
    given: { ...STOPPED, claims: [], leases: [], nads: { blue: nad('blue', { allowPersistentIP: true }) } },
    health: 'warning',
    includes: [
      'warning AddressNotPersistent: it does not keep its address: NetworkAttachmentDefinition vms/blue: spec.config.allowPersistentIP has no effect: write allowPersistentIPs',
    ],
  },
  {
    title: 'a VM that requests addresses on a network that it does not have, and has its claim',
    given: { vm: requestingVm({ dta: ['10.0.0.5'] }) },
    health: 'wrong',
    includes: [
      'wrong RequestedAddressesInvalid: network.kubevirt.io/addresses: the VM has no network "dta" (it has "default", "data"): correct the name',
    ],
  },
  {
    title: 'a VM that requests addresses on a network without persistent ones',
    given: {
      vm: requestingVm({ data: ['10.0.0.5'] }),
      claims: [],
      leases: [],
      nads: { blue: nad('blue', { allowPersistentIPs: false, ipam: { type: 'holdfast' } }) },
    },
    health: 'wrong',
    includes: [
      'wrong RequestedAddressesInvalid: network.kubevirt.io/addresses: network "data": NetworkAttachmentDefinition vms/blue does not allow',
    ],
  },
  {
    title: 'a VM whose NAD does not exist',
    given: { ...STOPPED, claims: [], leases: [], nads: { blue: null } },
    health: 'wrong',
    includes: [
      'Network data: NAD vms/blue',
      'wrong NetworkAttachmentNotFound: NetworkAttachmentDefinition vms/blue does not exist: create it, or correct networkName in the VM',
    ],
  },
  {
    title: 'a VM whose NAD is invalid',
    given: { ...STOPPED, claims: [], leases: [], nads: { blue: nad('blue', '{') } },
    health: 'wrong',
    includes: ['wrong NetworkAttachmentInvalid: NetworkAttachmentDefinition vms/blue: spec.config is not JSON'],
  },
  {
    title: 'a VM whose NAD has an invalid IPAM section',
    given: { ...STOPPED, nads: { blue: blueNad({ ipam: { type: 'holdfast', subnets: 7 } }) } },
    health: 'wrong',
    includes: ['wrong NetworkAttachmentInvalid: NetworkAttachmentDefinition vms/blue: spec.config.ipam.subnets'],
  },
  {
    title: 'a VM whose claim has another owner',
    given: { ...STOPPED, claims: [claim({ owner: vmReference('other-uid', 'other'), label: 'other' })], leases: [] },
    health: 'wrong',
    includes: [
      'wrong IPAMClaimConflict: IPAMClaim vms/vm1.data belongs to VirtualMachine other → delete that claim, or rename',
    ],
    excludes: ['IPAMClaim vms/vm1.data: '],
  },
  {
    title: 'a VM that waits for the claim of an earlier VM of its name',
    given: { ...STOPPED, claims: [claim({ owner: vmReference('old-uid'), deleting: true })], leases: [] },
    health: 'progress',
    includes: ['progress IPAMClaimOfPredecessor: IPAMClaim vms/vm1.data belongs to an earlier VirtualMachine vm1'],
  },
  {
    title: 'a VM whose claim was restored from a backup',
    given: {
      ...STOPPED,
      claims: [claim({ owner: null, recordedOwner: { name: 'vm1', uid: 'before' }, ips: ['10.0.0.5/24'] })],
    },
    health: 'progress',
    includes: [
      'progress IPAMClaim vms/vm1.data was restored from a backup, or has no owner: the controller assigns it',
    ],
  },
  {
    title: 'a VM that has no claim although nothing prevents it',
    given: { ...STOPPED, claims: [], leases: [] },
    health: 'wrong',
    includes: ['wrong it has no IPAMClaim, and no event says why → find out whether'],
  },
  {
    title: 'a VM that has no claim while its events cannot be read',
    given: { ...STOPPED, claims: [], leases: [], events: 'user "eve" may not list events' },
    health: 'wrong',
    includes: ['wrong it has no IPAMClaim: user "eve" may not list events → find out whether'],
  },
  {
    title: 'a VM whose requests have no effect in a namespace without persistent addresses',
    given: {
      ...{ ...STOPPED, vm: requestingVm({ data: ['10.0.0.5'], dta: ['10.0.0.5'] }), claims: [], leases: [] },
      nads: { blue: nad('blue', { allowPersistentIPs: false, ipam: { type: 'holdfast' } }) },
      namespaceLabels: { 'ipam.holdfast.dev/persistent-ips': 'disabled' },
    },
    health: 'ok',
    includes: ['Network data: NAD vms/blue'],
    excludes: ['RequestedAddressesInvalid'],
  },
  {
    title: 'a VM in a namespace without persistent addresses',
    given: { ...STOPPED, claims: [], leases: [], namespaceLabels: { 'ipam.holdfast.dev/persistent-ips': 'disabled' } },
    health: 'warning',
    includes: ['warning namespace vms has the label ipam.holdfast.dev/persistent-ips=disabled'],
  },
  {
    title: 'a VM without networks that allow persistent addresses',
    given: { claims: [], leases: [], nads: { blue: blueNad({ allowPersistentIPs: false }) } },
    health: 'ok',
    includes: ['Network data: NAD vms/blue, CNI network blue-net, without persistent addresses'],
  },
  {
    title: 'a VM without secondary networks',
    given: { vm: tracedVm({}), vmi: { ...tracedVmi(), spec: {} }, claims: [], leases: [] },
    health: 'ok',
    includes: ['Pod vms/virt-launcher-vm1-abcde: Running on n1'],
    excludes: ['Network'],
  },
]);
