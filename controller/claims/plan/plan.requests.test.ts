import { expect } from 'chai';
import type { IPAMClaim } from '../../../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../../../api/kubevirt.js';
import {
  type WorkloadClaimOptions,
  type Networks,
  claim,
  launcher,
  nad,
  vm,
  vmi,
} from '../../../test/objects/workload-objects.js';
import { itPlansClaims } from '../testing/claim-plan-cases.js';
import { BROKEN_BLUE, type WorkloadScenario, PLAIN_BLUE, observationOf } from '../testing/workload-observation.js';
import { needsConfirmation, plan } from './plan.js';

const ADDRESSES = 'network.kubevirt.io/addresses';
const REQUESTED = 'ipam.holdfast.dev/requested-addresses';
const FIVE = { data: ['10.0.0.5'] };
const NINE = { data: ['10.0.0.9'] };
const running = launcher([{ nad: 'blue', claim: 'vm1.data' }], { status: [{ nad: 'blue' }] });

function asking(request: object | string, networks: Networks = { data: 'blue' }): VirtualMachine {
  const made = vm(networks);
  Object.assign(made.spec?.template ?? {}, { metadata: { annotations: annotated(request) } });
  return made;
}

function vmiAsking(request: object, options: { vm?: null } = {}): VirtualMachineInstance {
  const made = vmi({ data: 'blue' }, options);
  made.metadata.annotations = annotated(request);
  return made;
}

function annotated(request: object | string) {
  return { [ADDRESSES]: typeof request === 'string' ? request : JSON.stringify(request) };
}

function claimFor(addresses: string[], options: WorkloadClaimOptions = {}) {
  const made = claim(options);
  made.metadata.annotations = { ...made.metadata.annotations, [REQUESTED]: JSON.stringify(addresses) };
  return made;
}

/** A claim whose request the VM's template made. */
function templateClaimFor(addresses: string[], options: WorkloadClaimOptions = {}) {
  const made = claimFor(addresses, options);
  made.metadata.annotations = { ...made.metadata.annotations, 'ipam.holdfast.dev/request-origin': 'template' };
  return made;
}

function refused(made: IPAMClaim): IPAMClaim {
  const condition = { type: 'IPsAllocated', status: 'False' as const, reason: 'IPAddressConflict', message: '' };
  made.status = { ips: [], conditions: [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }] };
  return made;
}

/** What claims that are made or changed are to ask for. */
function requests(given: WorkloadScenario): (string | null | undefined)[] {
  return plan(observationOf(given)).flatMap((action) => {
    if (action.kind === 'create') return [action.claim.metadata.annotations?.[REQUESTED]];
    if (action.kind === 'update') return [action.set.annotations?.[REQUESTED]];
    return action.kind === 'release' ? [action.successor?.metadata.annotations?.[REQUESTED]] : [];
  });
}

describe('the plan', () => {
  describe('for a VM that requests addresses', () => {
    const table: { name: string; given: WorkloadScenario; expect: (string | null | undefined)[] }[] = [
      { name: 'creates a claim with the request', given: { vm: asking(FIVE) }, expect: ['["10.0.0.5"]'] },
      {
        name: 'creates a claim without a request if the VM makes none',
        given: { vm: vm({ data: 'blue' }) },
        expect: [undefined],
      },
      {
        name: 'sets the request only on the claim of the named network',
        given: { vm: asking(FIVE, { data: 'blue', extra: 'blue' }) },
        expect: ['["10.0.0.5"]', undefined],
      },
      {
        name: 'reads the request from the VMI if the VM is not observed yet',
        given: { vmi: vmiAsking(FIVE) },
        expect: ['["10.0.0.5"]'],
      },
      {
        name: 'reads the request from a VMI without a VM',
        given: { vmi: vmiAsking(FIVE, { vm: null }) },
        expect: ['["10.0.0.5"]'],
      },
      {
        name: 'changes the request of a stopped VM’s claim',
        given: { vm: asking(NINE), claims: [claimFor(['10.0.0.5'])] },
        expect: ['["10.0.0.9"]'],
      },
      {
        name: 'sets the request on the successor of a deleted claim',
        given: { vm: asking(NINE), claims: [claimFor(['10.0.0.5'], { deleting: true, ips: ['10.0.0.5/24'] })] },
        expect: ['["10.0.0.9"]'],
      },
      {
        name: 'keeps the addresses of a claim if the request was removed',
        given: {
          vm: vm({ data: 'blue' }),
          claims: [templateClaimFor(['10.0.0.5'], { deleting: true, ips: ['10.0.0.5/24'] })],
        },
        expect: ['["10.0.0.5/24"]'],
      },
      {
        name: 'keeps the request of a predecessor on the successor of a deleted claim that has no addresses yet',
        given: { vm: vm({ data: 'blue' }), claims: [claimFor(['10.0.0.5'], { deleting: true })] },
        expect: ['["10.0.0.5"]'],
      },
      {
        name: 'does not set a request that was removed on the successor of a deleted claim',
        given: { vm: vm({ data: 'blue' }), claims: [templateClaimFor(['10.0.0.5'], { deleting: true })] },
        expect: [undefined],
      },
      {
        name: 'removes the request of a claim if the template no longer makes it, even while the VM runs',
        given: {
          vm: vm({ data: 'blue' }),
          vmi: vmi({ data: 'blue' }),
          launchers: [running],
          claims: [templateClaimFor(['10.0.0.5'], { ips: ['10.0.0.5/24'] })],
        },
        expect: [null],
      },
      {
        name: 'keeps a request that the template did not make',
        given: { vm: vm({ data: 'blue' }), claims: [claimFor(['10.0.0.5'])] },
        expect: [],
      },
      {
        name: 'keeps the request of a claim while that of the template is invalid',
        given: { vm: asking('{'), claims: [templateClaimFor(['10.0.0.5'])] },
        expect: [],
      },
      {
        name: 'changes the request of a claim that was refused any address, even while the VM starts',
        given: {
          vm: asking(NINE),
          vmi: vmi({ data: 'blue' }),
          launchers: [running],
          claims: [refused(templateClaimFor(['10.0.0.5']))],
        },
        expect: ['["10.0.0.9"]'],
      },
      {
        name: 'sets the request for the network of the VM’s template, not for the one on which it still runs',
        given: {
          vm: asking(NINE, { data: 'green' }),
          vmi: vmi({ data: 'blue' }),
          launchers: [running],
          claims: [claim({ ips: ['10.0.0.5/24'] })],
        },
        expect: ['["10.0.0.9"]'],
      },
    ];
    for (const { name, given, expect: wanted } of table) {
      it(name, () => expect(requests(given)).to.deep.equal(wanted));
    }

    it('changes the request of a claim only if a live read confirms that the VM is stopped', () => {
      const [action] = plan(observationOf({ vm: asking(NINE), claims: [claimFor(['10.0.0.5'])] }));
      expect(action !== undefined && needsConfirmation(action)).to.equal(true);
    });

    const runs = { vmi: vmi({ data: 'blue' }), launchers: [running] };
    itPlansClaims([
      {
        name: 'keeps the claim of a running VM and reports the pending request',
        given: { ...runs, vm: asking(NINE), claims: [claimFor(['10.0.0.5'])] },
        expect: ['keep vm1.data', 'refuse RequestedAddressesPending on vm'],
      },
      {
        name: 'reports nothing if the VM runs with the requested addresses',
        given: { ...runs, vm: asking(FIVE), claims: [claimFor(['10.0.0.5'])] },
        expect: ['keep vm1.data'],
      },
      {
        name: 'reports nothing if the VM runs with the addresses that it requests with a prefix length',
        given: { ...runs, vm: asking({ data: ['10.0.0.5/24'] }), claims: [claim({ ips: ['10.0.0.5/24'] })] },
        expect: ['keep vm1.data'],
      },
      {
        name: 'reports nothing if the VM happens to run with the requested addresses',
        given: { ...runs, vm: asking(FIVE), claims: [claim({ ips: ['10.0.0.5/24'] })] },
        expect: ['keep vm1.data'],
      },
      {
        name: 'creates no claim for an invalid request and reports it; the other interface gets its claim',
        given: { vm: asking({ data: ['10.0.0.5/33'] }, { data: 'blue', extra: 'blue' }) },
        expect: ['wait for vm1.data', 'create vm1.extra for vm-uid', 'refuse RequestedAddressesInvalid on vm'],
      },
      {
        name: 'adopts no claim without an owner if the request is invalid',
        given: { vm: asking('{'), claims: [claim({ owner: null })] },
        expect: ['wait for vm1.data', 'refuse RequestedAddressesInvalid on vm'],
      },
      {
        name: 'keeps an existing claim if the request is invalid',
        given: { vm: asking('{'), claims: [claim()] },
        expect: ['keep vm1.data', 'refuse RequestedAddressesInvalid on vm'],
      },
      {
        name: 'reports a VM on a NAD of Holdfast that does not decide whether addresses persist',
        given: { vm: vm({ data: 'blue' }), nads: [nad('blue', { name: 'blue-net', ipam: { type: 'holdfast' } })] },
        expect: ['refuse AddressNotPersistent on vm'],
      },
      {
        name: 'reports a VM on a NAD that misspells the flag',
        given: { vm: vm({ data: 'blue' }), nads: [nad('blue', { name: 'blue-net', allowPersistentIP: true })] },
        expect: ['refuse AddressNotPersistent on vm'],
      },
      {
        name: 'reports nothing on a NAD whose owner wants other addresses at each start',
        given: {
          vm: vm({ data: 'blue' }),
          nads: [nad('blue', { name: 'blue-net', allowPersistentIPs: false, ipam: { type: 'holdfast' } })],
        },
        expect: [],
      },
      {
        name: 'ignores requests while the feature gate is closed',
        given: { vm: asking({ data: 'x', dta: ['10.0.0.5'] }), gateClosed: true },
        expect: [],
      },
    ]);

    const vain: { name: string; given: WorkloadScenario; says: (string | RegExp)[] }[] = [
      {
        name: 'names the network that the VM does not have, and those that it has',
        given: { vm: asking({ dta: ['10.0.0.5'], data: ['10.0.0.6'], 'e"x': [] }) },
        says: [
          'network.kubevirt.io/addresses: the VM has no network "dta", "e\\"x" (it has "default", "data"): correct the name, or remove it from the annotation',
        ],
      },
      {
        name: 'names the unknown network if the VM has no persistent addresses at all',
        given: { vm: asking({ dta: ['10.0.0.5'] }), nads: [PLAIN_BLUE] },
        says: [/no network "dta"/],
      },
      {
        name: 'names the unknown network of a VMI without a VM',
        given: { vmi: vmiAsking({ dta: ['10.0.0.5'] }, { vm: null }) },
        says: [/no network "dta"/],
      },
      {
        name: 'names a network that was removed from the template although the VM still runs on it',
        given: { ...runs, vm: asking(FIVE, { extra: 'green' }), claims: [claim()] },
        says: [/no network "data" \(it has "default", "extra"\)/],
      },
      {
        name: 'reports a request for a network whose NAD does not allow persistent IPs',
        given: { vm: asking(FIVE), nads: [PLAIN_BLUE] },
        says: [
          /^network\.kubevirt\.io\/addresses: network "data": NetworkAttachmentDefinition vms\/blue does not allow persistent IPs.*: set "allowPersistentIPs": true/,
        ],
      },
      {
        name: 'reports only the NAD if it is missing or invalid',
        given: {
          vm: asking({ data: ['10.0.0.5'], extra: ['10.0.0.6'] }, { data: 'x', extra: 'blue' }),
          nads: [BROKEN_BLUE],
        },
        says: [/vms\/x does not exist/, /vms\/blue: .*allowPersistentIPs/],
      },
      {
        name: 'reports nothing if the claim stays although the NAD lost the flag',
        given: { vm: asking(FIVE), nads: [PLAIN_BLUE], claims: [claimFor(['10.0.0.5'])] },
        says: [],
      },
      {
        name: 'reports nothing for the primary network, which another IPAM serves',
        given: { vm: asking({ default: ['10.0.0.5'] }) },
        says: [],
      },
      {
        name: 'reports nothing for a network that is being unplugged',
        given: { vm: asking({ extra: ['10.0.0.5'] }, { data: 'blue', extra: '!blue' }), nads: [PLAIN_BLUE] },
        says: [],
      },
    ];
    for (const { name, given, says } of vain) {
      it(name, () => {
        const told = plan(observationOf(given)).flatMap((action) => (action.kind === 'refuse' ? [action.event] : []));
        expect(told.map(({ message }) => message)).to.have.lengthOf(says.length);
        says.forEach((text, index) => {
          if (typeof text === 'string') expect(told[index]?.message).to.equal(text);
          else expect(told[index]?.message).to.match(text);
        });
      });
    }
  });
});
