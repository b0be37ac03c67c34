import { join } from 'node:path';
import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { ObjectMeta } from '../../api/meta.js';
import { CLAIM_FINALIZER } from '../../api/names.js';
import type { Pod } from '../../api/pod.js';
import { areServed } from '../../kube/absence.js';
import { Client } from '../../kube/client.js';
import { systemClock } from '../../kube/clock.js';
import { loadCredentials } from '../../kube/transport/credentials.js';
import { StatusError, classifyError } from '../../kube/errors.js';
import { silentLogger } from '../../kube/log.js';
import { EVENTS } from '../../kube/events.js';
import {
  IPAM_CLAIMS,
  KUBEVIRTS,
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  PODS,
  VIRTUAL_MACHINES,
  VIRTUAL_MACHINE_INSTANCES,
} from '../../kube/resources.js';
import { UnservedOwners } from '../../ipam/claims/reports/unserved-owners.js';
import { applyAll } from '../../controller/claims/apply.js';
import { createController } from '../../controller/main.js';
import { CONTROLLER_SETTINGS, type ControllerConfig } from '../../process/config/config.js';
import { EMPTY_SERVER } from '../../manifests/testing/shared-server.js';
import { NAMESPACE, claim, launcher, nad, vm, vmi } from '../../test/objects/workload-objects.js';
import type { Resource } from '../../kube/resource.js';
import { Transport } from '../../kube/transport/transport.js';
import type { ControlPlane } from '../../bed/control-plane/control-plane.js';
import { createCrds, kubeVirtKind } from '../../bed/control-plane/crds.js';
import { createAll, readManifests, resourceOf } from '../../bed/control-plane/objects.js';
import { writeServiceAccountKubeconfig } from '../../bed/control-plane/service-accounts.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import { type RunningComponent, startComponent, stopComponent } from './running-component.js';

const MANIFESTS = join(import.meta.dirname, '..', '..', 'manifests');
const SYSTEM = 'holdfast-system';

const KUBEVIRT_KINDS = [
  kubeVirtKind('virtualmachines', 'VirtualMachine'),
  kubeVirtKind('virtualmachineinstances', 'VirtualMachineInstance'),
];

describe('The controller with a real API server', function () {
  let plane: ControlPlane;
  const running = new Set<RunningComponent>();

  EMPTY_SERVER.use(this, async (started) => {
    plane = started;
    await createCrds(plane.client, [...KUBEVIRT_KINDS, kubeVirtKind('kubevirts', 'KubeVirt')]);
    const files = [
      'base/claims/namespace.yaml',
      'base/claims/rbac/controller.yaml',
      'base/claims/rbac/policies.yaml',
      'base/ipam/rbac/ipam.yaml',
      'base/claims/policies/parameters.yaml',
      'base/claims/policies/claim-guard.yaml',
    ];
    const shipped = await Promise.all(files.map((file) => readManifests(join(MANIFESTS, file))));
    for (const object of shipped.flat()) await plane.client.create(resourceOf(object), object);
    for (const name of [NAMESPACE, 'kubevirt']) await plane.client.create(NAMESPACES, { metadata: { name } });
    await plane.client.create(KUBEVIRTS, { metadata: { namespace: 'kubevirt', name: 'kubevirt' } });
    const metadata = { name: 'default', namespace: NAMESPACE };
    await createAll(plane.client, [{ apiVersion: 'v1', kind: 'ServiceAccount', metadata }]);
    await plane.client.create(
      NETWORK_ATTACHMENT_DEFINITIONS,
      nad('blue', { name: 'blue-net', allowPersistentIPs: true }),
    );
  });

  afterEach(async () => {
    for (const each of running) await stop(each);
    const kinds: Resource[] = [VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES, IPAM_CLAIMS, PODS];
    for (const resource of kinds) {
      for (const { metadata } of (await plane.client.list(resource, { namespace: NAMESPACE })).items) {
        await plane.client.patch(resource, metadata, { type: 'merge', body: { metadata: { finalizers: null } } });
        await plane.client.delete(resource, metadata, { gracePeriodSeconds: 0 });
      }
    }
  });

  async function start(changes: Partial<ControllerConfig> = {}, identity = 'only'): Promise<RunningComponent> {
    const started = await startComponent<ControllerConfig>(plane, {
      process: 'controller',
      settings: CONTROLLER_SETTINGS,
      changes,
      create: (context, config) => createController(context, config, identity),
    });
    running.add(started);
    return started;
  }

  async function stop(stopped: RunningComponent): Promise<void> {
    running.delete(stopped);
    await stopComponent(stopped);
  }

  /** The number of decisions of a controller. */
  async function decided({ context }: RunningComponent): Promise<number> {
    const metric = await context.metrics.registry.getSingleMetric('holdfast_claim_actions_total')?.get();
    return metric?.values.reduce((sum, { value }) => sum + value, 0) ?? 0;
  }

  async function claims(): Promise<IPAMClaim[]> {
    return (await plane.client.list(IPAM_CLAIMS, { namespace: NAMESPACE })).items;
  }

  async function claimsAre(...names: string[]): Promise<IPAMClaim[]> {
    const isRight = (found: IPAMClaim[]) => found.map(({ metadata }) => metadata.name).join() === names.join();
    return untilValue(`claims are: ${names.join()}`, claims, isRight);
  }

  /** Removes the fields that must be absent in a create request. */
  function creatable({ uid: _uid, resourceVersion: _version, ...metadata }: ObjectMeta): ObjectMeta {
    return metadata;
  }

  function createVm(name: string, networks = { data: 'blue' }) {
    const made = vm(networks, { name });
    return plane.client.create(VIRTUAL_MACHINES, { ...made, metadata: creatable(made.metadata) });
  }

  async function createLauncher(owner: string) {
    const { metadata } = launcher([{ nad: 'blue', claim: 'vm1.data' }], { vmi: owner });
    const spec = { containers: [{ name: 'compute', image: 'registry.example/compute' }] };
    return plane.client.create(PODS, { metadata: creatable(metadata), spec } as Pod);
  }

  it('keeps the claim of a deleted VM while a launcher of it runs', async () => {
    await start();
    const made = vmi({ data: 'blue' }, { vm: null });
    const standalone = await plane.client.create(VIRTUAL_MACHINE_INSTANCES, {
      ...made,
      metadata: creatable(made.metadata),
    });
    await claimsAre('vm1.data');
    const pod = await createLauncher(standalone.metadata.uid ?? '');
    await plane.client.delete(VIRTUAL_MACHINE_INSTANCES, standalone.metadata);
    await createVm('vm2');
    await claimsAre('vm1.data', 'vm2.data');
    await plane.client.patch(
      PODS,
      pod.metadata,
      { type: 'merge', body: { status: { phase: 'Succeeded' } } },
      { subresource: 'status' },
    );
    await claimsAre('vm2.data');
  });

  it('works only while it is the leader, and another replica takes over at once', async () => {
    const election = { leaderElect: true, namespace: SYSTEM };
    const first = await start(election, 'first');
    await createVm('vm1');
    await claimsAre('vm1.data');
    const second = await start(election, 'second');
    await createVm('vm2');
    await claimsAre('vm1.data', 'vm2.data');
    expect(await decided(second)).to.equal(0);
    await stop(first);
    await createVm('vm3');
    await claimsAre('vm1.data', 'vm2.data', 'vm3.data');
    expect(await decided(second)).to.be.greaterThan(0);
  });

  it('keeps the claims of a VM while the CRDs of KubeVirt are removed, logs why, and releases them afterwards', async () => {
    const first = await start();
    await createVm('vm1');
    const [made] = await claimsAre('vm1.data');
    // while the CRDs are being deleted, it could still prove that the VM is gone
    await stop(first);
    for (const crd of KUBEVIRT_KINDS) await plane.client.delete(resourceOf(crd), crd.metadata);
    await until('no VMs to be served', async () => !(await areServed(plane.client.transport, [VIRTUAL_MACHINES])));
    await plane.client.delete(IPAM_CLAIMS, made!.metadata);
    await start();
    await untilValue(
      'the event',
      async () => (await plane.client.list(EVENTS, { namespace: NAMESPACE })).items,
      (events) => events.some(({ reason }) => reason === 'OwnerKindNotServed'),
    );
    const [shown] = await untilValue(
      'the condition',
      writtenByIpam,
      ([found]) => found?.status?.conditions?.length === 1,
    );
    expect(shown?.status?.conditions?.[0]).to.include({ type: 'OwnerKindServed', status: 'False' });
    await createAll(plane.client, KUBEVIRT_KINDS);
    await claimsAre();
  });

  /** The claims, after a check with the shipped identity of ipam that VMs are served. */
  async function writtenByIpam(): Promise<IPAMClaim[]> {
    const kubeconfig = await writeServiceAccountKubeconfig(plane, { namespace: SYSTEM, name: 'holdfast-ipam' });
    const transport = new Transport(await loadCredentials({ kubeconfig }));
    const found = await claims();
    const check = new UnservedOwners({
      claims: { list: () => found },
      directory: { resolve: () => ({ kind: 'unserved', message: '' }) },
      client: new Client(transport),
      clock: systemClock,
      log: silentLogger,
    });
    check.start();
    await systemClock.sleep(300);
    await check.stop();
    await transport.close();
    return claims();
  }

  it('treats a moved finalizer as a conflict of an outdated read', async () => {
    const metadata = creatable(claim({ owner: null, recordedOwner: null, finalizers: ['a.example/b'] }).metadata);
    const made = await plane.client.create(IPAM_CLAIMS, { ...claim(), metadata });
    const deleting = { ...made.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' };
    const seen = { ...made, metadata: { ...deleting, finalizers: ['kubevirt.io/persistent-ipam'] } };
    const [failure] = await applyAll([{ kind: 'release', claim: seen, reason: 'test' }], plane.client);
    expect(failure?.error).to.be.instanceOf(StatusError).with.property('status', 409);
  });

  it('says that the namespace of a claim is gone, and releases the claim when the namespace exists again', async () => {
    const ref = { namespace: 'gone', name: 'vm1.data' };
    const { client } = plane;
    const { metadata: space } = await client.create(NAMESPACES, { metadata: { name: ref.namespace } });
    const { metadata } = claim({ owner: null, recordedOwner: null, finalizers: [CLAIM_FINALIZER] });
    const made = await client.create(IPAM_CLAIMS, { ...claim(), metadata: { ...creatable(metadata), ...ref } });
    // as administrators do with a namespace that does not end, and as the namespace controller does if discovery lacks the kind
    const ending = await client.delete(NAMESPACES, space);
    const path = `/api/v1/namespaces/${ref.namespace}/finalize`;
    await client.transport.request({ method: 'PUT', path, body: { ...ending, spec: { finalizers: [] } } });
    await until('the namespace to be gone', async () => !(await client.find(NAMESPACES, space)));
    const release = () => applyAll([{ kind: 'release', claim: made, reason: 'test' }], client);
    const [failure] = await release();
    expect(failure?.error).to.have.property('message').that.includes('namespaces "gone" not found');
    expect(classifyError(failure?.error)).to.equal('invalid');

    await client.create(NAMESPACES, { metadata: { name: ref.namespace } });
    await until('the claim to be released', async () => {
      await release();
      return (await client.find(IPAM_CLAIMS, ref)) === undefined;
    });
  });
});
