import { expect } from 'chai';
import { bareAddress } from '../../test/bare-address.js';
import { textOf } from '../../cli/terminal.js';
import { traceVirtualMachine } from '../../cli/trace/trace.js';
import { systemClock } from '../../kube/clock.js';
import { describeOnBed } from '../../bed/story/describe.js';
import { KubectlPlugin } from '../../bed/story/kubectl/kubectl-plugin.js';
import { namespaceUser } from '../../bed/story/users/namespace-user.js';

describeOnBed('A VM that waits because its pool is full', (story, bed) => {
  it('is traced by a user with the role view; an administrator finds the pool and releases the address of a deleted VM', async () => {
    const { namespace, addresses, claims } = story();
    const network = await addresses.createNetwork('blue', [{ cidr: '10.82.0.0/30', exclude: ['10.82.0.2'] }]);
    const pool = `${network}.${namespace}`;
    await story().runVm('vm1', { data: 'blue' });
    const [used = ''] = await addresses.waitForIPs('vm1.data');
    await story().createVm('vm2', { data: 'blue' });
    await addresses.waitForRefusal('vm2.data', 'SubnetExhausted');

    const viewer = await namespaceUser(bed(), story().ref('viewer'), 'view');
    try {
      const trace = async (name: string) => {
        const deps = { client: viewer, clock: systemClock, isUnicode: false, clusterFlags: '' };
        const { output, isWrong } = await traceVirtualMachine({ namespace, name }, deps);
        return { text: output.lines(false).map(textOf).join('\n'), isWrong };
      };
      const healthy = await trace('vm1');
      expect(healthy.isWrong, healthy.text).to.equal(false);
      expect(healthy.text)
        .to.include(`[ok] IPAMClaim ${namespace}/vm1.data: ${used}`)
        .and.match(/\[ok\] Pod .*virt-launcher-vm1-\S+: Running on \S+/)
        .and.include('may not list addressleases.ipam.holdfast.dev in the whole cluster');
      const waiting = await trace('vm2');
      expect(waiting.isWrong, waiting.text).to.equal(true);
      expect(waiting.text).to.match(/SubnetExhausted: Pool \S+ is full: 1 of 1 leased/);
      expect(waiting.text).to.include(`add a subnet to the NAD of network ${network} in namespace ${namespace}`);
    } finally {
      await viewer.transport.close();
    }

    const kubectl = await story().kubectl();
    const patch = JSON.stringify({ spec: { subnets: [{ cidr: '10.82.0.0/24' }] } });
    const changed = await kubectl.run(['patch', 'addresspool', pool, '--type=merge', '-p', patch]);
    expect(changed.text).to.include(`follows NAD ${namespace}/blue: change "ipam" there`);
    expect(await kubectl.succeed(['get', 'apools', pool])).to.match(/^NAME +NETWORK +NADS .*\n.* /);
    expect(await kubectl.succeed(['explain', 'ipamclaim.status'])).to.include('Whether the claim has its addresses');

    const run = async (...args: string[]) => {
      const { exitCode, stdout, stderr } = await new KubectlPlugin(bed().kubeconfig, args).result;
      return { exitCode, text: `${stdout}${stderr}` };
    };
    const pools = await run('pools');
    expect(pools.exitCode, pools.text).to.equal(0);
    expect(pools.text).to.match(new RegExp(String.raw`^${pool} +${network} +${namespace} +IPv4 +0 +1 +0 `, 'm'));
    const shown = await run('pool', pool);
    expect(shown.exitCode, shown.text).to.equal(0);
    expect(shown.text).to.include('Waiting for an address, oldest first:').and.include(`${namespace}/vm2.data`);
    const refused = await run('release', bareAddress(used));
    expect(refused.exitCode, refused.text).to.equal(1);
    expect(refused.text).to.include(`IPAMClaim ${namespace}/vm1.data still exists`);

    // otherwise ipam releases the address
    await bed().ipam.kill();
    try {
      await story().deleteVm('vm1', 'Foreground');
      await claims.waitGone('vm1.data');
      await story().waitGone('vm1');
      const released = await run('release', bareAddress(used));
      expect(released.exitCode, released.text).to.equal(0);
      expect((await addresses.leases()).get(bareAddress(used))?.spec).to.have.property('releasedAt');
    } finally {
      await bed().ipam.start();
    }
  });
});
