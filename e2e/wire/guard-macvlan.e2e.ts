import { expect } from 'chai';
import type { Server } from 'node:net';
import { parseAddress } from '../../addressing/address/address.js';
import { guardRules } from '../../cni/agent/guard/claim-rules.js';
import { useWireFixture } from '../../bed/network/fixture/use-wire-fixture.js';
import type { WireFixture } from '../../bed/network/fixture/wire-fixture.js';
import { answerAdds } from '../../bed/network/guard/rule-agent.js';
import { nodeFolder } from '../../bed/network/open-pod-networks.js';
import { until } from '../../bed/processes/wait.js';
import type { WireLocation } from '../../bed/network/wire.js';

const INTERFACE = 'podnet';
const SEGMENT = 'macvlans';
const [OWN, TAKEN, NEIGHBOUR] = ['192.168.56.7', '192.168.56.9', '192.168.56.8'] as const;

describe('A macvlan interface with a guard, of the real plugin', () => {
  let stage: WireFixture;
  let agent: Server | undefined;
  let isGuest = true;

  useWireFixture((opened) => {
    stage = opened;
  });

  before('add a neighbour, and an agent', async () => {
    await stage.wire.join('node-1', SEGMENT);
    await stage.wire.addHost('macvlan-neighbour', SEGMENT, [`${NEIGHBOUR}/24`]);
    await stage.createNetwork(SEGMENT, {
      ...{ cniVersion: '1.0.0', type: 'macvlan', master: SEGMENT, ipam: { type: 'holdfast' } },
    });
    const port = { addresses: [parseAddress(OWN)], allowed: { addresses: [], macs: [] }, isHeld: false, vlans: [] };
    const rules = guardRules({ ...port, mode: 'Enforce' });
    const answer = () => ({ addresses: [`${OWN}/24`], guard: { ...rules, isGuest } });
    agent = await answerAdds(`${nodeFolder(stage.plane, 'node-1')}/run-holdfast`, answer);
  });

  after('stop the agent', () => agent?.close());

  it('sends only with its own address', async () => {
    isGuest = true;
    const { location } = await attach();
    await until('the neighbour to answer', () => answers(location));
    for (const args of [
      ['address', 'add', `${TAKEN}/24`, 'dev', INTERFACE],
      ['route', 'add', `${NEIGHBOUR}/32`, 'dev', INTERFACE, 'src', TAKEN],
    ])
      expect(await stage.wire.run(location, { command: '/usr/sbin/ip', args })).to.include({ exitCode: 0 });
    expect(await answers(location)).to.equal(false);
  });

  it('is refused to a pod that is no virtual machine, whose containers could get past the guard', async () => {
    isGuest = false;
    const failure: unknown = await attach().catch((error: unknown) => error);
    expect(String(failure)).to.include('is of kind macvlan, which is filtered inside the pod');
  });

  async function attach() {
    return stage.networks.attach(await stage.createPod('node-1', [{ name: SEGMENT, interface: INTERFACE }]));
  }

  async function answers(from: WireLocation): Promise<boolean> {
    return (await stage.wire.ping(from, NEIGHBOUR, { count: 3, timeoutMs: 500 })).received > 0;
  }
});
