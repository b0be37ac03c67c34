import { leaseOf, networkDataLock } from '../../test/objects/lease-objects.js';
import { claim } from '../../test/objects/workload-objects.js';
import {
  STARTING,
  STOPPED,
  allocatedClaim,
  blueNad,
  bluePool,
  claimLease,
  claimWithCondition,
  describeStories,
  eventOn,
} from '../testing/vm-story.js';

const EXHAUSTED =
  'Pool blue is full: 2 of 2 leased. Delete VMs and pods that are no longer needed, or ask the administrator to add a range to the pool';

const OTHER = { kind: 'IPAMClaim' as const, namespace: 'a', name: 'vm2.data', uid: 'vm2.data-uid' };
const FORMER = leaseOf('10.0.0.6', 1, {
  ...{ namespace: 'vms', name: 'vm1.old', releasedAt: Date.parse('2026-01-01T00:00:00Z') },
  networkData: networkDataLock({ namespace: 'vms' }),
});

describeStories('the claims and leases in the story of a VM', [
  {
    title: 'a VM that waits because its pool is full',
    given: {
      ...STARTING,
      claims: [claimWithCondition(['IPsAllocated', 'False', 'SubnetExhausted', EXHAUSTED])],
      leases: [],
    },
    health: 'wrong',
    includes: [
      'IPAMClaim vms/vm1.data: no addresses',
      'wrong SubnetExhausted: Pool blue is full: 2 of 2 leased. Delete VMs and pods that are no longer needed',
    ],
  },
  {
    title: 'a VM whose requested address belongs to somebody else',
    given: {
      claims: [claimWithCondition(['IPsAllocated', 'False', 'IPAddressConflict', '10.0.0.5 is allocated to X'])],
      leases: [],
    },
    health: 'wrong',
    includes: ['wrong IPAddressConflict: 10.0.0.5 is allocated to X → kubectl holdfast who ADDRESS names the owner'],
  },
  {
    title: 'a VM whose address somebody else may have, because the user may not read pools',
    given: { leases: [], pools: 'you may not list pools' },
    health: 'unknown',
    includes: ['AddressLease 10.0.0.5: not shown', 'unknown you may not list pools'],
    excludes: ['does not exist'],
  },
  {
    title: 'a VM that requests another address than it has',
    given: {
      claims: [claimWithCondition(['RequestHonoured', 'False', 'ClaimInUse', 'a pod uses it'], ['10.0.0.5/24'])],
    },
    health: 'wrong',
    includes: ['IPAMClaim vms/vm1.data: 10.0.0.5/24', 'wrong ClaimInUse: a pod uses it'],
  },
  {
    title: 'a VM whose claim has no lease',
    given: { leases: [] },
    health: 'wrong',
    includes: [
      'AddressLease 10.0.0.5: does not exist',
      'wrong IPAMClaim vm1.data has 10.0.0.5 in its status, and no lease for it',
    ],
  },
  {
    title: 'a VM whose address is leased to somebody else',
    given: { leases: [claimLease({ owner: { kind: 'Pod', namespace: 'x', name: 'p', uid: 'u' } })] },
    health: 'wrong',
    includes: [
      'wrong IPAddressConflict: IPAMClaim vm1.data has 10.0.0.5 in its status, but the address is leased to Pod x/p',
    ],
  },
  {
    title: 'a VM whose lease was released',
    given: { leases: [claimLease({ releasedAt: '2026-01-01T00:00:00Z' })] },
    health: 'wrong',
    includes: ['wrong 10.0.0.5 was released although its claim exists'],
  },
  {
    title: 'a VM that waits for an address that the Secret of another VM may hold',
    given: {
      ...STARTING,
      claims: [
        {
          ...claimWithCondition(['IPsAllocated', 'False', 'IPAddressConflict', '10.0.0.5 is kept']),
          metadata: { ...claim().metadata, annotations: { 'ipam.holdfast.dev/requested-addresses': '["10.0.0.5"]' } },
        },
      ],
      leases: [claimLease({ owner: OTHER, releasedAt: '2026-01-01T00:00:00Z', networkData: networkDataLock() })],
    },
    health: 'wrong',
    includes: [
      'AddressLease blue.10-0-0-5: IPAMClaim a/vm2.data, released at 2026-01-01T00:00:00Z, kept until the process guest has removed it from Secret a/net, pool blue',
    ],
    excludes: ['goes to no other VM'],
  },
  {
    title: 'a VM whose Secret may hold an address that it had before',
    given: { leases: [claimLease(), FORMER] },
    health: 'warning',
    includes: [
      'IPAMClaim vms/vm1.data: 10.0.0.5/24',
      'AddressLease blue.10-0-0-6: IPAMClaim vms/vm1.old, released at 2026-01-01T00:00:00.000Z, kept until the process guest has removed it from Secret vms/net, pool blue',
      'warning 10.0.0.6 goes to no other VM, because the Secret may still hold it → see the pods of holdfast-guest',
    ],
  },
  {
    title: 'a VM whose Secret just lost an address',
    given: { leases: [claimLease(), { ...FORMER, spec: { ...FORMER.spec, releasedAt: '2026-01-01T23:59:50Z' } }] },
    health: 'progress',
    includes: ['progress 10.0.0.6 goes to no other VM, because the Secret may still hold it'],
  },
  {
    title: 'a VM with an address of a draining range',
    given: {
      claims: [claimWithCondition(['AddressDraining', 'True', 'ClaimInUse', 'restart the VM'], ['10.0.0.5/24'])],
    },
    health: 'warning',
    includes: ['warning ClaimInUse: restart the VM'],
  },
  {
    title: 'a VM whose claim no IPAM has answered, and an event says why',
    given: {
      claims: [claim({ created: '2026-01-01T00:00:00Z' })],
      leases: [],
      events: [eventOn('vm1', 'IPAMNotAnswering', 'ipam has not written the status of IPAMClaim vms/vm1.data')],
    },
    health: 'wrong',
    includes: [
      'wrong IPAMNotAnswering: ipam has not written the status of IPAMClaim vms/vm1.data → see the pods of holdfast-ipam',
    ],
  },
  {
    title: 'a VM whose new claim waits for an answer',
    given: { claims: [claim({ created: '2026-01-01T23:59:50Z' })], leases: [] },
    health: 'progress',
    includes: ['progress it waits for its addresses'],
  },
  {
    title: 'a stopped VM whose claim waits for another IPAM, which answers only when a pod has a node',
    given: {
      ...{ ...STOPPED, claims: [claim({ created: '2026-01-01T00:00:00Z' })], leases: [], pools: [] },
      nads: { blue: blueNad({ ipam: undefined, type: 'ovn-k8s-cni-overlay' }) },
    },
    health: 'progress',
    includes: ['progress it waits for its addresses: its IPAM may answer only when a pod of the VM has a node'],
  },
  {
    title: 'a running VM whose claim another IPAM has not answered',
    given: {
      ...{ claims: [claim({ created: '2026-01-01T00:00:00Z' })], leases: [], pools: [] },
      nads: { blue: blueNad({ ipam: { type: 'other' } }) },
    },
    health: 'wrong',
    includes: ['wrong no IPAM has given it addresses, nor said why'],
  },
  {
    title: 'a stopped VM on a network without IPAM and without a pool for guests',
    given: {
      ...{ ...STOPPED, claims: [claim({ created: '2026-01-01T00:00:00Z' })], leases: [], pools: [] },
      nads: { blue: blueNad({ ipam: {} }) },
    },
    health: 'progress',
    includes: ['progress it waits for its addresses'],
  },
  {
    title: 'a VM whose claim a user has deleted',
    given: { claims: [allocatedClaim({ deleting: true })] },
    health: 'progress',
    includes: [
      'IPAMClaim vms/vm1.data: 10.0.0.5/24, being deleted',
      'progress it is being deleted: it serves the pods',
    ],
  },
  {
    title: 'a VM on a network of another IPAM',
    given: { nads: { blue: blueNad({ ipam: { type: 'other' } }) }, leases: [], pools: [], agents: {} },
    health: 'ok',
    includes: ['IPAMClaim vms/vm1.data: 10.0.0.5/24, served by another IPAM', 'Node n1: not served by Holdfast'],
    excludes: ['AddressLease'],
  },
  {
    title: 'a VM on a network without IPAM, whose guest gets the addresses',
    given: { nads: { blue: blueNad({ ipam: {} }) } },
    health: 'ok',
    includes: ['IPAMClaim vms/vm1.data: 10.0.0.5/24', 'AddressLease'],
    excludes: ['served by another IPAM'],
  },
  {
    title: 'a VM on a network without IPAM, of which Holdfast leases no address',
    given: { nads: { blue: blueNad({ ipam: {} }) }, leases: [], pools: [], agents: {} },
    health: 'ok',
    includes: ['IPAMClaim vms/vm1.data: 10.0.0.5/24'],
    excludes: ['AddressLease', 'served by another IPAM'],
  },
  {
    title: 'a VM whose pool is not ready',
    given: { pools: [bluePool({ status: 'False', message: 'spec.subnets is empty' })] },
    health: 'wrong',
    includes: ['AddressPool blue: 253 of 254 free', 'wrong Serving: spec.subnets is empty'],
  },
]);
