import { expect } from 'chai';
import type { KubeObject } from '../api/meta.js';
import type { Client } from '../kube/client.js';
import { StatusError } from '../kube/errors.js';
import { NODES } from '../kube/resources.js';
import { PolicyCluster, expectDenial, untilDenied } from './testing/policy-cluster.js';

const CAPACITY = { namespace: 'holdfast-system', name: 'holdfast-capacity' };
const USER = 'system:serviceaccount:holdfast-system:holdfast-capacity';
const NODE = { name: 'node-1' };
const BLUE = 'ipam.holdfast.dev/blue';
const CPU = { cpu: '4', memory: '8Gi', pods: '110' };

const STATUS_ONLY = 'shows free addresses in the status of nodes, and does nothing else to nodes';
const OUR_KEYS = 'writes keys that begin with ipam.holdfast.dev/ only';
const OUR_FIELDS = 'writes status.capacity and status.allocatable of nodes only';
const NO_METADATA = 'writes the status of nodes only, and this changes metadata.';

interface Node extends KubeObject {
  status: { capacity: Record<string, string>; allocatable: Record<string, string> };
}

describe('the admission policy for free addresses on nodes, on a kube-apiserver', function () {
  this.timeout(20_000);
  let cluster: PolicyCluster;
  /** As it is shipped. */
  let own: Client;
  /** With all rights that RBAC can give. */
  let mighty: Client;

  before(async function () {
    this.timeout(15 * 60_000); // the first run builds the API server
    cluster = await PolicyCluster.start({ kubevirtNamespace: 'kubevirt' });
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

  after(() => cluster.stop());

  function merge(status: object) {
    return { type: 'merge', body: { status } } as const;
  }

  async function writeStatus(client: Client, status: object): Promise<Node> {
    return (await client.patch(NODES, NODE, merge(status), { subresource: 'status' })) as Node;
  }

  it('lets its keys come, change and go, and leaves all others as they are', async () => {
    const written = await writeStatus(own, { capacity: { [BLUE]: '5' }, allocatable: { [BLUE]: '5' } });
    expect(written.status.capacity).to.deep.equal({ ...CPU, [BLUE]: '5' });
    expect(written.status.allocatable).to.deep.equal({ ...CPU, [BLUE]: '5' });
    await writeStatus(own, { capacity: { [BLUE]: '2500' }, allocatable: { [BLUE]: '2500' } });
    const removed = await writeStatus(own, { capacity: { [BLUE]: null }, allocatable: { [BLUE]: null } });
    expect(removed.status.capacity).to.deep.equal(CPU);
  });

  it('lets them come on the node that is meant, and on none that was made anew under its name', async () => {
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
    { name: 'no capacity of another kind', status: { capacity: { memory: null } }, expect: OUR_KEYS },
    { name: 'nothing allocatable of another kind', status: { allocatable: { memory: null } }, expect: OUR_KEYS },
    { name: 'a capacity that is new', status: { capacity: { 'devices.kubevirt.io/kvm': '1' } }, expect: OUR_KEYS },
    {
      name: 'a name that only looks like ours',
      status: { capacity: { 'ipam.holdfast.developer/blue': '1' } },
      expect: OUR_KEYS,
    },
    { name: 'no conditions', status: { conditions: null }, expect: OUR_FIELDS },
    {
      name: 'another condition',
      status: { conditions: [{ type: 'Ready', status: 'False', reason: 'Gone', message: 'gone' }] },
      expect: OUR_FIELDS,
    },
    {
      name: 'other addresses',
      status: { addresses: [{ type: 'InternalIP', address: '192.0.2.2' }] },
      expect: OUR_FIELDS,
    },
    { name: 'what it had not', status: { volumesInUse: ['kubernetes.io/csi/x'] }, expect: OUR_FIELDS },
    { name: 'another kubelet', status: { nodeInfo: { kubeletVersion: 'v9' } }, expect: OUR_FIELDS },
  ];
  for (const { name, status, expect: words } of refused) {
    it(`lets it write ${name} to no node, with keys of ours beside it or without`, async () => {
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
    it(`lets it change no ${name} by way of the status`, async () => {
      const patch = { type: 'merge', body: { metadata: changed } } as const;
      await expectDenial(own.patch(NODES, NODE, patch, { subresource: 'status' }), NO_METADATA);
    });
  }

  it('lets it do nothing else to nodes, whatever RBAC lets it', async () => {
    await expectDenial(
      mighty.patch(NODES, NODE, { type: 'merge', body: { spec: { unschedulable: true } } }),
      STATUS_ONLY,
    );
    await expectDenial(mighty.patch(NODES, NODE, merge({ capacity: { [BLUE]: '1' } })), STATUS_ONLY);
    await expectDenial(mighty.create(NODES, { metadata: { name: 'node-2' } }), STATUS_ONLY);
    await expectDenial(mighty.delete(NODES, NODE), STATUS_ONLY);
  });

  it('is for a namesake elsewhere, too', async () => {
    const namesake = await cluster.as('system:serviceaccount:tenant:holdfast-capacity');
    await expectDenial(writeStatus(namesake, { capacity: { cpu: '1' } }), OUR_KEYS);
  });

  it('is for nobody else', async () => {
    const kubelet = await cluster.as('system:serviceaccount:kube-system:kubelet-of-a-test');
    await expectDenial(writeStatus(kubelet, { capacity: { cpu: '3' } }), undefined);
    await expectDenial(writeStatus(kubelet, { capacity: { cpu: '4' } }), undefined);
  });
});
