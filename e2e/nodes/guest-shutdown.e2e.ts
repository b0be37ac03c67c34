import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import type { VirtualMachineInstance } from '../../api/kubevirt.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import { describeWithGuests } from '../../bed/story/nodes.js';
import { bareAddress } from '../../test/bare-address.js';

/** Of the VM: a guest that ignores the power button is killed after it. */
const GRACE_MS = 30_000;

describeWithGuests('A guest that shuts down', (story, nodes) => {
  it('gets the power button when its VM is stopped, keeps its claim, and starts again with its address', async function () {
    this.timeout(200_000);
    const { address, waitButton } = await begin('10.88.0.0/28');
    const began = Date.now();
    await Promise.all([story().stop('web'), waitButton()]);
    expect(Date.now() - began).to.be.below(GRACE_MS);
    expect(await story().claimNames()).to.deep.equal(['web.data']);
    expect(await story().addresses.heldAddresses()).to.deep.equal([address]);
    await waitAddress(await story().start('web'), address);
  });

  it('gets the power button when its launcher is deleted, and its VM runs again with its address', async function () {
    this.timeout(200_000);
    const { address, vmi, waitButton } = await begin('10.88.1.0/28');
    await Promise.all([story().killLauncher('web'), waitButton()]);
    await waitAddress(await story().waitReplaced('web', vmi), address);
  });

  it('ends its launcher when it is shut down from inside, and its VM runs again with its address', async function () {
    this.timeout(200_000);
    const { address, vmi } = await begin('10.88.2.0/28');
    await nodes().guest(vmi).run('(sleep 1; poweroff -f) > /dev/null 2>&1 &');
    await waitAddress(await story().waitReplaced('web', vmi), address);
  });

  async function begin(subnet: string) {
    await nodes().createNetwork('blue', [subnet]);
    const vmi = await story().runVm('web', { data: 'blue' });
    const [address = ''] = (await story().addresses.waitForIPs('web.data')).map(bareAddress);
    await waitAddress(vmi, address);
    const file = nodes().guest(vmi).consoleFile;
    const waitButton = () =>
      untilValue(
        'the guest to get the power button',
        () => readFile(file, 'utf8'),
        (text) => text.includes('the power button was pressed'),
        { timeoutMs: GRACE_MS },
      );
    return { vmi, address, waitButton };
  }

  async function waitAddress(vmi: VirtualMachineInstance, address: string): Promise<void> {
    const guest = await until('the guest to run', () => nodes().guest(vmi));
    await guest.waitAddress('eth1', address);
  }
});
