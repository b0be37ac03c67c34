import { expect } from 'chai';
import { leaseLabels } from '../../addressing/lease/lease-record.js';
import type { LeaseNetworkData } from '../../api/address-lease.js';
import { EventReason } from '../../api/event-reasons.js';
import { StatusError, TransportError } from '../../kube/errors.js';
import { EVENTS, type Event } from '../../kube/events.js';
import {
  ADDRESS_LEASES,
  ADDRESS_POOLS,
  IPAM_CLAIMS,
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  PODS,
  VIRTUAL_MACHINES,
  VIRTUAL_MACHINE_INSTANCES,
} from '../../kube/resources.js';
import { LAUNCHER_SELECTOR } from '../../api/pod.js';
import type { Client } from '../../kube/client.js';
import { apiError } from '../../test/api-errors.js';
import { leaseOf, networkDataLock } from '../../test/objects/lease-objects.js';
import { NAMESPACE, claim, vmReference } from '../../test/objects/workload-objects.js';
import { CommandError } from '../exit-code.js';
import { textOf } from '../terminal.js';
import { MemoryCluster } from '../testing/memory-cluster.js';
import {
  agentPod,
  allocatedClaim,
  blueNad,
  bluePool,
  claimLease,
  eventOn,
  runningLauncher,
  tracedVm,
  tracedVmi,
} from '../testing/vm-story.js';
import { traceVirtualMachine } from './trace.js';

const VM = { namespace: NAMESPACE, name: 'vm1' };

function labelledLease(spec: Parameters<typeof claimLease>[0] = {}) {
  const lease = claimLease(spec);
  return { ...lease, metadata: { ...lease.metadata, labels: leaseLabels(lease.spec) } };
}

function labelledAgent() {
  const labels = { 'app.kubernetes.io/name': 'holdfast', 'app.kubernetes.io/component': 'agent' };
  const agent = agentPod();
  return { ...agent, metadata: { ...agent.metadata, labels } };
}

function clusterWith({ claims = [allocatedClaim()], leases = [labelledLease()] } = {}): MemoryCluster {
  return new MemoryCluster()
    .put(NAMESPACES, { metadata: { name: NAMESPACE } })
    .put(VIRTUAL_MACHINES, tracedVm())
    .put(VIRTUAL_MACHINE_INSTANCES, tracedVmi())
    .put(PODS, runningLauncher(), labelledAgent())
    .put(IPAM_CLAIMS, ...claims)
    .put(NETWORK_ATTACHMENT_DEFINITIONS, blueNad())
    .put(ADDRESS_POOLS, bluePool())
    .put(ADDRESS_LEASES, ...leases);
}

/** The API server accepts events with these fields alone. */
function bareEvent(name: string, reason: string): Event {
  const involvedObject = { apiVersion: 'v1', kind: 'VirtualMachine', name, namespace: NAMESPACE };
  return { metadata: { name: `${name}.${reason}`, namespace: NAMESPACE }, involvedObject, reason } as Event;
}

async function trace(cluster: MemoryCluster, { vm = VM, isUnicode = false, clusterFlags = '' } = {}) {
  const clock = { wall: () => Date.parse('2026-01-02T00:00:00Z') };
  const deps = { client: cluster.client, clock, isUnicode, clusterFlags };
  const { output, isWrong } = await traceVirtualMachine(vm, deps);
  return { lines: output.lines(false).map(textOf), data: output.data, isWrong };
}

describe('the trace of a VM', () => {
  it('is a tree of ASCII characters, or of box-drawing characters on a terminal', async () => {
    expect((await trace(clusterWith())).lines).to.deep.equal([
      '[ok] VirtualMachine vms/vm1: Running',
      '|- [ok] VirtualMachineInstance vms/vm1: Running on n1',
      '|  `- [ok] Pod vms/virt-launcher-vm1-abcde: Running on n1',
      '|     `- [ok] Node n1: agent ready',
      '`- [ok] Network data: NAD vms/blue, CNI network blue-net',
      '   `- [ok] IPAMClaim vms/vm1.data: 10.0.0.5/24',
      '      |- [ok] AddressLease blue.10-0-0-5: IPAMClaim vms/vm1.data, on n1, pool blue',
      '      `- [ok] AddressPool blue: 253 of 254 free',
    ]);
    const { lines } = await trace(clusterWith(), { isUnicode: true });
    expect(lines.slice(0, 3)).to.deep.equal([
      '✓ VirtualMachine vms/vm1: Running',
      '├─ ✓ VirtualMachineInstance vms/vm1: Running on n1',
      '│  └─ ✓ Pod vms/virt-launcher-vm1-abcde: Running on n1',
    ]);
  });

  it('shows below an object what is wrong and what to do', async () => {
    const cluster = clusterWith({ leases: [] });
    const { lines, isWrong, data } = await trace(cluster);
    expect(isWrong).to.equal(true);
    expect(lines.slice(-4)).to.deep.equal([
      '      |- [XX] AddressLease 10.0.0.5: does not exist',
      '      |       IPAMClaim vm1.data has 10.0.0.5 in its status, and no lease for it',
      '      |       What to do: ipam leases it to the claim again, and gives it to no other owner. If this lasts, see the log of ipam',
      '      `- [ok] AddressPool blue: 253 of 254 free',
    ]);
    expect(data).to.include({ health: 'wrong' });
    expect(lines[0], 'an object above something that is wrong').to.equal('[XX] VirtualMachine vms/vm1: Running');
    expect(lines[1]).to.include('[ok] VirtualMachineInstance');
  });

  it('finds the lease of somebody else at an address of the claim', async () => {
    const foreign = labelledLease({
      owner: { kind: 'Pod', namespace: 'x', name: 'p', uid: 'u' },
      addressSpace: 'blue-net',
    });
    const lease = { ...foreign, metadata: { ...foreign.metadata, name: 'blue-net.10-0-0-5' } };
    const { lines } = await trace(clusterWith({ leases: [lease] }));
    expect(lines.join('\n')).to.include('10.0.0.5 in its status, but the address is leased to Pod x/p');
  });

  it('finds that a host has the address of the claim, and says how to free it', async () => {
    const lease = labelledLease({ addressSpace: 'blue-net' });
    delete lease.spec.owner;
    const quarantine = { since: '2030-01-01T00:00:00Z', until: '2030-01-01T01:00:00Z', mac: '02:00:00:00:00:99' };
    const { lines } = await trace(
      clusterWith({
        leases: [{ metadata: { ...lease.metadata, name: 'blue-net.10-0-0-5' }, spec: { ...lease.spec, quarantine } }],
      }),
    );
    expect(lines.join('\n')).to.include(
      '10.0.0.5 in its status, but the address is quarantined until 2030-01-01T01:00:00Z, because 02:00:00:00:00:99 has it',
    );
    expect(lines.join('\n')).to.include('kubectl delete alease blue-net.10-0-0-5');
  });

  it('finds the addresses that Secrets may hold, by their label and field alone', async () => {
    const lock = networkDataLock({ namespace: NAMESPACE });
    const leaseOfSecret = (address: string, namespace: string, networkData: LeaseNetworkData) => {
      const lease = leaseOf(address, 1, { namespace, name: 'vm1.old', releasedAt: 0, networkData });
      return { ...lease, metadata: { ...lease.metadata, labels: leaseLabels(lease.spec) } };
    };
    const cluster = clusterWith({
      leases: [
        labelledLease({ networkData: lock }),
        leaseOfSecret('10.0.0.6', NAMESPACE, lock),
        leaseOfSecret('10.0.0.7', NAMESPACE, networkDataLock({ namespace: NAMESPACE, name: 'vm2' })),
        leaseOfSecret('10.0.0.8', 'other', networkDataLock({ namespace: 'other' })),
      ],
    });
    const { lines } = await trace(cluster);
    const shown = lines.filter((line) => line.includes('AddressLease'));
    expect(shown).to.have.length(2);
    expect(shown[1]).to.include('blue.10-0-0-6').and.to.include('kept until the process guest has removed it');
  });

  it('finds the claim of another VM that has the name', async () => {
    const foreign = claim({ owner: vmReference('other-uid', 'other'), label: 'other' });
    const { lines } = await trace(clusterWith({ claims: [foreign], leases: [] }));
    expect(lines.join('\n')).to.include('IPAMClaimConflict: IPAMClaim vms/vm1.data belongs to VirtualMachine other');
  });

  it('finds the events of the VM and of its launchers', async () => {
    const pod = runningLauncher({ phase: 'Pending' });
    const cluster = clusterWith();
    cluster.change(PODS, pod.metadata.name, () => pod);
    cluster.put(EVENTS, eventOn(pod.metadata.name, 'FailedCreatePodSandBox', 'no route'));
    expect((await trace(cluster)).lines.join('\n')).to.include('FailedCreatePodSandBox: no route');
  });

  it('is told although a tenant has written events without a message', async () => {
    const events = [bareEvent('vm1', EventReason.NetworkInvalid), bareEvent('vm1', EventReason.ClaimQuota)];
    const cluster = clusterWith({ claims: [], leases: [] }).put(EVENTS, ...events);
    expect((await trace(cluster)).lines.join('\n')).to.include(EventReason.ClaimQuota);
  });

  it('says what a user with the role view in the namespace may not read', async () => {
    const cluster = clusterWith();
    for (const plural of ['pods', 'namespaces', 'addressleases', 'addresspools']) cluster.refused.add(plural);
    const { lines, isWrong } = await trace(cluster);
    expect(isWrong).to.equal(false);
    expect(lines.join('\n'))
      .to.include('[??] Node n1: agent not shown')
      .and.include('user "eve" may not list addressleases.ipam.holdfast.dev in the whole cluster')
      .and.include('[ok] IPAMClaim vms/vm1.data: 10.0.0.5/24');
  });

  for (const [what, path, claims] of [
    ['a lease', '/addressleases/', undefined],
    ['a claim', '/ipamclaims/', []],
  ] as const)
    it(`does not take ${what} for absent that could not be read`, async () => {
      const cluster = clusterWith({ leases: [], ...(claims && { claims: [...claims] }) });
      const serve = cluster.serve.bind(cluster);
      cluster.serve = (request) => {
        if (request.path.includes(path)) throw apiError(503, 'ServiceUnavailable', 'etcd is away', '');
        return serve(request);
      };
      const { lines, isWrong } = await trace(cluster);
      expect(lines.join('\n')).to.include('etcd is away');
      expect(isWrong).to.equal(false);
    });

  it('keeps only the launchers of the VM: a namespace may have thousands', async () => {
    const cluster = clusterWith();
    const { client } = cluster;
    const listAs = client.listAs.bind(client);
    const kept: unknown[] = [];
    client.listAs = (async (...args: Parameters<Client['listAs']>) => {
      const list = await listAs(...args);
      if (args[2]?.labelSelector === LAUNCHER_SELECTOR) kept.push(...list.items);
      return list;
    }) as Client['listAs'];
    await trace(cluster, { vm: { ...VM, name: 'vm2' } }).catch(() => undefined);
    expect(JSON.stringify(kept)).to.not.include('virt-launcher-vm1');
  });

  it('shows the agent of a launcher whose NAD was deleted or made invalid', async () => {
    const deleted = clusterWith();
    deleted.remove(NETWORK_ATTACHMENT_DEFINITIONS, 'vms/blue');
    const invalid = clusterWith();
    invalid.change(NETWORK_ATTACHMENT_DEFINITIONS, 'blue', () => blueNad({ ipam: { type: 'holdfast', subnets: 7 } }));
    for (const cluster of [deleted, invalid])
      expect((await trace(cluster)).lines.join('\n')).to.include('Node n1: agent ready');
  });

  it('reads the launchers of the VMI alone, of the whole namespace only if the VMI cannot be read', async () => {
    const cluster = clusterWith();
    await trace(cluster);
    expect(cluster.reads).to.include(`pods?${LAUNCHER_SELECTOR},kubevirt.io/created-by=vmi-uid`);
    expect(cluster.reads).not.to.include(`pods?${LAUNCHER_SELECTOR}`);
    cluster.remove(VIRTUAL_MACHINE_INSTANCES, `${NAMESPACE}/vm1`);
    await trace(cluster);
    expect(cluster.reads).to.include(`pods?${LAUNCHER_SELECTOR}`);
  });

  it('reads no leases and no agents of a network of another IPAM', async () => {
    const cluster = clusterWith();
    cluster.change(NETWORK_ATTACHMENT_DEFINITIONS, 'blue', () => blueNad({ ipam: { type: 'other' } }));
    cluster.change(ADDRESS_LEASES, 'blue.10-0-0-5', (lease) => ({ ...lease, metadata: { name: 'gone' } }));
    const { lines } = await trace(cluster);
    expect(lines.join('\n')).to.include('served by another IPAM').and.include('Node n1: not served by Holdfast');
  });

  for (const [given, suggested] of [
    ['vm11', 'did you mean vm1?'],
    ['vm1', 'did you mean -n other, -n vms?'],
    ['zebra', 'run kubectl get vm -n NAMESPACE to list all'],
  ] as const)
    it(`suggests other VMs for ${given} in a namespace without it`, async () => {
      const cluster = clusterWith();
      const other = tracedVm();
      cluster.put(VIRTUAL_MACHINES, { ...other, metadata: { ...other.metadata, namespace: 'other', name: 'vm1' } });
      const namespace = given === 'vm1' ? 'empty' : 'other';
      const error: unknown = await trace(cluster, { vm: { namespace, name: given } }).catch(
        (thrown: unknown) => thrown,
      );
      expect(error).to.be.instanceOf(CommandError);

      expect((error as CommandError).message).to.equal(
        `VirtualMachine ${namespace}/${given} does not exist: ${suggested}`,
      );
    });

  for (const [why, failure] of [
    ['the API server does not answer', new TransportError('unsent', 'refused')],
    [
      'the credentials are not accepted',
      new StatusError({ request: 'GET', status: 401, reason: 'Unauthorized', message: 'no' }),
    ],
  ] as const)
    it(`fails if ${why}`, async () => {
      const fail = () => Promise.reject(failure);
      const client = { get: fail, list: fail, listAs: fail };
      const cluster = { client } as unknown as MemoryCluster;
      const thrown: unknown = await trace(cluster).catch((error: unknown) => error);
      expect(thrown).to.equal(failure);
    });
});
