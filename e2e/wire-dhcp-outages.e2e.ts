import { expect } from 'chai';
import { RESPONDERS_NAMESPACE } from '../api/names.js';
import { responderSetName } from '../guest/responders/objects.js';
import { ADDRESS_POOLS, STATEFUL_SETS } from '../kube/resources.js';
import type { Wire, WireLocation } from './bed/network/wire.js';
import { untilValue } from './bed/wait.js';
import { describeStory } from './story/describe.js';
import { waitForEvent } from './story/events.js';
import { createGeneratedGuests, resultsOf, startGeneratedGuests } from './story/generated-guests.js';
import { RESPONDER_IMAGE, useServedNetwork } from './story/served-network.js';

const RENEWING = 20;

describeStory('Guests of a layer-2 network', (story) => {
  const network = useServedNetwork({ subnets: [{ cidr: '10.78.0.0/24' }] });
  const hosts: string[] = [];
  const wire = (): Wire => network().services.wire.wire;

  beforeEach('create a NAD', () => network().attach(story(), 'flat'));
  afterEach('remove the hosts', async () => {
    for (const name of hosts.splice(0)) await wire().removeHost(name);
  });

  it('are answered while both responders are upgraded', async () => {
    await createGeneratedGuests(story(), network(), { count: RENEWING, nad: 'flat' });
    const flags = [`-count=${RENEWING}`, `-renewing=${RENEWING}`, '-renew=2m'];
    const program = await startGeneratedGuests(network(), await addHost(), flags);
    await untilValue(
      'all guests to have an address',
      () => program.output.stderr,
      (log) => log.includes(`${RENEWING} guests have an address`),
    );
    const { bed, guest, responders } = network().services;
    const before = responders.pods(network().name).map(({ metadata }) => metadata.uid);
    // the simulated kubelet does not read readiness probes, so the test says when the next pod may be replaced
    const replace = async (partition: number) => {
      const set = { namespace: RESPONDERS_NAMESPACE, name: responderSetName(await poolOf(network().name)) };
      const body = { spec: { updateStrategy: { rollingUpdate: { partition } } } };
      await bed.client.patch(STATEFUL_SETS, set, { type: 'merge', body });
      await untilReplaced(2 - partition);
    };
    const untilReplaced = async (count: number) => {
      await untilValue(
        `${count} other responders`,
        () => responders.pods(network().name).map(({ metadata }) => metadata.uid),
        (uids) => uids.length === 2 && uids.filter((uid) => !before.includes(uid)).length === count,
      );
      await network().untilServed();
    };
    await replace(2);
    await guest.stop();
    await guest.start({ args: [`${RESPONDER_IMAGE}:2`] });
    await replace(1);
    await replace(0);
    await program.signal('SIGTERM');
    const { booted, renewals, answered } = await resultsOf(program);
    expect(renewals).to.be.greaterThan(2 * RENEWING);
    expect({ booted, answered }).to.deep.equal({ booted: RENEWING, answered: renewals });
  });

  it('are in danger if another DHCP server answers, which an event on the pool says', async () => {
    const { bed, clients } = network().services;
    const host = await addHost('10.78.0.3/24');
    const server = await clients.startServer(wire(), host, { address: '10.78.0.3', lease: '10.78.0.250' });
    const [responder] = await network().untilServed();
    await responder?.restartPackets();
    const pool = { namespace: 'default', name: network().name };
    const { message } = await waitForEvent(bed.client, pool, 'ForeignDHCPServer');
    const [eth0] = await wire().interfaces(host);
    expect(message).to.include('10.78.0.3').and.to.include(eth0?.mac);
    expect(await responder?.table.metrics()).to.match(
      /^holdfast_responder_observations_total\{.*kind="server".*\} 1$/m,
    );
    await server.stop();
  });

  async function addHost(...addresses: string[]): Promise<WireLocation> {
    const name = `${story().namespace}-${hosts.length}`;
    await wire().addHost(name, network().bridge, addresses);
    hosts.push(name);
    return `host/${name}`;
  }

  async function poolOf(name: string): Promise<{ uid: string }> {
    const { metadata } = await network().services.bed.client.get(ADDRESS_POOLS, { name });
    return { uid: metadata.uid ?? '' };
  }
});
