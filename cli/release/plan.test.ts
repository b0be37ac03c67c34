import { expect } from 'chai';
import { ADDRESS_POOLS, IPAM_CLAIMS, NODES, PODS, VIRTUAL_MACHINE_INSTANCES } from '../../kube/resources.js';
import { adminPool, claimOf } from '../../test/objects/pool-objects.js';
import type { MemoryCluster } from '../testing/memory-cluster.js';
import {
  BLUE_REQUESTED,
  MAC,
  clusterWith,
  leaseOfPod,
  podWith,
  refusal,
  releasedAt,
  restricted,
  run,
  silentPod,
  vmiWith,
} from './testing/release-cluster.js';

describe('kubectl holdfast release, if somebody may use the address', () => {
  for (const [why, prepare, message] of [
    [
      'its claim exists',
      (cluster) =>
        cluster.put(IPAM_CLAIMS, { ...claimOf('a/c1'), metadata: { namespace: 'a', name: 'c1', uid: 'c1-uid' } }),
      'IPAMClaim a/c1 still exists: delete it, or the VM to which it belongs',
    ],
    [
      'a pod reports the address',
      (cluster) => cluster.put(PODS, podWith(['10.0.0.5'])),
      'pod a/user reports the address: delete the pod, or stop its VM',
    ],
    [
      'a pod reports the address on a NAD that does not exist',
      (cluster) => cluster.put(PODS, podWith(['10.0.0.5'], 'a/gone')),
      'pod a/user reports the address',
    ],
    [
      'a pod reports an address that cannot be read',
      (cluster) => cluster.put(PODS, podWith(['10.0.0.500'])),
      'pod a/user reports an address that cannot be read ("10.0.0.500"): delete the pod, or stop its VM',
    ],
    [
      'a pod of the network reports nothing, because somebody has deleted the report',
      (cluster) => cluster.put(PODS, silentPod()),
      'pod a/user is on a network of the address, and does not report its addresses: delete the pod',
    ],
    [
      'the report of a pod of the network cannot be read',
      (cluster) => cluster.put(PODS, silentPod({ ...BLUE_REQUESTED, 'k8s.v1.cni.cncf.io/network-status': '[{' })),
      'pod a/user is on a network of the address, and does not report its addresses',
    ],
    [
      'neither the networks nor the report of a pod can be read',
      (cluster) => cluster.put(PODS, silentPod({ 'k8s.v1.cni.cncf.io/networks': '[{' })),
      'pod a/user is on a network of the address, and does not report its addresses',
    ],
    [
      'a VMI reports the address, while its pod does not',
      (cluster) => cluster.put(VIRTUAL_MACHINE_INSTANCES, vmiWith({ ipAddresses: ['10.0.0.5'] })),
      'VMI a/vm1 reports the address: stop the VM; or add --ignore vmi/a/vm1 if you know that it does not use the address',
    ],
    [
      'a VMI without a guest agent runs with the MAC address of the lease',
      (cluster) => cluster.put(VIRTUAL_MACHINE_INSTANCES, vmiWith({ mac: MAC.toUpperCase() })),
      'VMI a/vm1 runs with the MAC address of the lease, and reports no address of its family: stop the VM',
    ],
    [
      'a VMI with the MAC address of the lease reports only addresses of the other family',
      (cluster) => cluster.put(VIRTUAL_MACHINE_INSTANCES, vmiWith({ mac: MAC, ipAddresses: ['fd00::5'] })),
      'VMI a/vm1 runs with the MAC address of the lease, and reports no address of its family: stop the VM',
    ],
    [
      'a claim has a text in its status that cannot be read, of which the message shows the beginning',
      (cluster) => cluster.put(IPAM_CLAIMS, { ...claimOf('b/restored'), status: { ips: ['x'.repeat(5_000)] } }),
      `IPAMClaim b/restored has an address that cannot be read ("${'x'.repeat(80)}") in its status: correct or clear it, or delete`,
    ],
    [
      'another claim has the address in its status',
      (cluster) => cluster.put(IPAM_CLAIMS, { ...claimOf('b/restored'), status: { ips: ['10.0.0.5/24'] } }),
      'IPAMClaim b/restored has the address in its status and gets it back: delete its VM first',
    ],
  ] as readonly [string, (cluster: MemoryCluster) => MemoryCluster, string][])
    it(`refuses if ${why}`, async () => {
      expect(await refusal(prepare(clusterWith())))
        .to.include('nothing was released:')
        .and.include(message);
    });

  it('refuses for a user who may not list NADs if a pod reports the address on any network', async () => {
    const cluster = clusterWith().put(PODS, podWith(['10.0.0.5'], 'a/red'));
    cluster.refused.add('network-attachment-definitions');
    expect(await refusal(cluster)).to.include('pod a/user reports the address');
  });

  for (const [what, user, prepare] of [
    ['that cannot be read', 'pod/a/user', (cluster) => cluster.put(PODS, podWith(['10.0.0.500']))],
    ['that is wrong', 'pod/a/user', (cluster) => cluster.put(PODS, podWith(['10.0.0.5']))],
    ['that is missing', 'pod/a/user', (cluster) => cluster.put(PODS, silentPod())],
    [
      'of a guest agent that is wrong',
      'vmi/a/vm1',
      (cluster) => cluster.put(VIRTUAL_MACHINE_INSTANCES, vmiWith({ ipAddresses: ['10.0.0.5'] })),
    ],
  ] as readonly [string, string, (cluster: MemoryCluster) => MemoryCluster][])
    it(`ignores a report ${what} if the user names the object, and no other`, async () => {
      const cluster = prepare(clusterWith());
      const other = new Set(['pod/a/other', 'vmi/a/user', 'pod/a/vm1']);
      expect(await refusal(cluster, { ignored: other })).to.include(`--ignore ${user} if you know`);
      await run(cluster, { ignored: new Set([user]) });
      expect(releasedAt(cluster)).not.to.equal(undefined);
    });

  it('refuses while the node of a pod that is gone exists, because its containers may run there, unless the user names the node', async () => {
    const cluster = clusterWith(leaseOfPod()).put(NODES, { metadata: { name: 'n1' } });
    expect(await refusal(cluster)).to.include(
      'containers of pod a/p1 may still run on node n1, whose agent releases the address when they cannot: wait for that, or delete the Node if ' +
        'its machine is off; or add --ignore node/n1 if you know that they have ended',
    );
    await run(cluster, { ignored: new Set(['node/n1']) });
    expect(releasedAt(cluster)).not.to.equal(undefined);
  });

  it('does not refuse because of a node that is gone', async () => {
    const cluster = clusterWith(leaseOfPod()).put(NODES, { metadata: { name: 'n2' } });
    await run(cluster);
    expect(releasedAt(cluster)).not.to.equal(undefined);
  });

  it('does not ignore that the owner exists', async () => {
    const cluster = clusterWith();
    cluster.put(IPAM_CLAIMS, { ...claimOf('a/c1'), metadata: { namespace: 'a', name: 'c1', uid: 'c1-uid' } });
    const ignored = new Set(['pod/a/c1', 'vmi/a/c1']);
    expect(await refusal(cluster, { ignored })).to.include('IPAMClaim a/c1 still exists');
  });

  for (const [who, prepare] of [
    [
      'an unreadable report in a namespace that no pool of the address space serves',
      (cluster) => restricted(cluster.put(PODS, podWith(['junk']))),
    ],
    [
      'a missing report in a namespace that no pool of the address space serves',
      (cluster) => restricted(cluster.put(PODS, silentPod())),
    ],
    [
      'a missing report in a namespace that the pool of a NAD does not serve',
      (cluster) => {
        const { metadata } = adminPool('blue', { nadNamespace: 'other' });
        cluster.change(ADDRESS_POOLS, 'blue', (pool) => ({ ...pool, metadata: { ...pool.metadata, ...metadata } }));
        return cluster.put(PODS, silentPod());
      },
    ],
    [
      'a missing report of another network',
      (cluster) => cluster.put(PODS, silentPod({ 'k8s.v1.cni.cncf.io/networks': 'red' })),
    ],
    [
      'a missing report of a pod that does not run yet',
      (cluster) => cluster.put(PODS, { ...silentPod(), status: { phase: 'Pending' } }),
    ],
    ['a pod without networks', (cluster) => cluster.put(PODS, silentPod({}))],
    [
      "a pod with the address on the cluster's default network",
      (cluster) => cluster.put(PODS, podWith(['10.0.0.5'], 'cbr0')),
    ],
    [
      'a VMI with the MAC address and other addresses',
      (cluster) => cluster.put(VIRTUAL_MACHINE_INSTANCES, vmiWith({ mac: MAC, ipAddresses: ['10.0.0.9'] })),
    ],
    [
      'a VMI with the MAC address in another namespace',
      (cluster) => cluster.put(VIRTUAL_MACHINE_INSTANCES, vmiWith({ mac: MAC }, 'b')),
    ],
    ['a claim of the same name', (cluster) => cluster.put(IPAM_CLAIMS, claimOf('a/c1'))],
    ['a pod with the address in another address space', (cluster) => cluster.put(PODS, podWith(['10.0.0.5'], 'a/red'))],
    ['a pod that has ended', (cluster) => cluster.put(PODS, podWith(['10.0.0.5'], 'a/blue', 'Succeeded'))],
    [
      'a claim with the address in another address space',
      (cluster) => cluster.put(IPAM_CLAIMS, { ...claimOf('a/x', undefined, 'red'), status: { ips: ['10.0.0.5/24'] } }),
    ],
  ] as readonly [string, (cluster: MemoryCluster) => MemoryCluster][])
    it(`is not prevented by ${who}`, async () => {
      const cluster = prepare(clusterWith());
      await run(cluster);
      expect(releasedAt(cluster)).not.to.equal(undefined);
    });

  it('refuses if a pod reports the address of a network whose pools are gone', async () => {
    const cluster = clusterWith().put(PODS, podWith(['10.0.0.5']));
    cluster.change(ADDRESS_POOLS, 'blue', (pool) => ({ ...pool, spec: { ...pool.spec, network: 'green' } }));
    expect(await refusal(cluster, { subject: 'a/c1' })).to.include('pod a/user reports the address');
  });
});
