import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import type { AddressPoolSpec } from '../../api/address-pool.js';
import { NETWORK_DATA_WRITTEN, RESPONDERS_NAMESPACE } from '../../api/names.js';
import { ADDRESS_POOLS, NETWORK_ATTACHMENT_DEFINITIONS, SECRETS } from '../../kube/resources.js';
import { bareAddress } from '../../test/bare-address.js';
import { ROOT } from '../../test/source-files.js';
import { DhcpClients } from '../../bed/network/dhcp-clients.js';
import { guestLocation } from '../../bed/node/wired-guests.js';
import type { Manifest } from '../../bed/control-plane/objects.js';
import { until } from '../../bed/processes/wait.js';
import { HoldfastProcess } from '../../bed/holdfast/process.js';
import { Responders } from '../../bed/holdfast/responders.js';
import { describeStory, requireWire } from '../../bed/story/describe.js';
import { bridgeOf } from '../../bed/story/networks.js';
import { RESPONDER_IMAGE } from '../../bed/story/wire/served-network.js';

describeStory('The guides about layer-2 networks and network data', (story) => {
  /** The blocks of one kind on a page, with the names of this test. */
  async function blocksOf(page: string, kind: 'yaml' | 'sh'): Promise<string[]> {
    const text = await readFile(join(ROOT, 'docs', 'how-to', page), 'utf8');
    const network = `${story().namespace}-blue`;
    const renamed = text
      .replaceAll('br-blue', bridgeOf(network))
      .replaceAll('team-a', story().namespace)
      .replaceAll(/\bblue\b/g, network);
    return [...renamed.matchAll(new RegExp(`^( *)\`\`\`${kind}\n([^]*?)^ *\`\`\`$`, 'gm'))].map(
      ([, indent = '', block = '']) => block.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    );
  }

  it('bring the addresses of a claim into a guest, as they are written', async function () {
    const { bed, wire } = requireWire(this);
    const clients = await DhcpClients.find();
    if (typeof clients === 'string') return this.skip();
    const network = `${story().namespace}-blue`;
    const objects = await blocksOf('layer-2-networks.md', 'yaml');
    const isOf = (kind: string) => (block: string) => (parse(block) as Manifest).kind === kind;
    const pool = parse(objects.find(isOf('AddressPool')) ?? '') as Manifest;
    const nads = objects.filter(isOf('NetworkAttachmentDefinition'));
    expect(nads).to.have.length(3);
    const [vm] = await blocksOf('network-data.md', 'yaml');
    const commands = (await blocksOf('layer-2-networks.md', 'sh')).join('\n');
    const [, args = '', patch = ''] = /^kubectl (patch addresspool \S+ --type merge -p) '(.*)'$/m.exec(commands) ?? [];
    const kubectl = await story().kubectl();
    const guest = new HoldfastProcess(bed, 'guest', bed.controller.ports);
    const responders = new Responders({ ...bed, wire });
    try {
      await Promise.all([responders.start(), guest.start({ args: [RESPONDER_IMAGE] })]);
      expect(pool.metadata.name).to.equal(network);
      await story().addresses.createPool(network, pool.spec as AddressPoolSpec);
      try {
        await kubectl.succeed(['apply', '-f', '-'], nads.join('\n---\n'));
        await kubectl.succeed([...args.split(' '), patch]);
        await kubectl.succeed(['apply', '-f', '-'], vm);
        const vmi = await story().waitRunning('vm1');
        const ips = (await story().addresses.waitForIPs('vm1.data')).map(bareAddress);
        await story().addresses.waitForCondition('vm1.data', NETWORK_DATA_WRITTEN, 'True');
        const { data } = await bed.client.get(SECRETS, story().ref('vm1-network'));
        const text = Buffer.from(data?.networkdata ?? '', 'base64').toString();
        for (const ip of ips) expect(text).to.include(ip);

        await until('two responders', () => responders.pods(network).length === 2);
        const client = await clients.start(wire.wire, guestLocation(vmi), 'udhcpc', 'eth1');
        expect(await client.waitForLease()).to.include({ ip: ips[0], dns: '10.1.0.53', mtu: '1400' });
        await client.command.stop();
      } finally {
        await removeNetwork(network, responders);
      }
    } finally {
      await guest.stop();
      await responders.stop();
    }
  });

  /** The pool can be deleted when the claims of its responders are gone. */
  async function removeNetwork(network: string, responders: Responders): Promise<void> {
    const { client } = story();
    await story().deleteVm('vm1', 'Background');
    await story().waitGone('vm1');
    await client.patch(ADDRESS_POOLS, { name: network }, { type: 'merge', body: { spec: { guest: null } } });
    await until('the responders to be gone', () => responders.pods(network).length === 0);
    await client.delete(NETWORK_ATTACHMENT_DEFINITIONS, { namespace: RESPONDERS_NAMESPACE, name: network });
    await story().addresses.end();
  }
});
