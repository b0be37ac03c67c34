import { expect } from 'chai';
import { claimName } from '../../api/ipam-claim.js';
import { REQUESTED_ADDRESSES_ANNOTATION } from '../../api/names.js';
import { podInterfaceName } from '../../api/pod.js';
import { traceVirtualMachine } from '../../cli/trace/trace.js';
import { textOf } from '../../cli/terminal.js';
import { systemClock } from '../../kube/clock.js';
import { describeStory } from '../../bed/story/describe.js';

const DATA = podInterfaceName('data');

describeStory('A NAD', (story) => {
  it('may be in another namespace than the VM and its claim', async () => {
    const elsewhere = await story().otherNamespace();
    await story().network('blue', { namespace: elsewhere });
    await story().runVm('vm1', { data: `${elsewhere}/blue` });
    await story().waitForClaims(['vm1.data']);
    expect(await story().references('vm1')).to.deep.equal([{ [DATA]: 'vm1.data' }]);
  });

  it('that is invalid affects only its own interface, and an event of the VM names the field', async () => {
    await story().network('blue');
    await story().network('unrelated', { config: '{ this is not JSON' });
    const broken = { cniVersion: '0.4.0', name: 'broken-net', type: 'bridge', bridge: 'br-broken' };
    await story().network('broken', { config: { ...broken, allowPersistentIPs: 'yes' } });
    await story().runVm('vm1', { data: 'blue', other: 'broken' });
    await story().waitForClaims(['vm1.data']);
    expect(await story().references('vm1')).to.deep.equal([{ [DATA]: 'vm1.data' }]);
    const event = await story().waitForEvent('vm1', 'NetworkAttachmentInvalid');
    expect(event.message).to.include('broken').and.to.include('spec.config.allowPersistentIPs');
  });

  it('that misspells allowPersistentIPs is named by kubectl, in an event of the VM and in its trace', async () => {
    const ipam = { type: 'holdfast', subnets: [{ cidr: '10.83.1.0/24' }] };
    const config = { cniVersion: '0.4.0', name: 'typo-net', type: 'bridge', bridge: 'br-typo', ipam };
    const nad = {
      ...{ apiVersion: 'k8s.cni.cncf.io/v1', kind: 'NetworkAttachmentDefinition', metadata: { name: 'typo' } },
      spec: { config: JSON.stringify({ ...config, allowPersistentIP: true }) },
    };
    const words = 'spec.config.allowPersistentIP has no effect: write allowPersistentIPs';
    expect(await (await story().kubectl()).succeed(['apply', '-f', '-'], JSON.stringify(nad))).to.include(words);
    await story().createVm('vm1', { data: 'typo' }, { running: false });
    expect((await story().waitForEvent('vm1', 'AddressNotPersistent')).message).to.include(words);
    const deps = { client: story().client, clock: systemClock, isUnicode: false, clusterFlags: '' };
    const { output } = await traceVirtualMachine(story().ref('vm1'), deps);
    expect(output.lines(false).map(textOf).join('\n')).to.include(words);
  });

  it('that does not allow persistent IPs serves no request for addresses; nor does a network that the VM does not have: the VM hears of both', async () => {
    await story().network('blue');
    await story().network('plain', { persistent: false });
    const request = JSON.stringify({ dta: ['10.0.0.5'], other: ['10.0.0.6'] });
    const annotations = { [REQUESTED_ADDRESSES_ANNOTATION]: request };
    await story().createVm('vm1', { data: 'blue', other: 'plain' }, { running: false, annotations });
    await story().waitForClaims(['vm1.data']);
    await story().waitForEvent(
      'vm1',
      'RequestedAddressesInvalid',
      /no network "dta" \(it has "default", "data", "other"\)/,
    );
    await story().waitForEvent(
      'vm1',
      'RequestedAddressesInvalid',
      /network "other": .*\/plain does not allow persistent IPs/,
    );
  });

  it('that is deleted does not affect existing claims', async () => {
    await story().network('blue');
    await story().runVm('vm1', { data: 'blue' });
    const claim = await story().waitForClaim('vm1.data');
    await story().removeNetwork('blue');
    await story().waitControllerIdle();
    expect((await story().waitForClaim('vm1.data')).metadata.uid).to.equal(claim.metadata.uid);
    await story().network('blue');
    await story().restart('vm1');
    expect(await story().references('vm1')).to.deep.equal([{ [DATA]: 'vm1.data' }]);
  });
});

describeStory('Unusual names', (story) => {
  it('of networks with upper case and underscores lead to valid claim names without collisions', async () => {
    await story().network('blue');
    const networks = ['Data_Net', 'data_net', 'data-net'];
    await story().createVm('vm1', Object.fromEntries(networks.map((network) => [network, 'blue'])));
    await story().waitRunning('vm1');
    const names = networks.map((network) => claimName('vm1', network));
    expect(new Set(names).size).to.equal(3);
    await story().waitForClaims(names);
    expect(await story().references('vm1')).to.deep.equal([
      Object.fromEntries(networks.map((network) => [podInterfaceName(network), claimName('vm1', network)])),
    ]);
  });

  it('of VMs that are longer than a label are supported', async () => {
    const name = 'a-virtual-machine-with-a-name-that-is-longer-than-any-label-value-may-be';
    expect(name.length).to.be.greaterThan(63);
    await story().network('blue');
    await story().runVm(name, { data: 'blue' });
    await story().waitForClaims([`${name}.data`]);
    expect(await story().references(name)).to.deep.equal([{ [DATA]: `${name}.data` }]);
  });
});

describeStory('A namespace that opts out', (story) => {
  it('gets no new claims until it opts in again', async () => {
    await story().labelNamespace({ 'ipam.holdfast.dev/persistent-ips': 'disabled' });
    await story().network('blue');
    await story().runVm('vm1', { data: 'blue' });
    expect(await story().claimNames()).to.deep.equal([]);
    expect(await story().references('vm1')).to.deep.equal([{}]);
    await story().labelNamespace({ 'ipam.holdfast.dev/persistent-ips': null });
    await story().waitForClaims(['vm1.data']);
  });
});
