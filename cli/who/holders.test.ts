import { StatusError } from '../../kube/errors.js';
import { expect } from 'chai';
import { ADDRESS_LEASES, ADDRESS_POOLS, IPAM_CLAIMS, PODS } from '../../kube/resources.js';
import { leaseOf, networkDataLock } from '../../test/objects/lease-objects.js';
import { adminPool } from '../../test/objects/pool-objects.js';
import { NAMESPACE } from '../../test/objects/workload-objects.js';
import { leaseLabels } from '../../addressing/lease/lease-record.js';
import { parseAddress } from '../../addressing/address/address.js';
import { readLease } from '../../addressing/lease/lease.js';
import { readCliCommandLine } from '../command-line.js';
import { MemoryCluster } from '../testing/memory-cluster.js';
import { allocatedClaim, claimLease, runningLauncher } from '../testing/vm-story.js';
import { describeState, findHolders, findHoldersOfMac } from './holders.js';

const RELEASED = Date.parse('2030-01-01T00:00:00Z');
const MAC = '02:00:00:00:00:01';
const MINUTE = 60_000;

describe('The state of a lease', () => {
  const times = { cooldownMs: 5 * MINUTE, stickyMs: 60 * MINUTE, isStickyForClaims: true };
  const cases: [string, Parameters<typeof leaseOf>[2], number, string][] = [
    ['held', {}, 0, 'held'],
    ['cooling down', { releasedAt: RELEASED }, 4, 'released, cooling down until 2030-01-01T00:05:00.000Z'],
    [
      'cooling down with a MAC address',
      { releasedAt: RELEASED, mac: MAC },
      4,
      'released, cooling down until 2030-01-01T00:05:00.000Z',
    ],
    [
      'sticky',
      { releasedAt: RELEASED, mac: MAC },
      6,
      `released, sticky for MAC address ${MAC} until 2030-01-01T01:00:00.000Z`,
    ],
    ['expired without a MAC address', { releasedAt: RELEASED }, 6, 'released, about to be free'],
    ['expired', { releasedAt: RELEASED, mac: MAC }, 61, 'released, about to be free'],
    ['quarantined', { takenBy: MAC }, 0, `quarantined until 2030-01-01T01:00:00.000Z, because ${MAC} has it`],
    ['of a reservation', { releasedAt: RELEASED, mac: MAC, reserved: true }, 6, 'released, about to be reserved again'],
  ];
  for (const [name, options, minutes, wanted] of cases) {
    it(`says what follows if it is ${name}`, () => {
      const lease = readLease(leaseOf('10.0.0.5', 1, options));
      expect(describeState(lease, times, RELEASED + minutes * MINUTE)).to.equal(wanted);
    });
  }

  it('names the Secret that may still hold a released address', () => {
    const lease = leaseOf('10.0.0.5', 1, { releasedAt: RELEASED, networkData: networkDataLock({ namespace: 'vms' }) });
    expect(describeState(readLease(lease), times, RELEASED + 1_000 * MINUTE)).to.equal(
      'released, kept until the process guest has removed it from Secret vms/net',
    );
  });

  it('is without a time if its pool is gone, because only the pool knows it', () => {
    const lease = readLease(leaseOf('10.0.0.5', 1, { releasedAt: RELEASED }));
    expect(describeState(lease, undefined, RELEASED)).to.equal('released');
  });
});

describe('kubectl holdfast who', () => {
  const lease = claimLease({ mac: MAC });
  lease.metadata.labels = leaseLabels(lease.spec);
  const HELD = {
    ...{ address: '10.0.0.5', addressSpace: 'blue', pool: 'blue', state: 'held' },
    ...{ owner: `IPAMClaim ${NAMESPACE}/vm1.data`, vm: 'vm1', pods: 'virt-launcher-vm1-abcde on n1' },
    ...{ node: 'n1', mac: MAC, releasedAt: '' },
  };
  let cluster: MemoryCluster;
  beforeEach(() => {
    cluster = new MemoryCluster()
      .put(ADDRESS_POOLS, adminPool('blue', { subnets: [{ cidr: '10.0.0.0/29', exclude: ['10.0.0.3'] }] }))
      .put(ADDRESS_LEASES, lease)
      .put(IPAM_CLAIMS, allocatedClaim())
      .put(PODS, runningLauncher(), runningLauncher({ name: 'virt-launcher-vm1-old', phase: 'Succeeded' }));
  });

  async function holders(address: string): Promise<unknown> {
    return (await findHolders(parseAddress(address), cluster.client, RELEASED)).data;
  }

  it('names claim, VM, launcher, node and MAC address of the holder', async () => {
    expect(await holders('10.0.0.5')).to.deep.equal({ address: '10.0.0.5', holders: [HELD] });
  });

  it('names the launcher that ran before its claim took over its address, so that it does not name the claim', async () => {
    const { metadata, ...launcher } = runningLauncher();
    cluster.put(PODS, { ...launcher, metadata: { ...metadata, annotations: {} } });
    expect(await holders('10.0.0.5')).to.deep.equal({ address: '10.0.0.5', holders: [HELD] });
  });

  it('finds the addresses of a MAC address by the label of their leases alone', async () => {
    const { data } = await findHoldersOfMac(MAC, cluster.client, RELEASED);
    expect(data).to.deep.equal({ mac: MAC, holders: [HELD] });
    expect(cluster.reads).to.include('addressleases?ipam.holdfast.dev/mac=02-00-00-00-00-01');
    const rows = ['10.0.0.10', '10.0.0.9'].map((address) => {
      const spec = { ...lease.spec, address };
      return { ...lease, metadata: { ...lease.metadata, name: `blue.${address.replaceAll('.', '-')}` }, spec };
    });
    cluster.put(ADDRESS_LEASES, ...rows);
    const { data: all } = await findHoldersOfMac(MAC, cluster.client, RELEASED);
    const { holders: found } = all as { holders: { address: string }[] };
    expect(found.map(({ address }) => address)).to.deep.equal(['10.0.0.5', '10.0.0.9', '10.0.0.10']);
    const none = await findHoldersOfMac('02:00:00:00:00:02', cluster.client, RELEASED);
    expect(none.lines(false)).to.deep.equal(['no address is leased to 02:00:00:00:00:02']);
  });

  it('names no VM of another claim of the same name', async () => {
    cluster.change(IPAM_CLAIMS, 'vm1.data', (claim) => ({ ...claim, metadata: { ...claim.metadata, uid: 'other' } }));
    expect(await holders('10.0.0.5')).to.deep.equal({ address: '10.0.0.5', holders: [{ ...HELD, vm: '', pods: '' }] });
  });

  it('says what is unknown because the user may not read pods or claims', async () => {
    const unknown = { ...HELD, pods: `unknown: you may not list pods in namespace ${NAMESPACE}` };
    let refused = ['pods'];
    cluster.before = ({ path: request }) => {
      if (refused.some((kind) => request.includes(`/${kind}`)))
        throw new StatusError({ request, status: 403, reason: 'Forbidden', message: '' });
    };
    expect(await holders('10.0.0.5')).to.deep.equal({ address: '10.0.0.5', holders: [unknown] });
    refused = ['pods', 'ipamclaims'];
    const vm = 'unknown: you may not read the claim';
    expect(await holders('10.0.0.5')).to.deep.equal({ address: '10.0.0.5', holders: [{ ...unknown, vm }] });
  });

  it('says of an address without a lease whether it is free, never leased, or in no pool', async () => {
    const states = async (address: string) => {
      const { holders: rows } = (await holders(address)) as { holders: { state: string }[] };
      return rows.map(({ state }) => state);
    };
    expect(await states('10.0.0.2')).to.deep.equal(['free']);
    expect((await states('10.0.0.3'))[0]).to.include('exclude');
    expect(await states('10.9.0.1')).to.deep.equal([]);
  });

  for (const at of ['2030-02-30T12:00:00Z', '2030-04-31T12:00:00+01:00', '2030-13-01T12:00:00Z', '2030-01-31'])
    it(`rejects the time ${at}, and does not answer for another one`, () => {
      expect(() => readCliCommandLine(['who', '10.0.0.5', '--logs', '--at', at])).to.throw(
        `--at: "${at}" is not a time with its zone`,
      );
    });

  it('reads several files and the logs of pods, and searches the audit log by IP address only', () => {
    const request = (...args: string[]) => readCliCommandLine(['who', ...args])?.request;
    const at = ['--at', '2030-01-31T14:00:00+01:00'];
    expect(request('--file', 'a', '10.0.0.5', '--file', 'b,c', ...at)).to.deep.include({
      past: { at: '2030-01-31T13:00:00.000Z', files: ['a', 'b,c'], logs: false },
    });
    expect(request('--logs', '10.0.0.5', '--file', 'a', ...at)).to.deep.include({
      past: { at: '2030-01-31T13:00:00.000Z', files: ['a'], logs: true },
    });
    expect(request('02-00-00-00-00-01')).to.deep.include({ wanted: MAC });
    expect(() => request(MAC, '--file', 'a', ...at)).to.throw('--at: 02:00:00:00:00:01 is a MAC address');
    expect(() => request('10.0.0', '--file', 'a', ...at)).to.throw('a MAC address looks like');
    expect(() => request('10.0.0.5', ...at)).to.throw('--at belongs together with --file or --logs');
    expect(() => request('10.0.0.5', '--logs')).to.throw('--at belongs together with --file or --logs');
  });
});
