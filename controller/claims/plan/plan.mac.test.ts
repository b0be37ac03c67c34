import { expect } from 'chai';
import type { IPAMClaim } from '../../../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../../../api/kubevirt.js';
import { CLAIM_MAC } from '../../../api/names.js';
import { claim, launcher, vm, vmi } from '../../../test/objects/workload-objects.js';
import { itPlansClaims } from '../testing/claim-plan-cases.js';
import { type WorkloadScenario, observationOf } from '../testing/workload-observation.js';
import { needsConfirmation, plan } from './plan.js';

const MAC = '02:00:00:00:00:ab';
const OTHER = '02:00:00:00:00:02';
const running = launcher([{ nad: 'blue', claim: 'vm1.data' }], { status: [{ nad: 'blue' }] });

function withMac<T extends VirtualMachine | VirtualMachineInstance>(made: T, mac: string, name = 'data'): T {
  const spec = 'template' in (made.spec ?? {}) ? (made as VirtualMachine).spec?.template?.spec : made.spec;
  for (const each of (spec as VirtualMachineInstance['spec'])?.domain?.devices?.interfaces ?? []) {
    if (each.name === name) each.macAddress = mac;
  }
  return made;
}

const vmWith = (mac: string, networks: Record<string, string> = { data: 'blue' }) => withMac(vm(networks), mac);

function claimWith(mac: string, options: Parameters<typeof claim>[0] = {}): IPAMClaim {
  const made = claim(options);
  made.metadata.annotations = { ...made.metadata.annotations, [CLAIM_MAC]: mac };
  return made;
}

/** What claims that are made or changed are to say; null: nothing any more. */
function macs(given: WorkloadScenario): (string | null | undefined)[] {
  return plan(observationOf(given)).flatMap((action) => {
    if (action.kind === 'create') return [action.claim.metadata.annotations?.[CLAIM_MAC]];
    if (action.kind === 'update') return [action.set.annotations?.[CLAIM_MAC]];
    return action.kind === 'release' ? [action.successor?.metadata.annotations?.[CLAIM_MAC]] : [];
  });
}

describe('the plan for a VM that specifies the MAC address of an interface', () => {
  const table: { name: string; given: WorkloadScenario; expect: (string | null | undefined)[] }[] = [
    { name: 'creates a claim with the MAC address', given: { vm: vmWith(MAC) }, expect: [MAC] },
    { name: 'writes the MAC address in the form of leases', given: { vm: vmWith('02-00-00-00-00-AB') }, expect: [MAC] },
    {
      name: 'sets it on the claim of the right interface',
      given: { vm: vmWith(MAC, { data: 'blue', extra: 'blue' }) },
      expect: [MAC, undefined],
    },
    {
      name: 'reads it from a VMI without a VM',
      given: { vmi: withMac(vmi({ data: 'blue' }, { vm: null }), MAC) },
      expect: [MAC],
    },
    {
      name: 'reads it from the VMI if the VM is not observed yet',
      given: { vmi: withMac(vmi({ data: 'blue' }), MAC) },
      expect: [MAC],
    },
    {
      name: 'prefers the VM’s over that of the running VMI',
      given: { vm: vmWith(MAC), vmi: withMac(vmi({ data: 'blue' }), OTHER), launchers: [running], claims: [claim({})] },
      expect: [MAC],
    },
    { name: 'changes nothing if the claim has it', given: { vm: vmWith(MAC), claims: [claimWith(MAC)] }, expect: [] },
    { name: 'adds it to an existing claim', given: { vm: vmWith(MAC), claims: [claim({})] }, expect: [MAC] },
    {
      name: 'replaces it if the VM specifies another one',
      given: { vm: vmWith(OTHER), claims: [claimWith(MAC)] },
      expect: [OTHER],
    },
    {
      name: 'removes it if the VM no longer specifies one',
      given: { vm: vm({ data: 'blue' }), claims: [claimWith(MAC)] },
      expect: [null],
    },
    {
      name: 'keeps that of an interface that only the VMI still has',
      given: { vm: vm({}), vmi: withMac(vmi({ data: 'blue' }), MAC), launchers: [running], claims: [claimWith(MAC)] },
      expect: [],
    },
    {
      name: 'sets it on the successor of a deleted claim',
      given: { vm: vmWith(MAC), claims: [claim({ deleting: true })] },
      expect: [MAC],
    },
    { name: 'ignores an invalid MAC address', given: { vm: vmWith('02:00') }, expect: [undefined] },
    {
      name: 'removes an earlier MAC address if the new one is invalid',
      given: { vm: vmWith('02:00'), claims: [claimWith(MAC)] },
      expect: [null],
    },
    { name: 'ignores an empty MAC address', given: { vm: vmWith('') }, expect: [undefined] },
  ];
  for (const { name, given, expect: wanted } of table) {
    it(name, () => expect(macs(given)).to.deep.equal(wanted));
  }

  it('sets it without a live read because it changes no address', () => {
    const [action] = plan(observationOf({ vm: vmWith(MAC), claims: [claim({})] }));
    expect(action !== undefined && needsConfirmation(action)).to.equal(false);
  });

  it('reports an invalid MAC address and what to do', () => {
    const [, event] = plan(observationOf({ vm: vmWith('02:00') }));
    expect(event?.kind === 'refuse' && event.event).to.deep.equal({
      reason: 'MACAddressInvalid',
      message:
        'Interface "data": macAddress "02:00" is not a MAC address, so its addresses are not sticky: write one like 02:00:00:00:00:01, or remove it',
      regarding: 'vm',
    });
  });

  itPlansClaims([
    {
      name: 'creates the claim although its MAC address is invalid',
      given: { vm: vmWith('02:00') },
      expect: ['create vm1.data for vm-uid', 'refuse MACAddressInvalid on vm'],
    },
    {
      name: 'reports nothing for an interface without a claim',
      given: { vm: withMac(vm({ data: 'blue' }), '02:00', 'default'), claims: [claim({})] },
      expect: ['keep vm1.data'],
    },
  ]);
});
