import { expect } from 'chai';
import type { KubeObject } from '../../api/meta.js';
import type { Client } from '../../kube/client.js';
import { StatusError } from '../../kube/errors.js';
import { NODES } from '../../kube/resources.js';
import { type PolicyCluster, expectDenial, untilDenied, usePolicyCluster } from '../testing/policy-cluster.js';

const CAPACITY = { namespace: 'holdfast-system', name: 'holdfast-capacity' };
const USER = 'system:serviceaccount:holdfast-system:holdfast-capacity';
const NODE = { name: 'node-1' };
const BLUE = 'ipam.holdfast.dev/blue';
const CPU = { cpu: '4', memory: '8Gi', pods: '110' };

const STATUS_ONLY = 'may only write free addresses to the status of nodes';
const OUR_KEYS = 'may only write keys that begin with ipam.holdfast.dev/';
const OUR_FIELDS = 'may only write status.capacity and status.allocatable of nodes';
const NO_METADATA = 'may only write the status of nodes, and this request changes metadata.';

interface Node extends KubeObject {
  status: { capacity: Record<string, string>; allocatable: Record<string, string> };
}

describe('the admission policy for free addresses on nodes, on a kube-apiserver', function () {
  let cluster: PolicyCluster;
  /** A client with the shipped rights. */
  let own: Client;
  /** A client with all rights by RBAC. */
  let mighty: Client;

  usePolicyCluster(this, async (started) => {
    cluster = started;
    await cluster.admin.create(NODES, { metadata: { ...NODE, labels: { zone: 'a' } } });
    await writeStatus(cluster.admin, {
      capacity: CPU,
      allocatable: CPU,
      conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'ready' }],
      addresses: [{ type: 'InternalIP', address: '192.0.2.1' }],
    });
    own = await cluster.withToken(CAPACITY);
    mighty = await cluster.as(USER);
    await untilDenied(() =>
      own.patch(NODES, NODE, merge({ capacity: { cpu: '1' } }), { subresource: 'status', dryRun: true }),
    );
  });

  function merge(status: object) {
    return { type: 'merge', body: { status } } as const;
  }

  async function writeStatus(client: Client, status: object): Promise<Node> {
    return (await client.patch(NODES, NODE, merge(status), { subresource: 'status' })) as Node;
  }

  it('allows to add, change and remove keys of Holdfast, and other keys stay unchanged', async () => {
    const written = await writeStatus(own, { capacity: { [BLUE]: '5' }, allocatable: { [BLUE]: '5' } });
    expect(written.status.capacity).to.deep.equal({ ...CPU, [BLUE]: '5' });
    expect(written.status.allocatable).to.deep.equal({ ...CPU, [BLUE]: '5' });
    await writeStatus(own, { capacity: { [BLUE]: '2500' }, allocatable: { [BLUE]: '2500' } });
    const removed = await writeStatus(own, { capacity: { [BLUE]: null }, allocatable: { [BLUE]: null } });
    expect(removed.status.capacity).to.deep.equal(CPU);
  });

  it('allows a write to the intended node, but not to a new node with the same name', async () => {
    const { metadata } = await cluster.admin.get(NODES, NODE);
    const write = (uid: string | undefined) => {
      const body = { metadata: { uid }, status: { capacity: { [BLUE]: '1' }, allocatable: { [BLUE]: '1' } } };
      return own.patch(NODES, NODE, { type: 'merge', body }, { subresource: 'status', dryRun: true });
    };
    await write(metadata.uid);
    const error: unknown = await write('11111111-2222-4333-8444-555555555555').catch((reason: unknown) => reason);
    expect(error, 'another node').to.be.instanceOf(StatusError);
    expect(error).to.have.property('message').that.includes('metadata.uid');
  });

  const refused: { name: string; status: object; expect: string }[] = [
    { name: 'another capacity', status: { capacity: { cpu: '1' } }, expect: OUR_KEYS },
    { name: 'another allocatable', status: { allocatable: { cpu: '1' } }, expect: OUR_KEYS },
    { name: 'no capacity of another resource', status: { capacity: { memory: null } }, expect: OUR_KEYS },
    { name: 'no allocatable amount of another resource', status: { allocatable: { memory: null } }, expect: OUR_KEYS },
    { name: 'capacity of a new resource', status: { capacity: { 'devices.kubevirt.io/kvm': '1' } }, expect: OUR_KEYS },
    {
      name: 'a key that only resembles a key of Holdfast',
      status: { capacity: { 'ipam.holdfast.developer/blue': '1' } },
      expect: OUR_KEYS,
    },
    { name: 'no conditions', status: { conditions: null }, expect: OUR_FIELDS },
    {
      name: 'another condition',
      status: { conditions: [{ type: 'Ready', status: 'False', reason: 'Gone', message: 'gone' }] },
      expect: OUR_FIELDS,
    },
    { name: 'addresses', status: { addresses: [{ type: 'InternalIP', address: '192.0.2.2' }] }, expect: OUR_FIELDS },
    { name: 'a field that it did not have', status: { volumesInUse: ['kubernetes.io/csi/x'] }, expect: OUR_FIELDS },
    { name: 'another kubelet version', status: { nodeInfo: { kubeletVersion: 'v9' } }, expect: OUR_FIELDS },
  ];
  for (const { name, status, expect: words } of refused) {
    it(`denies to write ${name}, with or without keys of Holdfast in the same write`, async () => {
      await expectDenial(writeStatus(own, status), words);
      const ours = { capacity: { [BLUE]: '5' }, allocatable: { [BLUE]: '5' } };
      const both = Object.entries(status).map(([field, value]) =>
        field in ours && value !== null
          ? [field, { ...ours.capacity, ...(value as object) }]
          : [field, value as unknown],
      );
      await expectDenial(writeStatus(own, { ...ours, ...(Object.fromEntries(both) as object) }), words);
    });
  }

  const metadata: { name: string; metadata: object }[] = [
    { name: 'label', metadata: { labels: { zone: 'b' } } },
    { name: 'labels', metadata: { labels: null } },
    { name: 'annotation', metadata: { annotations: { note: 'x' } } },
    { name: 'finalizer', metadata: { finalizers: ['a.b/c'] } },
  ];
  for (const { name, metadata: changed } of metadata) {
    it(`denies to change ${name} by a write of the status`, async () => {
      const patch = { type: 'merge', body: { metadata: changed } } as const;
      await expectDenial(own.patch(NODES, NODE, patch, { subresource: 'status' }), NO_METADATA);
    });
  }

  it('denies all other writes to nodes, even if RBAC allows them', async () => {
    await expectDenial(
      mighty.patch(NODES, NODE, { type: 'merge', body: { spec: { unschedulable: true } } }),
      STATUS_ONLY,
    );
    await expectDenial(mighty.patch(NODES, NODE, merge({ capacity: { [BLUE]: '1' } })), STATUS_ONLY);
    await expectDenial(mighty.create(NODES, { metadata: { name: 'node-2' } }), STATUS_ONLY);
    await expectDenial(mighty.delete(NODES, NODE), STATUS_ONLY);
  });

  it('applies to a service account of the same name in another namespace', async () => {
    const namesake = await cluster.as('system:serviceaccount:tenant:holdfast-capacity');
    await expectDenial(writeStatus(namesake, { capacity: { cpu: '1' } }), OUR_KEYS);
  });

  it('does not apply to other users', async () => {
    const kubelet = await cluster.as('system:serviceaccount:kube-system:kubelet-of-a-test');
    await expectDenial(writeStatus(kubelet, { capacity: { cpu: '3' } }), undefined);
    await expectDenial(writeStatus(kubelet, { capacity: { cpu: '4' } }), undefined);
  });
});
