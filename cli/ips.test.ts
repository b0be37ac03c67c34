import { expect } from 'chai';
import type { AddressLease } from '../api/address-lease.js';
import type { IPAMClaim } from '../api/ipam-claim.js';
import { StatusError } from '../kube/errors.js';
import type { Resource } from '../kube/resource.js';
import type { Client, ListOptions } from '../kube/client.js';
import { listIps } from './ips.js';
import { CommandError } from './exit-code.js';
import { textOf } from './terminal.js';

function claim(vm: string, status: Partial<NonNullable<IPAMClaim['status']>> = {}, deleting = false): IPAMClaim {
  const annotations = {
    'ipam.holdfast.dev/owner-name': vm,
    'ipam.holdfast.dev/owner-uid': `${vm}-uid`,
    'ipam.holdfast.dev/vm-network': 'data',
    'ipam.holdfast.dev/network-attachment-definition': 'a/blue',
  };
  return {
    metadata: {
      ...{ namespace: 'a', name: `${vm}.data`, uid: `claim-${vm}`, annotations },
      ...(deleting && { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    },
    spec: { network: 'blue', interface: 'pod123' },
    status: { ips: [], ...status },
  };
}

function lease(address: string, spec: Partial<AddressLease['spec']>): AddressLease {
  return { metadata: { name: address }, spec: { address, addressSpace: 'blue', pool: 'blue.a', ...spec } };
}

const POD = { kind: 'Pod', namespace: 'a', name: 'p', uid: 'p-uid' } as const;
const CLAIMS = [
  claim('keeper', { ips: ['10.0.0.5/24', 'fd00::5/64'], ownerPod: { name: 'virt-launcher-keeper-x' } }),
  claim('asleep', { ips: ['10.0.0.6/24'] }),
  claim('new'),
  claim('hungry', {
    conditions: [
      { type: 'IPsAllocated', status: 'False', reason: 'SubnetExhausted', message: 'full', lastTransitionTime: '' },
    ],
  }),
  claim('leaving', { ips: ['10.0.0.9/24'] }, true),
  claim('removed', { ips: ['10.0.0.4/24'], ownerPod: { name: 'virt-launcher-removed-x' } }, true),
  claim('starting', { ips: ['10.0.0.3/24'] }),
  claim('unread', { ips: ['10.0.0.2/24'] }),
];
const VMS = Object.entries({ asleep: 'Stopped', starting: 'Starting' }).map(([name, printableStatus]) => ({
  metadata: { namespace: 'a', name },
  status: { printableStatus },
}));
const LEASES = [
  lease('10.0.0.5', { owner: { kind: 'IPAMClaim', namespace: 'a', name: 'keeper.data', uid: 'claim-keeper' } }),
  lease('203.0.113.7', { owner: POD, interface: 'net1', node: 'node-1' }),
  lease('2001:db8::7', { owner: POD, interface: 'net1', node: 'node-1' }),
  lease('10.0.0.8', { owner: POD, interface: 'net2' }),
  lease('10.0.0.9', { owner: { ...POD, uid: 'old' }, releasedAt: '2026-01-01T00:00:00Z' }),
  lease('10.0.0.10', {}),
];

function clientOf(mayseeLeases: boolean, asked: ListOptions[] = []): Pick<Client, 'listAs'> {
  return clientFor(({ plural }, options) => {
    asked.push(options);
    if (plural === 'ipamclaims') return CLAIMS;
    if (plural === 'virtualmachines') return VMS;
    if (mayseeLeases) return LEASES;
    throw new StatusError({ request: 'GET', status: 403, reason: 'Forbidden', message: 'no' });
  });
}

function clientFor(itemsOf: (resource: Resource, options: ListOptions) => readonly object[]): Pick<Client, 'listAs'> {
  const listAs = (resource: Resource, transform: (object: object) => unknown, options: ListOptions = {}) =>
    Promise.resolve().then(() => ({ items: itemsOf(resource, options).map(transform), resourceVersion: '1' }));
  return { listAs } as unknown as Pick<Client, 'listAs'>;
}

const HERE = { allNamespaces: false };
const EVERYWHERE = { ...HERE, allNamespaces: true };

async function linesOf(...args: Parameters<typeof listIps>): Promise<string[]> {
  return (await listIps(...args)).lines(false).map(textOf);
}
const columns = (lines: readonly string[]) => lines.map((line) => line.trim().split(/ {3,}/).join(' | '));

describe('the list of addresses', () => {
  it('contains those of VMs and of pods without claims', async () => {
    const asked: ListOptions[] = [];
    expect(columns(await linesOf(HERE, clientOf(true, asked), 'a'))).to.deep.equal([
      'KIND | NAME | INTERFACE | NAD | ADDRESSES | POOL | STATE',
      'VM | asleep | data | a/blue | 10.0.0.6/24 | Stopped',
      'VM | hungry | data | a/blue | SubnetExhausted',
      'VM | keeper | data | a/blue | 10.0.0.5/24 fd00::5/64 | blue.a | Running (virt-launcher-keeper-x)',
      'VM | leaving | data | a/blue | 10.0.0.9/24 | Releasing',
      'VM | new | data | a/blue | Waiting',
      'VM | removed | data | a/blue | 10.0.0.4/24 | Running (virt-launcher-removed-x)',
      'VM | starting | data | a/blue | 10.0.0.3/24 | Starting',
      'VM | unread | data | a/blue | 10.0.0.2/24 | Not in use',
      'Pod | p | net1 | 203.0.113.7 2001:db8::7 | blue.a | Running (node-1)',
      'Pod | p | net2 | 10.0.0.8 | blue.a | Running',
    ]);
    const leases = { pageSize: 1_000, labelSelector: 'ipam.holdfast.dev/owner-namespace=a' };
    // managedFields are a third of an object
    const expected = [{ namespace: 'a' }, leases, { namespace: 'a' }].map((each) => ({
      ...each,
      dropsManagedFields: true,
    }));
    expect(asked).to.deep.equal(expected);
  });

  for (const [where, options, namespace] of [
    ['the namespace of the context', HERE, 'home'],
    ['the namespace that is named', { ...HERE, namespace: 'b' }, 'b'],
    ['all namespaces', EVERYWHERE, undefined],
  ] as const) {
    it(`reads ${where}`, async () => {
      const asked: ListOptions[] = [];
      await listIps(options, clientOf(true, asked), 'home');
      expect(asked[0]).to.deep.include({ namespace });
    });
  }

  for (const [said, status] of Object.entries({ without: { conditions: [] }, 'with null for': { ips: null } }))
    it(`has none for a claim whose status another IPAM wrote ${said} addresses`, async () => {
      const items = [{ ...claim('foreign'), status }];
      const client = clientFor(({ plural }) => (plural === 'ipamclaims' ? items : []));
      const lines = columns(await linesOf(HERE, client, 'a'));
      expect(lines[1]).to.equal('VM | foreign | data | a/blue | Waiting');
    });

  it('contains only VMs for a user who may not list leases', async () => {
    const lines = columns(await linesOf(HERE, clientOf(false), 'a'));
    expect(lines).to.have.length(9);
    expect(lines[3]).to.equal(
      'VM | keeper | data | a/blue | 10.0.0.5/24 fd00::5/64 | Running (virt-launcher-keeper-x)',
    );
  });

  it('is not said to be empty to a user who may not list leases', async () => {
    const client = clientFor(({ plural }) => {
      if (plural !== 'addressleases') return [];
      throw new StatusError({ request: 'GET', status: 403, reason: 'Forbidden', message: 'no right' });
    });
    expect(await linesOf(HERE, client, 'a')).to.deep.equal([
      'no VM with addresses found in namespace a; addresses of pods without claims are not shown: GET: 403 Forbidden: no right',
    ]);
  });

  it('names the namespaces if it covers all, and is available as JSON', async () => {
    expect((await linesOf(EVERYWHERE, clientOf(true), 'a'))[0]).to.match(/^NAMESPACE +KIND/);
    const rows = (await listIps(EVERYWHERE, clientOf(true), 'a')).data as { owner: string }[];
    expect(rows.map(({ owner }) => owner)).to.deep.equal([
      'asleep',
      'hungry',
      'keeper',
      'leaving',
      'new',
      'removed',
      'starting',
      'unread',
      'p',
      'p',
    ]);
  });

  for (const missing of ['ipamclaims', 'addressleases']) {
    it(`says to install Holdfast if the API server does not serve ${missing}`, async () => {
      const error = new StatusError({ request: 'GET', status: 404, reason: 'NotFound', message: 'page not found' });
      const client = clientFor(({ plural }) => {
        if (plural === missing) throw error;
        return [];
      });
      const refusal = await listIps(EVERYWHERE, client, 'a').catch((thrown: unknown) => thrown);
      expect(refusal).to.be.instanceOf(CommandError);
      expect((refusal as CommandError).message).to.match(
        new RegExp(`does not serve ${missing}\\..*: install Holdfast first$`),
      );
    });
  }
});
