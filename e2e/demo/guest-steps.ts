import { NETWORK_DATA_ANNOTATION } from '../../api/names.js';
import { ADDRESS_POOLS, NETWORK_ATTACHMENT_DEFINITIONS } from '../../kube/resources.js';
import { bareAddress } from '../../test/bare-address.js';
import { DhcpClients } from '../../bed/network/dhcp-clients.js';
import { guestLocation } from '../../bed/node/wired-guests.js';
import type { Environment } from '../../bed/environment.js';
import { HoldfastProcess } from '../../bed/holdfast/process.js';
import { Responders } from '../../bed/holdfast/responders.js';
import { RESPONDER_IMAGE, ServedNetwork, type DhcpServices } from '../../bed/story/wire/served-network.js';
import type { Story } from '../../bed/story/story.js';
import { checkClients, checkGuestConfigured, checkNetworkData, checkPings, checkResponders } from './guest-checks.js';
import type { Narrator } from './narrator.js';
import { PING_EVERY_MS } from './page/ping-monitor.js';

const VM = 'mail';
const CLAIM = 'mail.data';
const SECRET = 'mail-network';
const MACS = { default: '02:00:00:00:77:01', data: '02:00:00:00:77:02' };
const NEIGHBOUR = 'neighbour';
const SUBNETS = [{ cidr: '10.77.0.0/24', gateway: '10.77.0.1' }, { cidr: 'fd00:77::/64' }];
const GUEST = { dns: { nameservers: ['10.77.0.53', 'fd00:77::53'] }, mtu: 1400 };

interface GuestContext {
  readonly story: Story;
  readonly narrator: Narrator;
  readonly network: ServedNetwork;
}

/** Shows how addresses get from the claim into a guest. Skipped where the demo cannot run a guest. */
export async function showGuest(story: Story, narrator: Narrator, { bed, realCluster }: Environment): Promise<void> {
  narrator.part('A guest gets its addresses by DHCP, on a network without IPAM');
  if (bed?.wire === undefined || bed.agents === undefined) {
    const where = realCluster
      ? 'on real nodes yet. `make demo NODES=simulated` does'
      : bed
        ? 'where pod networks are simulated'
        : 'on the cluster that E2E_KUBECONFIG names';
    narrator.say(`Skipped: the demo runs no guest ${where}.`);
    return;
  }
  const clients = await DhcpClients.find();
  if (typeof clients === 'string') {
    narrator.say(`Skipped: the guest has no DHCP client. ${clients}`);
    return;
  }
  const guest = new HoldfastProcess(bed, 'guest', bed.controller.ports);
  const { wire, agents } = bed;
  const responders = new Responders({ ...bed, wire });
  try {
    await Promise.all([responders.start(), guest.start({ args: [RESPONDER_IMAGE] })]);
    const network = await createNetwork({ story, narrator }, { bed, wire, agents, guest, responders, clients });
    await runGuest({ story, narrator, network });
    await network.remove();
  } finally {
    await guest.stop();
    await responders.stop();
  }
}

async function createNetwork(
  { story, narrator }: Pick<GuestContext, 'story' | 'narrator'>,
  services: DhcpServices,
): Promise<ServedNetwork> {
  narrator.chapter('An administrator creates a layer-2 network, on which Holdfast answers DHCP');
  const network = await ServedNetwork.create(services, { subnets: SUBNETS, cooldownSeconds: 0, guest: GUEST });
  await network.attach(story, 'flat');
  const { client } = story;
  const nad = await client.get(NETWORK_ATTACHMENT_DEFINITIONS, story.ref('flat'));
  narrator.show('NAD flat', nad.spec?.config ?? '');
  const { spec } = await client.get(ADDRESS_POOLS, { name: network.name });
  for (const subnet of spec.subnets) narrator.show(`AddressPool ${network.name}`, JSON.stringify(subnet));
  narrator.show('  guest', JSON.stringify(spec.guest));
  await network.untilServed();
  await checkResponders({ story, narrator }, services.responders.pods(network.name));
  return network;
}

async function runGuest(context: GuestContext): Promise<void> {
  const { story, narrator, network } = context;
  const {
    clients,
    wire: { wire },
  } = network.services;
  narrator.chapter(`VM ${VM} starts on it, and two DHCP clients run in its guest`);
  const annotations = { [NETWORK_DATA_ANNOTATION]: SECRET };
  await story.createVm(VM, { data: 'flat' }, { macs: MACS, annotations, networkData: { secret: SECRET } });
  const guest = guestLocation(await story.waitRunning(VM));
  const ips = await story.addresses.waitForIPs(CLAIM);
  narrator.show(`IPAMClaim ${CLAIM}`, `status.ips ${ips.join(' ')}`);
  const udhcpc = await clients.start(wire, guest, 'udhcpc', 'eth1');
  const dhclient = await clients.start(wire, guest, 'dhclient -6', 'eth1');
  await checkClients(context, { udhcpc, 'dhclient -6': dhclient }, ips);
  await checkGuestConfigured(context, CLAIM);
  await checkNetworkData(context, SECRET, ips);

  narrator.chapter(`VM ${VM} migrates to another node while a neighbour pings its guest`);
  await wire.addHost(NEIGHBOUR, network.bridge, ['10.77.0.200/24', 'fd00:77::200/64']);
  const options = { intervalMs: PING_EVERY_MS, timeoutMs: 200 };
  const targets = ips.map(bareAddress);
  const pings = await Promise.all(targets.map((ip) => wire.startPing(`host/${NEIGHBOUR}`, ip, options)));
  await story.migrate(VM, 'Succeeded');
  for (const [index, ping] of pings.entries()) checkPings(context, targets[index] ?? '', await ping.stop());
  await checkGuestConfigured(context, CLAIM);
  await wire.removeHost(NEIGHBOUR);
  await story.deleteVm(VM, 'Background');
  await story.waitGone(VM);
}
