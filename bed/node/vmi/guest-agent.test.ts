import { expect } from 'chai';
import { withGuestAgent, type AgentInterface } from './guest-agent.js';
import type { GuestInterface } from './virtual-machine-instance.js';

const MAC = '02:00:00:00:00:07';

interface Case {
  readonly name: string;
  /** Addresses of the launcher. */
  readonly launcher: readonly string[];
  readonly guest: readonly string[];
  readonly expected: readonly string[] | undefined;
}

/** The rules of updateVMIIfaceStatusWithGuestAgentData in KubeVirt's netstat.go. */
const CASES: readonly Case[] = [
  {
    name: 'are those of the guest if the launcher has none',
    launcher: [],
    guest: ['10.0.0.7', 'fe80::7'],
    expected: ['10.0.0.7', 'fe80::7'],
  },
  {
    name: 'are those of the launcher if both have some of that family',
    launcher: ['10.0.0.5'],
    guest: ['10.0.0.7', 'fd00::7'],
    expected: ['10.0.0.5', 'fd00::7'],
  },
  {
    name: 'lack a family that the guest does not have',
    launcher: ['10.0.0.5', 'fd00::5'],
    guest: ['fd00::7'],
    expected: ['fd00::5'],
  },
  { name: 'are absent if the guest has none', launcher: ['10.0.0.5', 'fd00::5'], guest: [], expected: undefined },
];

describe('The addresses of an interface whose guest has an agent', () => {
  for (const { name, launcher, guest, expected } of CASES) {
    it(name, () => {
      const entry: GuestInterface = { name: 'data', mac: MAC, infoSource: 'domain, multus-status' };
      const shown = launcher.length > 0 ? { ...entry, ipAddress: launcher[0]!, ipAddresses: [...launcher] } : entry;
      const [found] = withGuestAgent([shown], [{ name: 'eth1', mac: MAC, ips: guest }]);
      expect(found?.ipAddresses).to.deep.equal(expected);
      expect(found?.ipAddress).to.equal(expected?.[0]);
      expect(found).to.include({ interfaceName: 'eth1', infoSource: 'domain, guest-agent, multus-status', mac: MAC });
    });
  }
});

describe('The report of a guest agent', () => {
  it('leaves an interface with another MAC address as it is', () => {
    const entry: GuestInterface = { name: 'data', mac: MAC, infoSource: 'domain' };
    expect(withGuestAgent([entry], [])).to.deep.equal([entry]);
  });

  it('adds at most ten interfaces that the VMI does not have, without names', () => {
    const reported: AgentInterface[] = Array.from({ length: 12 }, (_, index) => {
      return { name: `br${index}`, mac: `02:00:00:00:01:${10 + index}`, ips: ['192.168.0.1'] };
    });
    const found = withGuestAgent([], reported);
    expect(found).to.have.length(10);
    expect(found[0]).to.deep.equal({
      mac: '02:00:00:00:01:10',
      interfaceName: 'br0',
      infoSource: 'guest-agent',
      ipAddress: '192.168.0.1',
      ipAddresses: ['192.168.0.1'],
    });
  });
});
