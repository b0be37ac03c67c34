import { expect } from 'chai';
import fc from 'fast-check';
import type { VmiInterfaceStatus } from '../../api/kubevirt.js';
import { parseAddress } from '../../addressing/address/address.js';
import { type InterfaceReport, guestConfigured } from './guest-configured.js';

const AGENT = 'domain, guest-agent, multus-status';
const V4 = '10.1.0.5';
const V6 = 'fd00:1::5';

function check(
  status: VmiInterfaceStatus | undefined,
  launcherHasAddresses: InterfaceReport['launcherHasAddresses'] = 'no',
  claimed = [V4],
) {
  return guestConfigured({ vmNetwork: 'data', claimed: claimed.map(parseAddress), status, launcherHasAddresses });
}

const withAgent = (...ipAddresses: string[]): VmiInterfaceStatus => ({ name: 'data', infoSource: AGENT, ipAddresses });
const withoutAgent = (...ipAddresses: string[]): VmiInterfaceStatus => ({ infoSource: 'domain', ipAddresses });

describe('the condition GuestConfigured', () => {
  const cases: { name: string; given: Parameters<typeof check>; expect: [string, string, string] }[] = [
    {
      name: 'is True if the agent reports the address',
      given: [withAgent(V4)],
      expect: ['True', 'Configured', 'The guest has 10.1.0.5 on "data"'],
    },
    {
      name: 'is True if the guest has more addresses than its own',
      given: [withAgent('10.1.0.9', V4, 'fe80::1')],
      expect: ['True', 'Configured', 'The guest has 10.1.0.5'],
    },
    {
      name: 'is False if the agent reports another address',
      given: [withAgent('10.1.0.7')],
      expect: [
        'False',
        'OtherAddress',
        'The guest has 10.1.0.7 on "data", its claim says 10.1.0.5: renew DHCP, or restart the VM',
      ],
    },
    {
      name: 'is False if the agent reports no address of the family',
      given: [withAgent('fe80::1', V6)],
      expect: ['False', 'AddressMissing', 'The guest has no IPv4 address on "data", its claim says 10.1.0.5'],
    },
    {
      name: 'is False for one family although the other one is right',
      given: [withAgent(V4, 'fe80::1'), 'no', [V4, V6]],
      expect: ['False', 'AddressMissing', 'The guest has no IPv6 address on "data", its claim says fd00:1::5'],
    },
    {
      name: 'is Unknown without a guest agent',
      given: [withoutAgent()],
      expect: ['Unknown', 'NoGuestAgent', 'Without a guest agent, nobody knows the addresses of the guest on "data"'],
    },
    {
      name: 'is Unknown before KubeVirt shows the interface',
      given: [undefined],
      expect: ['Unknown', 'NoGuestAgent', ''],
    },
    {
      name: 'is Unknown if KubeVirt shows the address of the launcher',
      given: [withAgent(V4), 'yes'],
      expect: ['Unknown', 'ShownFromLauncher', 'KubeVirt shows the IPv4 address of the launcher on "data"'],
    },
    {
      name: 'is False if the launcher has the address and the agent none, which KubeVirt then removes',
      given: [withAgent(), 'yes'],
      expect: ['False', 'AddressMissing', 'The guest has no IPv4 address'],
    },
    {
      name: 'is Unknown if the launcher may have made an IPv6 address by itself',
      given: [withAgent('fd00:1::abcd'), 'by-itself', [V6]],
      expect: ['Unknown', 'ShownFromLauncher', 'set disableContainerInterface in the NetworkAttachmentDefinition'],
    },
    {
      name: 'is True for the IPv6 address of the claim, which the launcher cannot make by itself',
      given: [withAgent(V6), 'by-itself', [V6]],
      expect: ['True', 'Configured', 'The guest has fd00:1::5'],
    },
    {
      name: 'reads addresses in any notation, and ignores what is none',
      given: [withAgent('FD00:0001:0::0005', 'rm -rf', '10.1.0.5/24'), 'no', [V4, V6]],
      expect: ['True', 'Configured', 'The guest has 10.1.0.5 on "data". The guest has fd00:1::5 on "data"'],
    },
  ];
  for (const {
    name,
    given,
    expect: [status, reason, message],
  } of cases) {
    it(name, () => {
      const found = check(...given);
      expect([found.status, found.reason]).to.deep.equal([status, reason]);
      expect(found.message).to.include(message);
    });
  }

  it('repeats nothing of what a guest reports but addresses', () => {
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.ipV4(), fc.ipV6());
    fc.assert(
      fc.property(fc.array(text, { maxLength: 16 }), text, (ipAddresses, infoSource) => {
        const { message } = check({ infoSource: `guest-agent,${infoSource}`, ipAddresses }, 'no', [V4, V6]);
        expect(message).to.match(/^[ -~]{1,500}$/);
      }),
      { numRuns: 50 },
    );
  });
});
