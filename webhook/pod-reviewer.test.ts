import { expect } from 'chai';
import { claimName, swappedClaimName } from '../api/ipam-claim.js';
import type { KubeObject } from '../api/meta.js';
import { PERSISTENT_IPS_LABEL } from '../api/names.js';
import { Cache } from '../kube/informers/cache.js';
import type { Client } from '../kube/client.js';
import { systemClock } from '../kube/clock.js';
import { TransportError } from '../kube/errors.js';
import {
  NAMESPACE,
  makeClaim,
  makeLauncherPod,
  makeNad,
  makeVm,
  makeVmi,
  networksValue,
} from '../test/objects/kubevirt-objects.js';
import { type ReviewedCluster, CLUSTER, VM1, referencesAfter } from '../test/objects/pod-review.js';
import { claimOfIpamExtensions, vmReference } from '../test/objects/workload-objects.js';
import { readPod } from './reviewed-pod.js';
import { PodReviewer } from './pod-reviewer.js';
import { CLAIM_WATCH, NAD_WATCH } from '../cluster/watch-specs.js';
import { BY_KUBEVIRT } from '../test/objects/launcher-pods.js';

interface Given {
  cached?: ReviewedCluster;
  /** What the API server has; undefined: it does not answer. */
  live?: ReviewedCluster | undefined;
  open?: boolean;
  namespaceLabels?: Record<string, string>;
}

function fill<S extends KubeObject>(cache: Cache<S>, objects: readonly S[] = []): Cache<S> {
  for (const object of objects) cache.set(object);
  return cache;
}

function reviewerOf({ cached = {}, live, open = true, namespaceLabels = {} }: Given) {
  const reads: string[] = [];
  const results: string[] = [];
  const find: Client['find'] = (resource, { namespace, name }) => {
    reads.push(`${resource.kind} ${namespace ?? ''}/${name}`);
    if (live === undefined) return Promise.reject(new TransportError('unsent', 'connection refused'));
    const { vmis = [], vms = [], claims = [], nads = [] } = live;
    const kinds: Record<string, readonly KubeObject[]> = {
      VirtualMachineInstance: vmis,
      VirtualMachine: vms,
      IPAMClaim: claims,
      NetworkAttachmentDefinition: nads,
    };
    const found = kinds[resource.kind]?.find(
      ({ metadata }) => metadata.namespace === namespace && metadata.name === name,
    );
    return Promise.resolve(found as never);
  };
  const subject = new PodReviewer({
    listers: {
      vmis: fill(new Cache(), cached.vmis),
      vms: fill(new Cache(), cached.vms),
      claims: fill(new Cache(CLAIM_WATCH.indexes), cached.claims),
      networks: fill(
        new Cache(),
        cached.nads?.map((nad) => NAD_WATCH.transform!(nad)),
      ),
      namespaces: fill(new Cache(), [{ metadata: { name: NAMESPACE, labels: namespaceLabels } }]),
    },
    client: { find },
    gate: { isOpen: () => open },
    clock: systemClock,
    onLiveRead: (kind, result) => results.push(`${kind} ${result}`),
  });
  const review = async (networks = networksValue(VM1), vmi = VM1) => {
    const pod = readPod(makeLauncherPod(vmi, networks), 'object');
    const verdict = await subject.review({ operation: 'CREATE', namespace: NAMESPACE, pod, requester: BY_KUBEVIRT });
    return verdict.allowed ? referencesAfter(verdict, networks) : verdict.reason;
  };
  return { review, reads, results };
}

describe('the reviewer of pods', () => {
  it('reads nothing live if the caches have all objects', async () => {
    const { review, reads } = reviewerOf({ cached: CLUSTER });
    expect(await review()).to.deep.equal(['vm1.data']);
    expect(reads).to.deep.equal([]);
  });

  it('reads each missing object once, in as many rounds as needed', async () => {
    const { review, reads, results } = reviewerOf({ live: CLUSTER });
    expect(await review()).to.deep.equal(['vm1.data']);
    expect(reads).to.deep.equal([
      'VirtualMachineInstance vms/vm1',
      'VirtualMachine vms/vm1',
      'NetworkAttachmentDefinition vms/blue',
      'IPAMClaim vms/vm1.data',
    ]);
    expect(results).to.deep.equal(['vmi found', 'vm found', 'network found', 'claim found']);
  });

  it('finds a claim of kubevirt/ipam-extensions that the caches lack with one more read', async () => {
    const odd = makeVmi('vm1', { multus_iface: 'blue' });
    const cached = { ...CLUSTER, vmis: [odd], claims: [] };
    const owner = vmReference('vm1-vm-uid');
    const former = claimOfIpamExtensions({ name: 'vm1.multus.iface', network: 'blue', owner });
    const found = reviewerOf({ cached, live: { claims: [former] } });
    expect(await found.review(networksValue(odd), odd)).to.deep.equal(['vm1.multus.iface']);
    const absent = reviewerOf({ cached, live: {} });
    const name = claimName('vm1', 'multus_iface');
    expect(await absent.review(networksValue(odd), odd)).to.deep.equal([name]);
    expect(absent.reads).to.deep.equal(['IPAMClaim vms/vm1.multus.iface', `IPAMClaim vms/${name}`]);
  });

  it('predicts the name of a claim that does not exist yet', async () => {
    const { review, results } = reviewerOf({ cached: { ...CLUSTER, claims: [] }, live: {} });
    expect(await review()).to.deep.equal(['vm1.data']);
    expect(results).to.deep.equal(['claim absent']);
  });

  it('does not refuse a pod because of a predecessor’s claim that is gone now', async () => {
    const cached = { ...CLUSTER, claims: [makeClaim('vm1', 'data', { ownerUid: 'old-uid' })] };
    expect(await reviewerOf({ cached, live: {} }).review()).to.deep.equal(['vm1.data']);
    expect(await reviewerOf({ cached, live: cached }).review()).to.include('belongs to another VirtualMachine vm1');
  });

  it('does not refer to a second claim if the first, for another network, is gone now', async () => {
    const first = makeClaim('vm1', 'data', { network: 'green', nad: 'vms/green' });
    const cached = { ...CLUSTER, claims: [first] };
    expect(await reviewerOf({ cached, live: {} }).review()).to.deep.equal(['vm1.data']);
    const second = swappedClaimName('vm1', 'data', 'blue');
    expect(await reviewerOf({ cached, live: { claims: [first] } }).review()).to.deep.equal([second]);
  });

  it('finds a VMI that was replaced since', async () => {
    const old = { ...VM1, metadata: { ...VM1.metadata, uid: 'old-uid' } };
    expect(await reviewerOf({ cached: { ...CLUSTER, vmis: [old] }, live: CLUSTER }).review()).to.deep.equal([
      'vm1.data',
    ]);
  });

  it('finds a VM that was created or replaced since', async () => {
    expect(await reviewerOf({ cached: { ...CLUSTER, vms: [] }, live: CLUSTER }).review()).to.deep.equal(['vm1.data']);
    const old = { metadata: { ...makeVm('vm1').metadata, uid: 'old-uid' } };
    expect(await reviewerOf({ cached: { ...CLUSTER, vms: [old] }, live: CLUSTER }).review()).to.deep.equal([
      'vm1.data',
    ]);
  });

  it('finds a network that was plugged in since', async () => {
    const vmi = makeVmi('vm1', { data: 'blue', more: 'blue' });
    const given = { cached: CLUSTER, live: { ...CLUSTER, vmis: [vmi] } };
    expect(await reviewerOf(given).review(networksValue(vmi))).to.deep.equal(['vm1.data', 'vm1.more']);
  });

  it('finds a NAD that was created since', async () => {
    const given = { cached: { ...CLUSTER, claims: [], nads: [] }, live: { nads: [makeNad('blue')] } };
    expect(await reviewerOf(given).review()).to.deep.equal(['vm1.data']);
  });

  describe('while the API server does not answer', () => {
    it('answers from the caches', async () => {
      const { review, results } = reviewerOf({ cached: { ...CLUSTER, claims: [] } });
      expect(await review()).to.deep.equal(['vm1.data']);
      expect(results).to.deep.equal(['claim failed']);
    });

    it('refuses a pod whose VMI is not cached, and says why', async () => {
      expect(await reviewerOf({}).review()).to.include('could not be read: connection refused');
    });

    it('refuses a pod whose VM is not cached, and says why', async () => {
      const given = { cached: { ...CLUSTER, vms: [] } };
      expect(await reviewerOf(given).review()).to.match(
        /VirtualMachine vms.vm1, .*could not be read: connection refused/,
      );
    });
  });

  it('gives no new reference while the gate is closed or the namespace has opted out', async () => {
    const cached = { ...CLUSTER, claims: [] };
    expect(await reviewerOf({ cached, live: {}, open: false }).review()).to.deep.equal([undefined]);
    const namespaceLabels = { [PERSISTENT_IPS_LABEL]: 'disabled' };
    expect(await reviewerOf({ cached, live: {}, namespaceLabels }).review()).to.deep.equal([undefined]);
    expect(await reviewerOf({ cached: CLUSTER, namespaceLabels }).review()).to.deep.equal(['vm1.data']);
  });

  it('ignores claims of other namespaces', async () => {
    const elsewhere = makeClaim('vm1', 'data', { name: 'vm1.elsewhere' });
    elsewhere.metadata.namespace = 'other';
    const given = { cached: { ...CLUSTER, claims: [elsewhere] }, live: {} };
    expect(await reviewerOf(given).review()).to.deep.equal(['vm1.data']);
  });
});
