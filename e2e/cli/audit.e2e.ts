import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { bareAddress } from '../../test/bare-address.js';
import { until } from '../../bed/processes/wait.js';
import { describeStory, itOnWire } from '../../bed/story/describe.js';
import { KubectlPlugin } from '../../bed/story/kubectl/kubectl-plugin.js';

interface Holder {
  readonly addressSpace: string;
  readonly state: string;
  readonly owner: string;
  readonly vm?: string;
  readonly pods?: string;
}

describeStory('kubectl holdfast who', (story) => {
  itOnWire(
    'says who has an address, and who had it before, although the leader of ipam was killed',
    async ({ bed }) => {
      const folder = await mkdtemp(join(tmpdir(), 'audit-'));
      const file = join(folder, 'audit.log');
      const args = [`--audit-log=${file}`];
      let [network, address] = ['', ''];
      const who = async (...flags: string[]): Promise<Holder> => {
        const asked = new KubectlPlugin(bed.kubeconfig, ['who', address, '-o', 'json', ...flags]);
        const { exitCode, stdout, stderr } = await asked.result;
        expect(stderr).to.equal('');
        expect(exitCode).to.equal(0);
        const { holders } = JSON.parse(stdout) as { holders: Holder[] };
        // other stories may use the same addresses
        return holders.find(({ addressSpace }) => addressSpace === network)!;
      };
      /** Waits until ipam has written it. @returns the time after that */
      const logged = async (type: string, words: string): Promise<string> => {
        await until(`the audit log to say ${type} ${words}`, async () => {
          const lines = (await readFile(file, 'utf8')).split('\n');
          return lines.some((line) => line.includes(`"type":"${type}"`) && line.includes(words));
        });
        return new Date().toISOString();
      };
      await bed.ipam.stop();
      try {
        await bed.ipam.start({ args });
        network = await story().addresses.createNetwork('blue', ['10.53.1.0/28'], { cooldownSeconds: 600 });
        await story().runVm('vm1', { data: 'blue' });
        address = bareAddress((await story().addresses.waitForIPs('vm1.data'))[0] ?? '');

        const owner = `IPAMClaim ${story().namespace}/vm1.data`;
        const held = { state: 'held', owner };
        const before = await who();
        expect(before).to.include({ ...held, vm: 'vm1' });
        expect(before.pods).to.match(/^virt-launcher-vm1-\S+ on \S+$/);
        const first = await logged('allocated', address);
        await story().migrate('vm1', 'Succeeded');
        const after = await who();
        expect(after).to.include({ ...held, vm: 'vm1' });
        expect(after.pods).to.match(/^virt-launcher-vm1-\S+ on \S+$/);
        expect(after.pods).not.to.equal(before.pods);

        await bed.ipam.kill();
        await bed.ipam.start({ args });
        const second = await logged('state', address);
        await story().deleteVm('vm1', 'Background');
        await story().claims.waitGone('vm1.data');
        const gone = await logged('released', address);

        expect((await who()).state).to.match(/^released, cooling down until 20/);
        const past = (at: string) => who('--at', at, '--file', file);
        for (const at of [first, second]) expect(await past(at)).to.include(held);
        expect(await past(gone)).to.include({ state: 'released', owner });
      } finally {
        await bed.ipam.stop();
        await bed.ipam.start();
        await rm(folder, { recursive: true });
      }
    },
  );
});
