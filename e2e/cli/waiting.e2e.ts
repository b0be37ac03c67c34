import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { ViewReader, enter } from '../../cli/ui/testing/ui-client.js';
import type { ServerView, WaitingView } from '../../cli/ui/protocol.js';
import { Ui } from '../../cli/ui/serve-ui.js';
import { systemClock } from '../../kube/clock.js';
import { describeOnBed } from '../../bed/story/describe.js';
import { KubectlPlugin } from '../../bed/story/kubectl/kubectl-plugin.js';

interface Waiting {
  readonly vm: string;
  /** Reason of its event, and of the finding if that has one. */
  readonly event: string;
  readonly reason?: string;
  /** Words of the message, which says what to do unless there is a remedy. */
  readonly cause: string;
}

const REQUEST = 'network.kubevirt.io/addresses';
const WAITING: readonly Waiting[] = [
  { vm: 'no-nad', event: 'NetworkAttachmentNotFound', cause: 'does not exist: create it, or correct networkName' },
  { vm: 'typo', event: 'AddressNotPersistent', cause: 'allowPersistentIP has no effect: write allowPersistentIPs' },
  { vm: 'bad-request', event: 'RequestedAddressesInvalid', cause: '"10.83.1.300" is not an IP' },
  { vm: 'routes', event: 'SeveralDefaultRoutes', cause: 'remove the default route (routes, isDefaultGateway)' },
  { vm: 'full', event: 'AddressesNotAllocated', reason: 'SubnetExhausted', cause: 'is full: 1 of 1 leased' },
  { vm: 'taken', event: 'AddressesNotAllocated', reason: 'IPAddressConflict', cause: '10.83.1.5' },
  { vm: 'outside', event: 'AddressesNotAllocated', reason: 'AddressOutOfRange', cause: '10.99.0.1' },
  { vm: 'theirs', event: 'IPAMClaimNotHonoured', cause: 'delegates IPAM to host-local' },
  { vm: 'flat', event: 'IPAMClaimNotHonoured', cause: 'no AddressPool with spec.guest serves network' },
];

describeOnBed('VMs that wait', (story, bed) => {
  it('are named with cause and remedy by events, trace, doctor, status and the web page', async () => {
    const { namespace, addresses } = story();
    await addresses.createNetwork('blue', ['10.83.1.0/24']);
    await addresses.createNetwork('tiny', [{ cidr: '10.83.2.0/30', exclude: ['10.83.2.2'] }]);
    const config = (name: string, more: object) => {
      const base = { cniVersion: '0.4.0', name: `${namespace}-${name}`, type: 'bridge', bridge: `br-${name}` };
      return { config: { ...base, ...more } };
    };
    const ipam = { type: 'host-local', subnet: '10.83.3.0/24' };
    await story().network('typo', config('typo', { allowPersistentIP: true }));
    await story().network('theirs', config('theirs', { allowPersistentIPs: true, ipam }));
    await story().network('routed', config('routed', { isDefaultGateway: true, ipam }));
    await story().network('flat', config('flat', { allowPersistentIPs: true }));

    const requesting = (address: string) => {
      return { annotations: { [REQUEST]: JSON.stringify({ data: [address] }) }, running: false };
    };
    await story().createVm('owner', { data: 'blue', control: 'tiny' }, requesting('10.83.1.5'));
    await addresses.waitForIPs('owner.data');
    await addresses.waitForIPs('owner.control');
    await story().createVm('no-nad', { data: 'nowhere' }, { running: false });
    await story().createVm('typo', { data: 'typo' }, { running: false });
    await story().createVm('routes', { data: 'routed' }, { running: false });
    await story().createVm('bad-request', { data: 'blue' }, requesting('10.83.1.300'));
    await story().createVm('full', { data: 'tiny' }, { running: false });
    await story().createVm('taken', { data: 'blue' }, requesting('10.83.1.5'));
    await story().createVm('outside', { data: 'blue' }, requesting('10.99.0.1'));
    await story().createVm('theirs', { data: 'theirs' });
    await story().createVm('flat', { data: 'flat' });

    for (const { vm, event, cause } of WAITING)
      expect((await story().waitForEvent(vm, event)).message, vm).to.include(cause);
    const run = async (...args: string[]) => (await new KubectlPlugin(bed().kubeconfig, args).result).stdout;
    const page = await pageOf();
    const [doctor, status] = await Promise.all([run('doctor', '-o', 'json'), run('status', '-o', 'json')]);
    for (const { vm, reason, event, cause } of WAITING) {
      const trace = await run('trace', 'vm', vm, '-n', namespace);
      expect(trace, `trace of ${vm}`)
        .to.include(cause)
        .and.to.include(reason ?? event);
      const lists = { doctor: findingsOf(doctor), status: findingsOf(status), page };
      for (const [tool, findings] of Object.entries(lists)) {
        const own = findings.filter(({ object }) => object === `VirtualMachine ${namespace}/${vm}`);
        expect(own, `${tool} of ${vm}`).to.have.length(1);
        expect(own[0]?.problem)
          .to.include(cause)
          .and.to.include(`network "data": ${reason ?? event}: `);
        expect(own[0]?.remedy).to.match(/\w/);
      }
      expect(findingsOf(doctor).some(({ object }) => object.endsWith(`${namespace}/owner`))).to.equal(false);
    }
  });

  type Findings = readonly { readonly object: string; readonly problem: string; readonly remedy: string }[];

  function findingsOf(json: string): Findings {
    return (JSON.parse(json) as { findings: Findings }).findings;
  }

  async function pageOf(): Promise<Findings> {
    const files = { script: '', style: '' };
    const { client } = story();
    const deps = { client, clusterFlags: '', clock: systemClock, random: Math.random, randomBytes, page: files };
    const ui = await Ui.start(deps, { port: 0, namespace: story().namespace });
    const reader = ViewReader.open(ui, await enter(ui), 'view=waiting');
    try {
      const view = await reader.until<WaitingView & ServerView>(({ findings }) => findings !== undefined);
      return view.findings?.rows ?? [];
    } finally {
      reader.close();
      await ui.stop();
    }
  }
});
