import { expect } from 'chai';
import type { IPAMClaim } from '../../../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../../../api/kubevirt.js';
import { CLAIM_GUEST_MAC, CLAIM_MAC, CLAIM_MAC_SINCE, CLAIM_RESTORED } from '../../../api/names.js';
import {
  type WorkloadClaimOptions,
  claim,
  claimOfIpamExtensions,
  nad,
  vm,
  vmi,
} from '../../../test/objects/workload-objects.js';
import { type WorkloadScenario, NOW, observationOf } from '../testing/workload-observation.js';
import { plan } from './plan.js';

const MAC = '02:00:00:00:00:ab';
const OTHER = '02:00:00:00:00:02';
const LAYER2 = nad('blue', { type: 'bridge', bridge: 'br1', allowPersistentIPs: true, name: 'blue-net' });
const WITH_IPAM = nad('blue', {
  type: 'bridge',
  name: 'blue-net',
  allowPersistentIPs: true,
  ipam: { type: 'holdfast' },
});
const EARLIER = `${MAC} 2025-01-01T00:00:00.000Z`;
const BEGINS = (mac: string) => `${mac} ${new Date(NOW).toISOString()}`;

/** A VM whose template has the MAC address. */
function vmWith(macAddress: string): VirtualMachine {
  const made = vm({ data: 'blue' });
  for (const each of made.spec?.template?.spec?.domain?.devices?.interfaces ?? []) each.macAddress = macAddress;
  return made;
}

/** A running VMI with a MAC address in its spec, or one that KubeVirt generated. */
function running({ specified = '', generated }: { specified?: string; generated?: string }): VirtualMachineInstance {
  const made = vmi({ data: 'blue' });
  for (const each of made.spec?.domain?.devices?.interfaces ?? []) each.macAddress = specified;
  const interfaces = generated === undefined ? [] : [{ name: 'data', mac: generated, infoSource: 'domain' }];
  return { ...made, status: { phase: 'Running', interfaces } };
}

interface Recorded {
  mac?: string;
  guestMac?: string;
  since?: string;
  more?: Record<string, string>;
}

function claimWith({ mac, guestMac, since, more }: Recorded, options: WorkloadClaimOptions = {}): IPAMClaim {
  return annotated(claim(options), {
    [CLAIM_MAC]: mac,
    [CLAIM_GUEST_MAC]: guestMac,
    [CLAIM_MAC_SINCE]: since,
    ...more,
  });
}

function annotated(made: IPAMClaim, annotations: Record<string, string | undefined>): IPAMClaim {
  const given = Object.entries(annotations).filter((each): each is [string, string] => each[1] !== undefined);
  made.metadata.annotations = { ...made.metadata.annotations, ...Object.fromEntries(given) };
  return made;
}

/** What the plan writes about the time: undefined if it writes nothing, null if it removes it. */
function written(given: WorkloadScenario): string | null | undefined {
  const [action] = plan(observationOf({ nads: [LAYER2], ...given }));
  if (action?.kind === 'create') return action.claim.metadata.annotations?.[CLAIM_MAC_SINCE];
  return action?.kind === 'update' ? action.set.annotations?.[CLAIM_MAC_SINCE] : undefined;
}

const stopped = vm({ data: 'blue' });
const restoredFrom = { owner: null, recordedOwner: { name: 'vm1', uid: 'gone-uid' } } as const;

describe('the time since when a claim has its MAC address', () => {
  const table: { name: string; given: WorkloadScenario; expect: string | null | undefined }[] = [
    {
      name: 'is that of its creation if it is created with the MAC address',
      given: { vm: vmWith(MAC), vmi: running({ specified: MAC }) },
      expect: undefined,
    },
    {
      name: 'stays that of its creation on claims of an earlier release',
      given: { vm: vmWith(MAC), vmi: running({ specified: MAC }), claims: [claimWith({ mac: MAC })] },
      expect: undefined,
    },
    {
      name: 'begins when the spec of a VM with an old claim gets a MAC address',
      given: { vm: vmWith(MAC), claims: [claim()] },
      expect: BEGINS(MAC),
    },
    {
      name: 'begins when the MAC address in the spec of a stopped VM changes',
      given: { vm: vmWith(MAC), claims: [claimWith({ mac: OTHER })] },
      expect: BEGINS(MAC),
    },
    {
      name: 'begins when the spec changes also if the NAD gives the address to the pod, because the NAD may change',
      given: { vm: vmWith(MAC), claims: [claimWith({ mac: OTHER })], nads: [WITH_IPAM] },
      expect: BEGINS(MAC),
    },
    {
      name: 'does not change while a guest keeps its MAC address although the template has another one',
      given: {
        vm: vmWith(OTHER),
        vmi: running({ specified: MAC }),
        claims: [claimWith({ mac: OTHER, guestMac: MAC, since: EARLIER })],
      },
      expect: undefined,
    },
    {
      name: 'begins when a VM restarts with the MAC address that its template got while it ran',
      given: { vm: vmWith(MAC), vmi: running({ specified: MAC }), claims: [claimWith({ mac: MAC, guestMac: OTHER })] },
      expect: BEGINS(MAC),
    },
    {
      name: 'begins when such a VM stops',
      given: { vm: vmWith(MAC), claims: [claimWith({ mac: MAC, guestMac: OTHER })] },
      expect: BEGINS(MAC),
    },
    {
      name: 'stays while the VM is stopped',
      given: { vm: vmWith(MAC), claims: [claimWith({ mac: MAC, guestMac: MAC, since: EARLIER })] },
      expect: undefined,
    },
    {
      name: 'stays when the VM starts again',
      given: { vm: vmWith(MAC), vmi: running({ specified: MAC }), claims: [claimWith({ mac: MAC, since: EARLIER })] },
      expect: undefined,
    },
    {
      name: 'begins with each start if KubeVirt generates the MAC address',
      given: { vm: stopped, vmi: running({ generated: MAC }), claims: [claim()] },
      expect: BEGINS(MAC),
    },
    {
      name: 'is removed when a VM with a generated MAC address stops',
      given: { vm: stopped, claims: [claimWith({ guestMac: MAC, since: EARLIER })] },
      expect: null,
    },
    {
      name: 'stays while the NAD of a running guest cannot be read',
      given: {
        vm: stopped,
        vmi: running({ generated: MAC }),
        claims: [claimWith({ guestMac: MAC, since: EARLIER }, { nad: 'vms/blue' })],
        nads: [],
      },
      expect: undefined,
    },
    {
      name: 'stays while KubeVirt does not report the generated MAC address of a running guest',
      given: { vm: stopped, vmi: running({}), claims: [claimWith({ guestMac: MAC, since: EARLIER })] },
      expect: undefined,
    },
    {
      name: 'stays when KubeVirt reports it again',
      given: { vm: stopped, vmi: running({ generated: MAC }), claims: [claimWith({ since: EARLIER })] },
      expect: undefined,
    },
    {
      name: 'begins anew if KubeVirt generated another one meanwhile',
      given: { vm: stopped, vmi: running({ generated: OTHER }), claims: [claimWith({ since: EARLIER })] },
      expect: BEGINS(OTHER),
    },
    {
      name: 'is removed when the MAC address is removed from the spec, so that it begins anew if it comes back',
      given: { vm: stopped, claims: [claimWith({ mac: MAC, since: EARLIER })] },
      expect: null,
    },
    {
      name: 'is not recorded for a guest whose pod gets the address',
      given: { vm: stopped, vmi: running({ generated: MAC }), claims: [claim()], nads: [WITH_IPAM] },
      expect: undefined,
    },
    {
      name: 'begins when a restored claim is adopted, whatever it says',
      given: {
        vm: vmWith(MAC),
        claims: [claimWith({ mac: MAC, since: EARLIER, more: { [CLAIM_RESTORED]: 'true' } }, restoredFrom)],
      },
      expect: BEGINS(MAC),
    },
    {
      name: 'is removed from a restored claim if the VM that adopts it has no MAC address',
      given: {
        vm: stopped,
        claims: [claimWith({ mac: MAC, since: EARLIER, more: { [CLAIM_RESTORED]: 'true' } }, restoredFrom)],
      },
      expect: null,
    },
    {
      name: 'is removed from a restored claim although KubeVirt does not report the MAC address of the guest yet',
      given: {
        vm: stopped,
        vmi: running({}),
        claims: [claimWith({ mac: MAC, since: EARLIER, more: { [CLAIM_RESTORED]: 'true' } }, restoredFrom)],
      },
      expect: null,
    },
    {
      name: 'begins when a claim without an owner is adopted',
      given: {
        vm: vmWith(MAC),
        claims: [claimWith({ mac: MAC, since: EARLIER }, { owner: null, recordedOwner: null })],
      },
      expect: BEGINS(MAC),
    },
    {
      name: 'begins when a claim of kubevirt/ipam-extensions becomes one of Holdfast',
      given: { vm: vmWith(MAC), claims: [claimOfIpamExtensions()] },
      expect: BEGINS(MAC),
    },
  ];
  for (const { name, given, expect: wanted } of table) {
    it(name, () => expect(written(given)).to.equal(wanted));
  }
});
