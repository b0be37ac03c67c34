import { expect } from 'chai';
import type { Server } from 'node:net';
import { parseAddress } from '../../addressing/address/address.js';
import { type GuardedPort, guardRules } from '../../cni/agent/guard/claim-rules.js';
import { useWireFixture } from '../../bed/network/fixture/use-wire-fixture.js';
import { bridgeNetwork, type WireFixture } from '../../bed/network/fixture/wire-fixture.js';
import { ethernet } from '../../bed/network/frames.js';
import { ATTACKS, type SegmentHost } from '../../bed/network/guard/attacks.js';
import { type Frames, MarkedFrames } from '../../bed/network/guard/marked-frames.js';
import { OWN_TRAFFIC } from '../../bed/network/guard/own-traffic.js';
import { answerAdds, type PortAnswer } from '../../bed/network/guard/rule-agent.js';
import { nodeFolder } from '../../bed/network/open-pod-networks.js';
import type { WireLocation } from '../../bed/network/wire.js';
import { until } from '../../bed/processes/wait.js';
import { bareAddress } from '../../test/bare-address.js';

const INTERFACE = 'podnet';
const SEGMENT = 'guarded';
const GUEST: SegmentHost = { mac: '02:00:00:00:55:07', ipv4: '192.168.55.7', ipv6: 'fd00:55::7' };
const ADDRESSES = [`${GUEST.ipv4}/24`, `${GUEST.ipv6}/64`];

const LAST = 'holdfast-last';
/** Bridges pass them to multicast routers only, with a guard or without. */
const STOPPED_BY_BRIDGES = ['an IGMP report'];

describe('A guarded port on a real bridge', () => {
  let stage: WireFixture;
  let agent: Server | undefined;
  let answer: PortAnswer = { addresses: ADDRESSES };
  let neighbour: SegmentHost;

  useWireFixture((opened) => {
    stage = opened;
  });

  before('add a neighbour, and an agent', async () => {
    await stage.wire.join('node-1', SEGMENT);
    const addresses = ['192.168.55.8/24', 'fd00:55::8/64'];
    await stage.wire.addHost('guard-neighbour', SEGMENT, addresses);
    const [{ mac } = { mac: '' }] = await stage.wire.interfaces('host/guard-neighbour');
    const [ipv4 = '', ipv6 = ''] = addresses.map(bareAddress);
    neighbour = { mac, ipv4, ipv6 };
    await stage.createNetwork(SEGMENT, bridgeNetwork(SEGMENT, { type: 'holdfast' }));
    agent = await answerAdds(`${nodeFolder(stage.plane, 'node-1')}/run-holdfast`, () => answer);
  });

  after('stop the agent', () => agent?.close());

  it('passes no attack with Enforce, and all that the guest sends with its own addresses', async () => {
    const unguarded = await received(await attach(undefined), OWN_TRAFFIC);
    await stage.removePods();
    const guest = await attach(rules());
    expect(await received(guest, ATTACKS)).to.deep.equal([]);
    expect(await received(guest, OWN_TRAFFIC)).to.deep.equal(unguarded);
    expect(Object.keys(OWN_TRAFFIC).filter((name) => !unguarded.includes(name))).to.deep.equal(STOPPED_BY_BRIDGES);
  });

  it('would pass every attack without a guard', async () => {
    const guest = await attach(undefined);
    expect(await received(guest, ATTACKS)).to.have.members(Object.keys(ATTACKS));
  });

  it('passes attacks with Observe', async () => {
    const guest = await attach(rules({ mode: 'Observe' }));
    expect(await received(guest, ATTACKS)).to.have.members(Object.keys(ATTACKS));
  });

  it('lets no switch learn a MAC address of a flood', async () => {
    const guest = await attach(rules());
    const flood = Array.from({ length: 1000 }, (_, number) => {
      const digits = number.toString(16).padStart(4, '0');
      return ethernet({
        from: `02:f1:00:d0:${digits.slice(0, 2)}:${digits.slice(2)}`,
        type: 0x0800,
        body: Buffer.alloc(46),
      });
    });
    await stage.wire.sendFrames(guest, INTERFACE, flood);
    expect(await received(guest, { last: OWN_TRAFFIC['an ARP request']! })).to.deep.equal(['last']);
    const args = ['fdb', 'show', 'br', SEGMENT];
    for (const place of ['node/node-1', 'fabric'] as const) {
      const { stdout } = await stage.wire.run(place, { command: '/sbin/bridge', args });
      expect(stdout).to.include(GUEST.mac).and.not.to.include('02:f1');
    }
  });

  it('is held until the reverse ARP of the guest, and no other one ends the hold', async () => {
    const guest = await attach(rules({ isHeld: true }));
    const { 'a reverse ARP': own, ...others } = OWN_TRAFFIC;
    expect(await received(guest, { ...others, ...ATTACKS })).to.deep.equal([]);
    expect(await received(guest, { own: own! })).to.deep.equal(['own']);
    const now = await received(guest, others);
    expect(Object.keys(others).filter((name) => !now.includes(name))).to.deep.equal(STOPPED_BY_BRIDGES);
  });

  function rules(more: Partial<GuardedPort> = {}): object {
    const addresses = ADDRESSES.map((address) => parseAddress(bareAddress(address)));
    const allowed = { addresses: [], macs: [] };
    return guardRules({ mode: 'Enforce', mac: GUEST.mac, addresses, allowed, isHeld: false, vlans: [], ...more });
  }

  async function attach(guard: object | undefined): Promise<WireLocation> {
    answer = { addresses: ADDRESSES, ...(guard && { guard }) };
    const pod = await stage.createPod('node-1', [{ name: SEGMENT, interface: INTERFACE, mac: GUEST.mac }]);
    return (await stage.networks.attach(pod)).location;
  }

  /** Sends frames and returns the names of those that the neighbour has received. */
  async function received(guest: WireLocation, frames: Frames): Promise<string[]> {
    const marked = new MarkedFrames(frames, GUEST, neighbour);
    const capture = await stage.wire.capture('host/guard-neighbour', 'eth0', '');
    await stage.wire.sendFrames(guest, INTERFACE, marked.frames);
    // Whatever the guard does, a frame of the node itself comes after all others.
    const last = { from: '02:00:00:00:55:01', type: 0x88b5, body: Buffer.alloc(46) };
    await stage.wire.sendFrames('node/node-1', SEGMENT, [ethernet(last, LAST)]);
    await until('the last frame to arrive', () => Promise.resolve(capture.frames.some((each) => each.includes(LAST))));
    await capture.stop();
    return marked.among(capture.frames);
  }
});
