import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import {
  CLAIM_FINALIZER,
  CLAIM_NAD,
  CLAIM_OWNER_NAME,
  CLAIM_OWNER_UID,
  NETWORK_STATUS_ANNOTATION,
  VELERO_RESTORE_NAME,
} from '../../api/names.js';
import {
  ADDRESS_LEASES,
  IPAM_CLAIMS,
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  PODS,
  VIRTUAL_MACHINES,
} from '../../kube/resources.js';
import { EVENTS } from '../../kube/events.js';
import { bareAddress } from '../../test/bare-address.js';
import { fencedBlocks } from '../../test/repository/documents.js';
import { environment } from '../../bed/story/hooks.js';
import { backUp, Velero } from '../../bed/story/backup-tools.js';
import { AddressStory } from '../../bed/story/addresses.js';
import { removeNamespaces } from '../../bed/story/cleanup.js';
import { describeStory } from '../../bed/story/describe.js';
import { ResourceModifiers } from '../../bed/story/resource-modifiers.js';
import type { PolicyRule } from '../../bed/story/users/role.js';
import { createNamespace } from '../../bed/story/story.js';
import { VmActions } from '../../bed/story/vms/vm-actions.js';
import { until, untilValue } from '../../bed/processes/wait.js';

/** Of a tool that restores VMs, and may not bind claims to them. */
const RIGHTS_WITHOUT_RESTORE: readonly PolicyRule[] = [
  { apiGroups: ['k8s.cni.cncf.io', 'kubevirt.io'], resources: ['*'], verbs: ['*'] },
  { apiGroups: ['ipam.holdfast.dev'], resources: ['addresspools'], verbs: ['serve'] },
];

/** The resource modifier of the documentation for one kind. @param names values of its words in capitals */
async function documentedModifier(groupResource: string, names: Record<string, string> = {}) {
  const page = await readFile(new URL('../../docs/how-to/backup-and-restore.md', import.meta.url), 'utf8');
  const [text = '', ...others] = fencedBlocks(page, 'yaml').filter((block) => block.includes(groupResource));
  expect(others).to.deep.equal([]);
  const filledIn = Object.entries(names).reduce((filled, [word, value]) => filled.replaceAll(word, value), text);
  return new ResourceModifiers(filledIn);
}

describeStory('A VM that is restored', (story) => {
  let velero: Velero;
  let other: string;
  let tools: Velero[];

  async function install(namespace: string, rules?: readonly PolicyRule[]): Promise<Velero> {
    const tool = await Velero.install(environment(), namespace, rules);
    tools.push(tool);
    return tool;
  }

  beforeEach('install Velero', async () => {
    tools = [];
    other = await story().otherNamespace();
    velero = await install(other);
  });

  afterEach('remove Velero', () => Promise.all(tools.map((tool) => tool.remove())));

  async function removeNamespace(): Promise<void> {
    const { client, namespace } = story();
    await removeNamespaces(client, [namespace]);
    // on a busy machine, its VMs take long to end
    const find = () => client.find(NAMESPACES, { name: namespace });
    await untilValue('the namespace to be gone', find, (found) => found === undefined, { timeoutMs: 180_000 });
  }

  async function removeVm(name: string): Promise<void> {
    await story().deleteVm(name, 'Background');
    await story().claims.waitGone(`${name}.data`);
    await story().addresses.waitHeld([]);
  }

  it('gets its addresses back when its namespace is deleted and restored', async () => {
    const { client, namespace, addresses } = story();
    await addresses.createNetwork('blue', ['10.61.0.0/24', 'fd61::/64']);
    await story().createVm('other', { data: 'blue' }, { running: false });
    await addresses.waitForIPs('other.data');
    await story().runVm('vm1', { data: 'blue' });
    const mine = await addresses.waitForIPs('vm1.data');
    const backup = await backUp(client, namespace);
    await removeNamespace();
    await createNamespace(client, namespace);
    await velero.restore(backup, namespace);
    await story().waitRunning('vm1');
    await addresses.waitForExactIPs('vm1.data', mine);
    const vm = await client.get(VIRTUAL_MACHINES, story().ref('vm1'));
    await story().claims.waitForOwner('vm1.data', 'VirtualMachine', vm.metadata.uid);
    expect(await story().references('vm1')).to.deep.equal([{ pod3a6eb0790f3: 'vm1.data' }]);
  });

  it('gets its addresses back in another namespace if the original and its leases are gone, as in another cluster', async () => {
    const { client, namespace, addresses } = story();
    const network = await addresses.createNetwork('blue', ['10.61.7.0/24', 'fd61:7::/64']);
    const nads = { first: 'blue', vm1: 'blue', vm2: `${namespace}/blue` };
    const saved = new Map<string, string[]>();
    for (const [name, nad] of Object.entries(nads)) {
      await story().createVm(name, { data: nad }, { running: name === 'vm1' });
      saved.set(name, await addresses.waitForIPs(`${name}.data`));
    }
    // without its request, a restored claim would get the first address now
    await story().deleteVm('first', 'Background');
    await story().claims.waitGone('first.data');
    await story().waitRunning('vm1');
    const backup = await backUp(client, namespace);
    await removeNamespace();
    await until('Holdfast to know none of the addresses', async () => {
      const { items } = await client.list(ADDRESS_LEASES);
      const leases = items.filter(({ spec }) => spec.addressSpace === network);
      for (const { metadata } of leases) await client.delete(ADDRESS_LEASES, { name: metadata.name });
      return leases.length === 0;
    });
    const modifiers = await documentedModifier('virtualmachines.kubevirt.io', { FORMER: namespace, NEW: other });
    await velero.restore(backup, other, { modifiers });
    await new VmActions(client, other).waitRunning('vm1');
    const there = new AddressStory(environment(), other);
    for (const name of ['vm1', 'vm2']) {
      const claim = await there.waitForExactIPs(`${name}.data`, saved.get(name) ?? []);
      const vm = await client.get(VIRTUAL_MACHINES, { namespace: other, name });
      expect(claim.metadata.annotations).to.include({
        [CLAIM_OWNER_UID]: vm.metadata.uid,
        [CLAIM_NAD]: `${other}/blue`,
      });
    }
  });

  it('gets its addresses back from a tool without the right to restore, with the documented resource modifier', async () => {
    const { client, namespace, addresses } = story();
    await addresses.createNetwork('blue', ['10.61.8.0/24']);
    for (const name of ['first', 'vm1']) {
      await story().createVm(name, { data: 'blue' }, { running: false });
      await addresses.waitForIPs(`${name}.data`);
    }
    const mine = await addresses.waitForIPs('vm1.data');
    await story().deleteVm('first', 'Background');
    await story().claims.waitGone('first.data');
    const backup = await backUp(client, namespace);
    await removeVm('vm1');
    const tool = await install(namespace, RIGHTS_WITHOUT_RESTORE);
    await tool.restore(backup, namespace, { modifiers: await documentedModifier('ipamclaims.k8s.cni.cncf.io') });
    const vm = await client.get(VIRTUAL_MACHINES, story().ref('vm1'));
    const claim = await story().claims.waitForOwner('vm1.data', 'VirtualMachine', vm.metadata.uid);
    expect(claim.metadata.labels).not.to.have.property(VELERO_RESTORE_NAME);
    await addresses.waitForExactIPs('vm1.data', mine);
  });

  it('gets the addresses of a claim that was restored long before it, and that no other VM gets meanwhile', async () => {
    const { client, namespace, addresses } = story();
    await addresses.createNetwork('blue', [{ cidr: '10.61.1.0/29', ranges: ['10.61.1.2'] }]);
    await story().createVm('vm1', { data: 'blue' }, { running: false });
    const mine = await addresses.waitForIPs('vm1.data');
    const backup = await backUp(client, namespace);
    await removeVm('vm1');
    await velero.restore(backup, namespace, { kinds: [IPAM_CLAIMS] });
    await story().waitForEvent('vm1.data', 'RestoredIPAMClaimWaiting', /until VirtualMachine vm1 is restored/);
    await addresses.waitForExactIPs('vm1.data', mine);
    await story().createVm('vm2', { data: 'blue' }, { running: false });
    await addresses.waitForRefusal('vm2.data', 'SubnetExhausted');
    await velero.restore(backup, namespace);
    await story().waitForClaims(['vm1.data', 'vm2.data']);
    const vm = await client.get(VIRTUAL_MACHINES, story().ref('vm1'));
    const claim = await story().claims.waitForOwner('vm1.data', 'VirtualMachine', vm.metadata.uid);
    expect(claim.status?.ips).to.deep.equal(mine);
  });

  it('reports the conflict when it is restored into another namespace beside the original, which keeps its addresses', async () => {
    const { client, namespace, addresses } = story();
    await addresses.createNetwork('blue', ['10.61.2.0/24']);
    await story().runVm('vm1', { data: 'blue' });
    const mine = await addresses.waitForIPs('vm1.data');
    await velero.restore(await backUp(client, namespace), other);
    const { message } = await new AddressStory(environment(), other).waitForRefusal('vm1.data', 'IPAddressConflict');
    expect(message).to.match(/^10\.61\.2\.\d+ is allocated to an owner in another namespace/);
    const copy = await client.get(IPAM_CLAIMS, { namespace: other, name: 'vm1.data' });
    const restored = await client.get(VIRTUAL_MACHINES, { namespace: other, name: 'vm1' });
    expect(copy.metadata.annotations).to.include({
      [CLAIM_OWNER_UID]: restored.metadata.uid,
      'ipam.holdfast.dev/network-attachment-definition': `${other}/blue`,
    });
    await addresses.waitForExactIPs('vm1.data', mine);
    await addresses.waitHeld(mine.map(bareAddress));
  });

  it('gets other addresses if its interface is on another network now, and an event says so', async () => {
    const { client, namespace, addresses } = story();
    await addresses.createNetwork('blue', ['10.61.3.0/24']);
    await story().createVm('vm1', { data: 'blue' }, { running: false });
    await addresses.waitForIPs('vm1.data');
    const backup = await backUp(client, namespace);
    await removeVm('vm1');
    await client.delete(NETWORK_ATTACHMENT_DEFINITIONS, story().ref('blue'));
    const network = `${namespace}-another`;
    await story().network('blue', { network, subnets: [{ cidr: '10.61.4.0/24' }] });
    await velero.restore(backup, namespace);
    await story().waitForEvent(
      'vm1',
      'RestoredIPAMClaimReleased',
      /is on network ".*-another": it gets other addresses/,
    );
    const claim = await story().claims.ofNetwork(network);
    expect((await addresses.waitForIPs(claim.metadata.name))[0]).to.match(/^10\.61\.4\./);
  });

  it('gets its addresses back from kubectl get and kubectl apply', async () => {
    const { client, namespace, addresses } = story();
    await addresses.createNetwork('blue', ['10.61.5.0/24']);
    await story().createVm('first', { data: 'blue' }, { running: false });
    await addresses.waitForIPs('first.data');
    const kubectl = await story().kubectl();
    const backups = [];
    for (const name of ['vm1', 'vm2']) {
      await story().createVm(name, { data: 'blue' }, { running: false });
      const mine = await addresses.waitForIPs(`${name}.data`);
      const vm = await kubectl.succeed(['get', 'vm', name, '-o', 'yaml']);
      backups.push({
        name,
        mine,
        vm,
        claim: await kubectl.succeed(['get', 'ipamclaim', `${name}.data`, '-o', 'yaml']),
      });
    }
    for (const name of ['first', 'vm1', 'vm2']) await story().deleteVm(name, 'Background');
    await addresses.waitHeld([]);
    for (const { name, mine, vm, claim } of backups) {
      await kubectl.succeed(['apply', '-f', '-'], claim);
      // the garbage collector may have deleted it by then
      await story().waitForEvent(`${name}.data`, 'RestoredIPAMClaimWaiting');
      await kubectl.succeed(['apply', '-f', '-'], vm);
      await addresses.waitForExactIPs(`${name}.data`, mine);
    }
    expect(await client.list(EVENTS, { namespace, fieldSelector: 'reason=RestoredIPAMClaimReleased' }))
      .to.have.property('items')
      .deep.equal([]);
  });

  it('is reported if it runs with an address that is leased to another VM, as after a restore of etcd', async () => {
    const { client, addresses } = story();
    await addresses.createNetwork('blue', ['10.61.6.0/24']);
    for (const name of ['vm1', 'vm2']) {
      await story().runVm(name, { data: 'blue' });
    }
    const [ip = ''] = await addresses.waitForIPs('vm1.data');
    const [mine = ''] = await addresses.waitForIPs('vm2.data');
    const [pod] = await story().launchers('vm2');
    const report = pod?.metadata.annotations?.[NETWORK_STATUS_ANNOTATION] ?? '';
    const annotations = { [NETWORK_STATUS_ANNOTATION]: report.replace(bareAddress(mine), bareAddress(ip)) };
    const patch = { type: 'merge', body: { metadata: { annotations } } } as const;
    await client.patch(PODS, story().ref(pod?.metadata.name ?? ''), patch);
    const { message } = await story().waitForEvent('vm2', 'AddressNotLeased');
    expect(message)
      .to.include(`has address ${bareAddress(ip)}`)
      .and.to.include('leased to another workload');
  });

  it('is left without its claim if its tool lacks the right to restore, and the denial names the role', async () => {
    const tenant = await story().tenant();
    for (const metadata of [
      { annotations: { [CLAIM_OWNER_NAME]: 'vm1', [CLAIM_OWNER_UID]: 'former-uid' } },
      { finalizers: [CLAIM_FINALIZER] },
    ]) {
      expect(await tenant.claimRejection('vm1.data', metadata)).to.include('the ClusterRole holdfast-restore');
    }
    expect(await story().claimNames()).to.deep.equal([]);
  });
});
