import { expect } from 'chai';
import type { AddressLease } from '../../api/address-lease.js';
import { PoolCondition } from '../../api/conditions.js';
import {
  AllocationReason,
  PROBE_ANNOTATION,
  RESPONDERS_NAMESPACE,
  REQUESTED_ADDRESSES_ANNOTATION,
} from '../../api/names.js';
import { parseAddress } from '../../addressing/address/address.js';
import { leaseName } from '../../addressing/lease/lease-name.js';
import { ADDRESS_LEASES, ADDRESS_POOLS, IPAM_CLAIMS } from '../../kube/resources.js';
import { bareAddress } from '../../test/bare-address.js';
import type { Wire, WireLocation } from '../../bed/network/wire.js';
import { until } from '../../bed/processes/wait.js';
import { conditionOf } from '../../bed/story/addresses.js';
import { describeStory } from '../../bed/story/describe.js';
import { lifeOf, waitForEvent } from '../../bed/story/events.js';
import { KubectlPlugin } from '../../bed/story/kubectl/kubectl-plugin.js';
import { rejectionMessage } from '../../bed/story/rejection.js';
import { useServedNetwork } from '../../bed/story/wire/served-network.js';

const MAC = '02:00:00:00:80:07';

describeStory('An address of a pool that probes', (story) => {
  const network = useServedNetwork({
    subnets: [{ cidr: '10.80.0.0/24' }, { cidr: 'fd00:80::/64' }],
    guest: { probe: true },
  });
  const hosts: string[] = [];
  let wire: Wire;

  beforeEach('attach the namespace', async () => {
    ({ wire } = network().services.wire);
    await network().attach(story(), 'flat');
  });

  afterEach('remove the hosts and quarantined leases', async () => {
    for (const name of hosts.splice(0)) await wire.removeHost(name);
    for (const lease of await leasesOfPool()) {
      if (lease.spec.quarantine) await story().client.delete(ADDRESS_LEASES, { name: lease.metadata.name });
    }
  });

  it('goes to no claim while a host has it, and the claim gets another one', async () => {
    const { vm, mine, ipv4, ipv6, mac } = await untilProbed('the addresses of a host to be probed', async (attempt) => {
      const [ipv4, ipv6] = await nextAddresses(`first${attempt}`);
      const { mac } = await addHost(`squatter${attempt}`, [`${ipv4}/24`, `${ipv6}/64`]);
      const vm = `vm${attempt}`;
      await createStopped(vm);
      const mine = (await story().addresses.waitForIPs(`${vm}.data`)).map(bareAddress);
      return { vm, mine, ipv4, ipv6, mac };
    });
    expect(mine).to.have.length(2).and.not.to.include.oneOf([ipv4, ipv6]);
    for (const address of mine)
      expect((await leaseOf(address))?.metadata.annotations?.[PROBE_ANNOTATION]).to.equal('free');
    for (const address of [ipv4, ipv6]) {
      const { spec } = (await leaseOf(address))!;
      expect(spec).not.to.have.property('owner');
      expect(spec.quarantine).to.include({ mac });
    }
    const { message } = await story().waitForEvent(vm, 'AddressTaken');
    expect(message).to.include(mac);
    await story().addresses.waitForPool(network().name, 'to count them', ({ status }) => status?.quarantined === 2);
    const who = new KubectlPlugin(network().services.bed.kubeconfig, ['who', ipv4]);
    expect((await who.result).stdout).to.match(/quarantined/);
  });

  it('is refused to a VM that requests it while a host has it, and the condition names the host', async () => {
    const { mac, remove } = await addHost('squatter', ['10.80.0.99/24']);
    const annotations = { [REQUESTED_ADDRESSES_ANNOTATION]: '{"data": ["10.80.0.99"]}' };
    const { vm, claim } = await untilProbed('the requested address to be probed', async (attempt) => {
      const vm = `vm${attempt}`;
      await createStopped(vm, annotations);
      const claim = await story().claims.waitFor(`${vm}.data`, 'to be refused, or not probed', (each) => {
        const { status, message = '' } = conditionOf(each) ?? {};
        return status === 'True' || message.includes(mac);
      });
      const mine = (claim.status?.ips ?? []).map(bareAddress);
      if (mine.length > 0) await story().deleteVm(vm, 'Background');
      return { vm, claim, mine };
    });
    const { reason, message } = conditionOf(claim)!;
    expect(reason, message).to.equal(AllocationReason.Conflict);
    expect(message).to.include('10.80.0.99').and.to.include(mac);
    await remove();
    await story().client.delete(ADDRESS_LEASES, { name: nameOf('10.80.0.99') });
    expect(await story().addresses.waitForIPs(`${vm}.data`)).to.include('10.80.0.99/24');
  });

  it('is not probed any more when one host answers for all, until its leases are deleted', async () => {
    const { location, mac } = await addHost('proxy', ['10.80.0.250/24']);
    // the kernel answers for each of these addresses
    const args = ['route', 'add', 'local', '10.80.0.0/24', 'dev', 'lo'];
    expect(await wire.run(location, { command: '/sbin/ip', args })).to.include({ exitCode: 0 });
    const quarantined = await untilProbed('addresses of the proxy to be probed', async (attempt) => {
      await createStopped(`vm${attempt}`);
      await story().addresses.waitForIPs(`vm${attempt}.data`);
      const found = (await leasesOfPool()).filter(({ spec }) => spec.quarantine !== undefined);
      return found.length < 3 ? undefined : found;
    });
    expect(quarantined.map(({ spec }) => spec.quarantine?.mac)).to.deep.equal([mac, mac, mac]);
    const stop = await waitForProbing(true);
    expect(stop).to.include({ reason: 'ProxyARP' });
    expect(stop?.message).to.include(mac);

    for (const { metadata } of quarantined) await story().client.delete(ADDRESS_LEASES, { name: metadata.name });
    await waitForProbing(false);
  });

  it('is shown without a probe if no responder answers, and claim and pool say so', async () => {
    const responders = await network().untilServed();
    try {
      await Promise.all(responders.map(({ table }) => table.kill()));
      await createStopped('vm1');
      await story().addresses.waitForIPs('vm1.data');
      const { status } = await story().client.get(IPAM_CLAIMS, story().ref('vm1.data'));
      expect(JSON.stringify(status?.conditions)).to.include('ProbeSkipped');
    } finally {
      await Promise.all(responders.map((responder) => responder.restartTable()));
    }
    await waitForEvent(story().client, { namespace: 'default', name: network().name }, 'ProbeSkipped');
  });

  it('is probed once, and stays with its VM in a migration, in a conflict, and in a restart', async () => {
    const watch = await wire.watch('fabric', network().bridge);
    await story().runVm('vm1', { data: 'flat' }, { macs: { data: MAC } });
    const mine = await story().addresses.waitForIPs('vm1.data');
    const address = bareAddress(mine[0]!);
    const probes = () => watch.events.filter(({ frame }) => frame?.asks === address).length;
    // both responders may ask; the lease tells how often ipam has asked them
    await until('a probe to be seen', () => probes() > 0);
    const version = async () => (await leaseOf(address))?.metadata.resourceVersion;
    const before = await version();
    await story().migrate('vm1', 'Succeeded');
    expect(await version()).to.equal(before);

    const { location, mac } = await addHost('squatter', []);
    await until('the conflict to be reported', async () => {
      await wire.announce(location, 'eth0', address);
      const events = await lifeOf(story().client, story().ref('vm1'));
      return events.some(({ reason, message }) => reason === 'AddressConflict' && message?.includes(mac));
    });
    await story().restart('vm1');
    expect((await story().waitForClaim('vm1.data')).status?.ips).to.deep.equal(mine);
    expect(await version()).to.equal(before);
    await watch.stop();
  });

  it('keeps its pool from deletion, which ends the responders once no VM has an address', async () => {
    await createStopped('vm1');
    await story().addresses.waitForIPs('vm1.data');
    const pool = { name: network().name };
    expect(await rejectionMessage(story().client.delete(ADDRESS_POOLS, pool))).to.include(
      `IPAMClaim ${story().namespace}/vm1.data`,
    );
    await story().deleteVm('vm1', 'Background');
    await network().remove();
    const { items } = await story().client.list(IPAM_CLAIMS, { namespace: RESPONDERS_NAMESPACE });
    expect(items.filter(({ spec }) => spec.network === pool.name)).to.deep.equal([]);
  });

  /**
   * Repeats an attempt while ipam has not waited for the probes of its addresses, because a responder took longer than two seconds on a busy
   * machine.
   * @param act makes the n-th attempt; `mine` of its result are the addresses that a claim has got
   */
  async function untilProbed<T extends object>(
    description: string,
    act: (attempt: number) => Promise<(T & { mine?: readonly string[] }) | undefined>,
  ): Promise<T> {
    let attempt = 0;
    return until(description, async () => {
      const result = await act(++attempt);
      const leases = await Promise.all((result?.mine ?? []).map(leaseOf));
      const wasSkipped = leases.some((lease) => lease?.metadata.annotations?.[PROBE_ANNOTATION] === 'skipped');
      return wasSkipped ? undefined : result;
    }) as Promise<T>;
  }

  /** Creates a VM that does not run: its claim gets addresses anyway. */
  function createStopped(name: string, annotations: Record<string, string> = {}): Promise<unknown> {
    return story().createVm(name, { data: 'flat' }, { running: false, annotations });
  }

  /** The addresses that follow those of a new claim: the next claim gets them. */
  async function nextAddresses(vm: string): Promise<[string, string]> {
    await createStopped(vm);
    const [ipv4 = '', ipv6 = ''] = (await story().addresses.waitForIPs(`${vm}.data`)).map(bareAddress);
    const after = (address: string, base: 10 | 16) =>
      address.replace(/[0-9a-f]+$/, (last) => (parseInt(last, base) + 1).toString(base));
    return [after(ipv4, 10), after(ipv6, 16)];
  }

  async function addHost(role: string, addresses: readonly string[]) {
    const name = `${story().namespace}-${role}`;
    const location: WireLocation = `host/${name}`;
    await wire.addHost(name, network().bridge, addresses);
    hosts.push(name);
    const [eth0] = await wire.interfaces(location);
    return { location, mac: eth0!.mac, remove: () => wire.removeHost(name) };
  }

  function nameOf(address: string): string {
    return leaseName(network().name, parseAddress(address));
  }

  function leaseOf(address: string): Promise<AddressLease | undefined> {
    return story().client.find(ADDRESS_LEASES, { name: nameOf(address) });
  }

  async function leasesOfPool(): Promise<AddressLease[]> {
    const fieldSelector = `spec.pool=${network().name}`;
    return (await story().client.list(ADDRESS_LEASES, { fieldSelector })).items;
  }

  async function waitForProbing(isStopped: boolean) {
    const stopOf = (pool: { status?: { conditions?: readonly { type: string; reason: string; message: string }[] } }) =>
      pool.status?.conditions?.find(({ type }) => type === PoolCondition.ProbingStopped);
    const state = isStopped ? 'to stop probing' : 'to probe again';
    const pool = await story().addresses.waitForPool(
      network().name,
      state,
      (found) => (stopOf(found) !== undefined) === isStopped,
    );
    return stopOf(pool);
  }
});
