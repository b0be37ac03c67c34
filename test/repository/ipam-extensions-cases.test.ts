import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { ROOT } from '../source-files.js';

/** A case of the unit tests of kubevirt/ipam-extensions at edb24de, by its behaviour, and the title of our test or row of the same behaviour. */
type Case = readonly [theirs: string, ours: string];

const CASES: Readonly<Record<string, readonly Case[]>> = {
  'webhook/primary-network.test.ts': [
    [
      'podmutator: a pod that belongs to no VM is not changed',
      'is not changed if it is no launcher, or if no VMI controls it',
    ],
    [
      'podmutator: both claims with a primary and a secondary network',
      'keeps the reference of its secondary network, which another webhook sets',
    ],
    ['podmutator: the claim of the primary network alone', 'gets the claim of its pod network'],
    ['podmutator: a requested MAC address', 'gets the MAC address that its VM requests'],
    [
      'podmutator: a requested MAC address and addresses',
      'gets the MAC address and the addresses that its VM requests',
    ],
    ['podmutator: the VMI is not found', 'while its VMI is not found'],
    ['podmutator: a default network is denied on creation', 'whose template has a default network'],
    [
      'podmutator: a default network is denied on creation even if it looks right',
      'whose template has a default network with the right request in other bytes',
    ],
  ],
  'webhook/primary-network-update.test.ts': [
    ['podmutator: UPDATE is allowed with a default network', 'keeps both annotations'],
  ],
  'webhook/pod-mutation.test.ts': [
    ['podmutator: the claim of a secondary network', 'gets one operation that replaces one annotation'],
    ['podmutator: a network without persistent addresses', 'may request addresses on an interface without a claim'],
    ['podmutator: a NAD that does not exist', 'gets the other references and a warning if one NAD is missing'],
    [
      'podmutator: a launcher without networks and primary network',
      'is not changed without networks or without the label',
    ],
    [
      'podmutator: a pod of no VM on a network with persistent addresses',
      'is not changed without networks or without the label',
    ],
  ],
  'webhook/pod-refusal.test.ts': [
    ['podmutator: networks that are not JSON are a bad request', 'with an invalid annotation'],
  ],
  'webhook/primary-network.primary-request.test.ts': [
    ['primarynetwork: no annotation', 'is empty without the annotation'],
    ['primarynetwork: addresses of both families', 'gets the prefix length of the subnet of its family'],
    ['primarynetwork: IPv4 only', 'may have an IPv4 address only'],
    ['primarynetwork: IPv6 only', 'may have an IPv6 address only'],
    ['primarynetwork: only the addresses of that network', 'gets the prefix length of the subnet of its family'],
    ['primarynetwork: another network', 'is empty if the annotation names other networks only'],
    ['primarynetwork: an annotation that is not JSON', 'is not JSON'],
    ['primarynetwork: IPv4 without an IPv4 subnet', 'contains an IPv4 address, and the network has no IPv4 subnet'],
    ['primarynetwork: IPv6 without an IPv6 subnet', 'contains an IPv6 address, and the network has no IPv6 subnet'],
    ['primarynetwork: text that is no address', 'contains no address'],
    ['primarynetwork: an invalid subnet', 'meets an invalid subnet'],
    ['primarynetwork: the first IPv4 subnet counts', 'uses the first subnet if that contains the address'],
    ['primarynetwork: the first IPv6 subnet counts', 'uses the first subnet if that contains the address'],
    ['families: no subnets', 'contains an address, and the network has no subnets'],
    ['families: one IPv4 subnet', 'contains an IPv6 address, and the network has no IPv6 subnet'],
    ['families: one IPv6 subnet', 'contains an IPv4 address, and the network has no IPv4 subnet'],
    ['families: subnets of both families', 'gets the prefix length of the subnet of its family'],
    ['families: blanks', 'ignores blanks and empty entries of the subnets'],
    ['families: empty entries', 'ignores blanks and empty entries of the subnets'],
    ['families: a subnet that is none', 'meets an invalid subnet'],
    ['families: an IPv4 subnet without prefix length', 'meets an IPv4 subnet without a prefix length'],
    ['families: an IPv6 subnet without prefix length', 'meets an IPv6 subnet without a prefix length'],
    ['families: several IPv4 subnets', 'uses another subnet of the family if only that contains the address'],
    ['families: several IPv6 subnets', 'uses the first subnet if that contains the address'],
    ['families: IsIPv4 and IsIPv6', 'is an IPv4 address, an IPv6 address, or neither'],
  ],
  'controller/claims/plan/plan.primary.test.ts': [
    [
      'vmi_controller: claims of the primary and the secondary network',
      'creates the claim of the pod network, besides those of secondary networks',
    ],
    [
      'vmi_controller: no claim for a network in place of the pod network',
      'reports a network in place of the pod network that allows persistent addresses',
    ],
  ],
  'controller/claims/plan/plan.desired.test.ts': [
    ['vmi_controller: a NAD with an invalid config', 'creates the claims of other interfaces if one NAD is invalid'],
    ['vmi_controller: a NAD that does not exist', 'keeps the claim if the NAD is gone, and reports the NAD'],
    ['vmi_controller: a claim of the same VM exists', 'keeps its claim'],
    ['vmi_controller: a VMI without a VM', 'creates the claim of a standalone VMI'],
    ['shouldCleanFinalizers: VM and VMI exist', 'keeps its claim'],
    ['shouldCleanFinalizers: a VMI without a VM exists', 'creates the claim of a standalone VMI'],
  ],
  'controller/claims/plan/desired.test.ts': [
    ['vmi_controller: neither a VM nor a VMI exists', 'are none if there is neither a VM nor a VMI'],
    ['vmi_controller: a stopped VM keeps its claim', 'include those of a stopped VM'],
    ['shouldCleanFinalizers: a stopped VM', 'include those of a stopped VM'],
  ],
  'controller/claims/plan/plan.name.test.ts': [
    ['vmi_controller: a claim without an owner has the name', 'refuses a claim without an owner on another network'],
  ],
  'controller/claims/plan/plan.owner.test.ts': [
    ['vmi_controller: VM and VMI are gone', 'releases a claim that kubevirt/ipam-extensions created'],
    ['vmi_controller: a deleted VMI without a VM and without pods', 'releases the claim of a VMI that is gone'],
    [
      'vmi_controller: a deleted VMI without a VM with pods',
      'keeps the claim of a deleted standalone VMI while a launcher exists',
    ],
    ['vmi_controller: a deleted VM without a VMI', 'releases the claim once VMI and launchers are gone or terminal'],
    [
      'vmi_controller: a claim of another VM of the same name',
      'lets a new VM of that name wait until the claim is released',
    ],
    [
      'shouldCleanFinalizers: a deleted VM without a VMI',
      'releases the claim once VMI and launchers are gone or terminal',
    ],
    ['shouldCleanFinalizers: a deleted VM with its VMI', 'keeps the claim while the VMI exists'],
    ['shouldCleanFinalizers: a VMI without a VM is gone', 'releases the claim of a VMI that is gone'],
    ['shouldCleanFinalizers: a deleted VMI without a VM and without pods', 'releases the claim of a VMI that is gone'],
    [
      'shouldCleanFinalizers: a deleted VMI without a VM with pods',
      'keeps the claim of a deleted standalone VMI while a launcher exists',
    ],
    ['vm_controller: a deleted VM without a VMI', 'releases the claim once VMI and launchers are gone or terminal'],
    ['vm_controller: the VM is gone', 'releases its claim'],
    ['vm_controller: a deleted VM with its VMI', 'keeps the claim while the VMI exists'],
  ],
  'process/command-line.test.ts': [['config: an invalid minimum TLS version', 'TLS version 1.1']],
  'admission/server.test.ts': [
    ['config: no TLS options', 'accepts nothing older than TLS 1.3'],
    ['config: a minimum TLS version', 'accepts TLS 1.2 if configured, also after a new certificate'],
  ],
};

/** Their flags for cipher suites and curves: Holdfast has none, because all those that Node.js offers in TLS 1.3, the default, are secure. */
const OUT_OF_SCOPE = [
  'config: an invalid cipher suite',
  'config: an invalid curve',
  'config: cipher suites',
  'config: curves',
  'config: a minimum TLS version and cipher suites',
  'config: a minimum TLS version and curves',
  'config: cipher suites and curves',
  'config: a minimum TLS version, cipher suites and curves',
  'config: several cipher suites and curves',
];

/** How many cases their files have; the tables of addresses count as one. */
const COUNTS = {
  podmutator: 15,
  primarynetwork: 13,
  families: 12,
  vmi_controller: 14,
  shouldCleanFinalizers: 8,
  vm_controller: 3,
  config: 12,
};

describe('The cases of the unit tests of kubevirt/ipam-extensions', () => {
  const all = [...Object.values(CASES).flatMap((cases) => cases.map(([theirs]) => theirs)), ...OUT_OF_SCOPE];

  for (const [path, cases] of Object.entries(CASES)) {
    it(`are tested in ${path}`, async () => {
      const source = await readFile(join(ROOT, path), 'utf8');
      const lost = cases.filter(([, title]) => !source.includes(`'${title}'`));
      expect(lost).to.deep.equal([]);
    });
  }

  it('are complete', () => {
    const counts = Object.fromEntries(
      Object.keys(COUNTS).map((file) => [file, all.filter((theirs) => theirs.startsWith(`${file}: `)).length]),
    );
    expect(counts).to.deep.equal(COUNTS);
    expect(new Set(all).size).to.equal(all.length);
  });
});
