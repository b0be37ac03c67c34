import { expect } from 'chai';
import { type IPAMClaim, swappedClaimName } from '../../../api/ipam-claim.js';
import type { VirtualMachineInstance } from '../../../api/kubevirt.js';
import { CLAIM_GUEST_MAC, CLAIM_MAC, CLAIM_RESTORED } from '../../../api/names.js';
import { type WorkloadClaimOptions, claim, launcher, nad, vm, vmi } from '../../../test/objects/workload-objects.js';
import { type WorkloadScenario, observationOf } from '../testing/workload-observation.js';
import { needsConfirmation, plan } from './plan.js';

const MAC = '02:00:00:00:00:ab';
const GENERATED = '02:00:00:00:00:02';
const LAYER2 = { type: 'bridge', bridge: 'br1', allowPersistentIPs: true };
const BLUE = nad('blue', { ...LAYER2, name: 'blue-net' });
const GREEN = nad('green', { ...LAYER2, name: 'blue-net' });
const OTHER = nad('green', { ...LAYER2, name: 'green-net' });
const WITH_IPAM = nad('blue', { ...LAYER2, name: 'blue-net', ipam: { type: 'holdfast' } });

interface RunningVmi {
  /** The MAC address in its spec. */
  specified?: string;
  /** The MAC address in its status. */
  reported?: string;
  infoSource?: string;
  phase?: string;
  nad?: string;
  deleting?: boolean;
}

function running(options: RunningVmi = {}): VirtualMachineInstance {
  const { specified = '', reported, infoSource = 'domain, guest-agent', phase = 'Running' } = options;
  const made = vmiOf(options);
  for (const each of made.spec?.domain?.devices?.interfaces ?? []) each.macAddress = specified;
  const interfaces = reported === undefined ? [] : [{ name: 'data', mac: reported, infoSource }];
  return { ...made, status: { phase, interfaces } };
}

function vmiOf({ nad: nadName = 'blue', deleting = false }: RunningVmi): VirtualMachineInstance {
  return vmi({ data: nadName }, { deleting });
}

function claimWith(mac: string, options: WorkloadClaimOptions = {}): IPAMClaim {
  const made = claim(options);
  made.metadata.annotations = { ...made.metadata.annotations, [CLAIM_GUEST_MAC]: mac };
  return made;
}

const data = vm({ data: 'blue' });
const specified = running({ specified: MAC });
const pod = launcher([{ nad: 'blue', claim: 'vm1.data' }], { status: [{ nad: 'blue' }] });

/** What the plan writes, by claim: null removes it, undefined is a new claim without it. */
function writes(given: WorkloadScenario): Record<string, string | null | undefined> {
  const written: Record<string, string | null | undefined> = {};
  for (const action of plan(observationOf({ nads: [BLUE, GREEN], ...given }))) {
    if (action.kind !== 'create' && action.kind !== 'update') continue;
    const { annotations = {} } = action.kind === 'create' ? action.claim.metadata : action.set;
    if (action.kind === 'create' || CLAIM_GUEST_MAC in annotations)
      written[action.claim.metadata.name] = annotations[CLAIM_GUEST_MAC];
  }
  return written;
}

describe('the MAC address of a running guest on its claim', () => {
  const table: { name: string; given: WorkloadScenario; expect: Record<string, string | null | undefined> }[] = [
    {
      name: 'is that of the running VMI’s spec, in the form of leases',
      given: { vm: data, vmi: running({ specified: '02-00-00-00-00-AB' }), claims: [claim({})] },
      expect: { 'vm1.data': MAC },
    },
    {
      name: 'is that of libvirt’s domain if the spec has none',
      given: { vm: data, vmi: running({ reported: GENERATED }), claims: [claim({})] },
      expect: { 'vm1.data': GENERATED },
    },
    {
      name: 'is that of the spec although the domain has another one',
      given: { vm: data, vmi: running({ specified: MAC, reported: GENERATED }), claims: [claim({})] },
      expect: { 'vm1.data': MAC },
    },
    {
      name: 'is never what only the guest’s agent or Multus reports',
      given: {
        vm: data,
        vmi: running({ reported: GENERATED, infoSource: 'guest-agent, multus-status' }),
        claims: [claim({})],
      },
      expect: {},
    },
    { name: 'is written with a new claim', given: { vm: data, vmi: specified }, expect: { 'vm1.data': MAC } },
    { name: 'is written once', given: { vm: data, vmi: specified, claims: [claimWith(MAC)] }, expect: {} },
    {
      name: 'is replaced if the VM started with another one',
      given: { vm: data, vmi: running({ reported: MAC }), claims: [claimWith(GENERATED)] },
      expect: { 'vm1.data': MAC },
    },
    {
      name: 'stays while the guest shuts down',
      given: { vm: data, vmi: running({ specified: MAC, deleting: true }), claims: [claimWith(MAC)] },
      expect: {},
    },
    ...['Succeeded', 'Failed'].map((phase) => ({
      name: `is removed when the phase is ${phase}`,
      given: { vm: data, vmi: running({ specified: MAC, phase }), claims: [claimWith(MAC)] },
      expect: { 'vm1.data': null },
    })),
    {
      name: 'is removed when the VM has stopped',
      given: { vm: data, claims: [claimWith(MAC)] },
      expect: { 'vm1.data': null },
    },
    {
      name: 'is not that of the template of a stopped VM',
      given: { vm: data, vmi: running({ specified: MAC, phase: 'Succeeded' }), claims: [claim({})] },
      expect: {},
    },
    {
      name: 'is removed if KubeVirt is to unplug the interface',
      given: { vm: data, vmi: running({ specified: MAC, nad: '!blue' }), claims: [claimWith(MAC)], launchers: [pod] },
      expect: { 'vm1.data': null },
    },
    {
      name: 'is not written for a NAD that gives the address to the pod',
      given: { vm: data, vmi: specified, claims: [claim({})], nads: [WITH_IPAM] },
      expect: {},
    },
    {
      name: 'stays while NADs are not listed',
      given: { vm: data, vmi: specified, claims: [claimWith(MAC)], nads: [WITH_IPAM], areNetworksKnown: false },
      expect: {},
    },
    {
      name: 'is removed if the NAD gets an IPAM',
      given: { vm: data, vmi: specified, claims: [claimWith(MAC)], nads: [WITH_IPAM] },
      expect: { 'vm1.data': null },
    },
    {
      name: 'stays on the claim of the running NAD if the template names another NAD of its network',
      given: { vm: vm({ data: 'green' }), vmi: specified, claims: [claimWith(MAC)] },
      expect: {},
    },
    {
      name: 'is not on the claim of a network that the guest gets when it starts again',
      given: {
        vm: vm({ data: 'green' }),
        vmi: specified,
        claims: [claimWith(MAC)],
        launchers: [pod],
        nads: [BLUE, OTHER],
      },
      expect: { [swappedClaimName('vm1', 'data', 'green-net')]: undefined },
    },
    {
      name: 'is not that of a VMI of another VM of the name',
      given: { vm: data, vmi: vmi({ data: 'blue' }, { vm: 'other-uid' }), claims: [claimWith(MAC)] },
      expect: { 'vm1.data': null },
    },
    {
      name: 'is removed from a restored claim that a stopped VM adopts',
      given: { vm: data, claims: [restored()] },
      expect: { 'vm1.data': null },
    },
  ];
  for (const { name, given, expect: wanted } of table) {
    it(name, () => expect(writes(given)).to.deep.equal(wanted));
  }

  it('is written without a live read because it changes no address', () => {
    const [action] = plan(observationOf({ vm: data, vmi: specified, claims: [claim({})], nads: [BLUE] }));
    expect(action?.kind === 'update' && !needsConfirmation(action)).to.equal(true);
  });

  it('stays on a claim that a user deleted while its VM runs', () => {
    const deleted = claimWith(MAC, { deleting: true });
    expect(writes({ vm: data, vmi: specified, claims: [deleted], launchers: [pod] })).to.deep.equal({});
  });

  it('leaves the MAC address that the spec asks for alone', () => {
    const made = claimWith(MAC);
    made.metadata.annotations = { ...made.metadata.annotations, [CLAIM_MAC]: MAC };
    const template = structuredClone(data);
    const [first] = template.spec?.template?.spec?.domain?.devices?.interfaces ?? [];
    if (first !== undefined) first.macAddress = MAC;
    const [action] = plan(observationOf({ vm: template, claims: [made], nads: [BLUE] }));
    expect(action?.kind === 'update' && action.set.annotations).to.deep.equal({ [CLAIM_GUEST_MAC]: null });
  });
});

function restored(): IPAMClaim {
  const made = claimWith(MAC, { owner: null, recordedOwner: { name: 'vm1', uid: 'gone-uid' } });
  made.metadata.annotations = { ...made.metadata.annotations, [CLAIM_RESTORED]: 'true' };
  return made;
}
