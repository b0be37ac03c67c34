import { expect } from 'chai';
import { parseAddress } from '../../addressing/address/address.js';
import { leaseName } from '../../addressing/lease/lease-name.js';
import { TransportError } from '../../kube/errors.js';
import type { ApiRequest } from '../../kube/transport/transport.js';
import { IpamModelCluster } from './testing/model/cluster.js';

const KEY = 'vms/a';
/** The IPv6 addresses of the pool. */
const IPV6 = ['2001:db8::', '2001:db8::1', '2001:db8::2', '2001:db8::3'];

describe('a release without an answer, of a lease that no status has shown', () => {
  it('does not take the address from the claim that shows it when it arrives', async () => {
    const cluster = new IpamModelCluster();
    const { world, api } = cluster;
    const ipam = cluster.processes[0]!;
    const nameOf = (address: string) => leaseName('blue', parseAddress(address));
    const shown = () => world.get('ipamclaims', KEY)?.status?.ips ?? [];
    const occupyIPv6 = () => {
      for (const address of IPV6) {
        const metadata = { name: nameOf(address) };
        if (world.get('addressleases', metadata.name) === undefined)
          world.create('addressleases', { metadata, spec: { address, addressSpace: 'blue', pool: 'blue' } });
      }
    };
    cluster.operate({ do: 'pool', pool: 'dual' });
    cluster.operate({ do: 'create', name: 'a', request: undefined, restored: undefined, owned: true });
    ipam.deliverAll();
    let late: ApiRequest | undefined;
    api.before = (request) => {
      const text = JSON.stringify(request.body ?? {});
      // others get the last IPv6 addresses first
      if (request.method === 'POST' && text.includes('2001:db8')) occupyIPv6();
      if (!text.includes('releasedAt')) return undefined;
      late = request;
      return { error: new TransportError('deadline', 'no complete response'), applied: false };
    };
    await ipam.syncFromQueue(KEY);
    api.before = () => undefined;
    expect(late, cluster.describe()).to.not.equal(undefined);

    world.remove('addressleases', nameOf(IPV6[2]!));
    ipam.deliverAll();
    await ipam.syncFromQueue(KEY);
    const ips = shown();
    expect(ips, cluster.describe()).to.have.length(2);

    // until the next sync, the lease is released while its claim shows it: nobody else gets it in its cool-down
    const { admit } = world.tracker;
    world.tracker.admit = () => undefined;
    api.serve(late!);
    world.tracker.admit = admit;
    await cluster.settle();
    expect(shown()).to.deep.equal(ips);
    const lease = world.get('addressleases', nameOf(ips[0]!.split('/')[0]!));
    expect(lease?.spec.releasedAt, cluster.describe()).to.equal(undefined);
    expect(lease?.spec.owner?.name).to.equal('a');
  });
});
