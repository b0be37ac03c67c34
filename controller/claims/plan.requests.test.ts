import { expect } from 'chai';
import type { VirtualMachine, VirtualMachineInstance } from '../../api/kubevirt.js';
import { type WorkloadClaimOptions, type Networks, claim, launcher, vm, vmi } from '../../test/workload-objects.js';
import { itPlansClaims } from './testing/claim-plan-cases.js';
import { BROKEN_BLUE, type WorkloadScenario, PLAIN_BLUE, observationOf } from './testing/workload-observation.js';
import { needsConfirmation } from './confirm.js';
import { plan } from './plan.js';

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

/** What claims that are made or changed are to ask for. */
function requests(given: WorkloadScenario): (string | null | undefined)[] {
  return plan(observationOf(given)).flatMap((action) => {
    if (action.kind === 'create') return [action.claim.metadata.annotations?.[REQUESTED]];
    if (action.kind === 'update') return [action.set.annotations?.[REQUESTED]];
    return action.kind === 'release' ? [action.successor?.metadata.annotations?.[REQUESTED]] : [];
  });
}

describe('plan', () => {
  describe('for a VM that asks for addresses', () => {
    const table: { name: string; given: WorkloadScenario; expect: (string | undefined)[] }[] = [
      { name: 'makes a claim that asks for them', given: { vm: asking(FIVE) }, expect: ['["10.0.0.5"]'] },
      {
        name: 'makes one that asks for none where it does not',
        given: { vm: vm({ data: 'blue' }) },
        expect: [undefined],
      },
      {
        name: 'asks only for the network that is named',
        given: { vm: asking(FIVE, { data: 'blue', extra: 'blue' }) },
        expect: ['["10.0.0.5"]', undefined],
      },
      {
        name: 'hears of it from the VMI of a VM not seen yet',
        given: { vmi: vmiAsking(FIVE) },
        expect: ['["10.0.0.5"]'],
      },
      {
        name: 'hears of it from a VMI without a VM',
        given: { vmi: vmiAsking(FIVE, { vm: null }) },
        expect: ['["10.0.0.5"]'],
      },
      {
        name: 'changes the claim of a stopped VM',
        given: { vm: asking(NINE), claims: [claimFor(['10.0.0.5'])] },
        expect: ['["10.0.0.9"]'],
      },
      {
        name: 'lets a claim that was deleted be followed by one that asks for them',
        given: { vm: asking(NINE), claims: [claimFor(['10.0.0.5'], { deleting: true, ips: ['10.0.0.5/24'] })] },
        expect: ['["10.0.0.9"]'],
      },
      {
        name: 'lets a claim keep its addresses where the request is gone',
        given: { vm: vm({ data: 'blue' }), claims: [claimFor(['10.0.0.5'], { deleting: true })] },
        expect: ['["10.0.0.5"]'],
      },
      {
        name: 'asks on the network that the VM shall have, not on the one that it still runs on',
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

    it('changes a claim only when the API server says, too, that the VM is stopped', () => {
      const [action] = plan(observationOf({ vm: asking(NINE), claims: [claimFor(['10.0.0.5'])] }));
      expect(action !== undefined && needsConfirmation(action)).to.equal(true);
    });

    const runs = { vmi: vmi({ data: 'blue' }), launchers: [running] };
    itPlansClaims([
      {
        name: 'keeps the claim of a VM that runs, and says so',
        given: { ...runs, vm: asking(NINE), claims: [claimFor(['10.0.0.5'])] },
        expect: ['keep vm1.data', 'refuse RequestedAddressesPending on vm'],
      },
      {
        name: 'has nothing to say where the VM runs with what it asks for',
        given: { ...runs, vm: asking(FIVE), claims: [claimFor(['10.0.0.5'])] },
        expect: ['keep vm1.data'],
      },
      {
        name: 'has nothing to say where the VM happens to run with what it asks for',
        given: { ...runs, vm: asking(FIVE), claims: [claim({ ips: ['10.0.0.5/24'] })] },
        expect: ['keep vm1.data'],
      },
      {
        name: 'makes no claim where the request cannot be read, and says so; the other interface gets its claim',
        given: { vm: asking({ data: ['10.0.0.5/24'] }, { data: 'blue', extra: 'blue' }) },
        expect: ['wait for vm1.data', 'create vm1.extra for vm-uid', 'refuse RequestedAddressesInvalid on vm'],
      },
      {
        name: 'adopts no claim of nobody where the request cannot be read',
        given: { vm: asking('{'), claims: [claim({ owner: null })] },
        expect: ['wait for vm1.data', 'refuse RequestedAddressesInvalid on vm'],
      },
      {
        name: 'keeps the claim that is there where the request cannot be read',
        given: { vm: asking('{'), claims: [claim()] },
        expect: ['keep vm1.data', 'refuse RequestedAddressesInvalid on vm'],
      },
      {
        name: 'does not mind what is asked for while the gate is closed',
        given: { vm: asking({ data: 'x', dta: ['10.0.0.5'] }), gateClosed: true },
        expect: [],
      },
    ]);

    const vain: { name: string; given: WorkloadScenario; says: (string | RegExp)[] }[] = [
      {
        name: 'says which network the VM does not have, and which it has',
        given: { vm: asking({ dta: ['10.0.0.5'], data: ['10.0.0.6'], 'e"x': [] }) },
        says: [
          'network.kubevirt.io/addresses: the VM has no network "dta", "e\\"x" (it has "default", "data"): correct the name, or remove it from the annotation',
        ],
      },
      {
        name: 'says it of a VM whose networks have no persistent addresses at all',
        given: { vm: asking({ dta: ['10.0.0.5'] }), nads: [PLAIN_BLUE] },
        says: [/no network "dta"/],
      },
      {
        name: 'says it of a VMI without a VM',
        given: { vmi: vmiAsking({ dta: ['10.0.0.5'] }, { vm: null }) },
        says: [/no network "dta"/],
      },
      {
        name: 'says it of a network that was taken out of the template, though the VM still runs on it',
        given: { ...runs, vm: asking(FIVE, { extra: 'green' }), claims: [claim()] },
        says: [/no network "data" \(it has "default", "extra"\)/],
      },
      {
        name: 'says that a network whose NAD does not allow persistent IPs has no claim to ask through',
        given: { vm: asking(FIVE), nads: [PLAIN_BLUE] },
        says: [
          /^network\.kubevirt\.io\/addresses: network "data": NetworkAttachmentDefinition vms\/blue does not allow persistent IPs.*: set "allowPersistentIPs": true/,
        ],
      },
      {
        name: 'leaves it at that where the NAD is not there or cannot be read: that is told anyway',
        given: {
          vm: asking({ data: ['10.0.0.5'], extra: ['10.0.0.6'] }, { data: 'x', extra: 'blue' }),
          nads: [BROKEN_BLUE],
        },
        says: [/vms\/x does not exist/, /vms\/blue: .*allowPersistentIPs/],
      },
      {
        name: 'has nothing to say where the claim stays though the NAD has lost the flag',
        given: { vm: asking(FIVE), nads: [PLAIN_BLUE], claims: [claimFor(['10.0.0.5'])] },
        says: [],
      },
      {
        name: 'has nothing to say about the primary network, which others serve',
        given: { vm: asking({ default: ['10.0.0.5'] }) },
        says: [],
      },
      {
        name: 'has nothing to say about a network that is being unplugged',
        given: { vm: asking({ extra: ['10.0.0.5'] }, { data: 'blue', extra: '!blue' }), nads: [PLAIN_BLUE] },
        says: [],
      },
    ];
    for (const { name, given, says } of vain) {
      it(name, () => {
        const told = plan(observationOf(given)).flatMap((action) => (action.kind === 'refuse' ? [action.notice] : []));
        expect(told.map(({ message }) => message)).to.have.lengthOf(says.length);
        says.forEach((text, index) => {
          if (typeof text === 'string') expect(told[index]?.message).to.equal(text);
          else expect(told[index]?.message).to.match(text);
        });
      });
    }
  });
});
