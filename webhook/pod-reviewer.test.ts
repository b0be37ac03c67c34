import { expect } from 'chai';
import { claimName, swappedClaimName } from '../api/ipam-claim.js';
import type { KubeObject } from '../api/meta.js';
import { PERSISTENT_IPS_LABEL } from '../api/names.js';
import { Cache } from '../kube/cache.js';
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
} from '../test/kubevirt-objects.js';
import { type ReviewedCluster, CLUSTER, VM1, referencesAfter } from '../test/pod-review.js';
import { claimOfIpamExtensions, vmReference } from '../test/workload-objects.js';
import { readPod } from './reviewed-pod.js';
import { PodReviewer } from './pod-reviewer.js';
import { CLAIM_WATCH, NAD_WATCH } from '../cluster/watch-specs.js';
import { BY_KUBEVIRT } from '../test/launcher-pods.js';

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

function lookup({ cached = {}, live, open = true, namespaceLabels = {} }: Given) {
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
        cached.nads?.map((nad) => NAD_WATCH.shrink!(nad)),
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

describe('the lookup of what a review needs', () => {
  it('reads nothing live where the caches know all', async () => {
    const { review, reads } = lookup({ cached: CLUSTER });
    expect(await review()).to.deep.equal(['vm1.data']);
    expect(reads).to.deep.equal([]);
  });

  it('reads each object that is missing once, in as many rounds as it takes', async () => {
    const { review, reads, results } = lookup({ live: CLUSTER });
    expect(await review()).to.deep.equal(['vm1.data']);
    expect(reads).to.deep.equal([
      'VirtualMachineInstance vms/vm1',
      'VirtualMachine vms/vm1',
      'NetworkAttachmentDefinition vms/blue',
      'IPAMClaim vms/vm1.data',
    ]);
    expect(results).to.deep.equal(['vmi found', 'vm found', 'network found', 'claim found']);
  });

  it('finds the claim of kubevirt/ipam-extensions that the caches do not show yet, with one read more', async () => {
    const odd = makeVmi('vm1', { multus_iface: 'blue' });
    const cached = { ...CLUSTER, vmis: [odd], claims: [] };
    const owner = vmReference('vm1-vm-uid');
    const former = claimOfIpamExtensions({ name: 'vm1.multus.iface', network: 'blue', owner });
    const found = lookup({ cached, live: { claims: [former] } });
    expect(await found.review(networksValue(odd), odd)).to.deep.equal(['vm1.multus.iface']);
    const absent = lookup({ cached, live: {} });
    const name = claimName('vm1', 'multus_iface');
    expect(await absent.review(networksValue(odd), odd)).to.deep.equal([name]);
    expect(absent.reads).to.deep.equal(['IPAMClaim vms/vm1.multus.iface', `IPAMClaim vms/${name}`]);
  });

  it('predicts the name of a claim that is nowhere yet', async () => {
    const { review, results } = lookup({ cached: { ...CLUSTER, claims: [] }, live: {} });
    expect(await review()).to.deep.equal(['vm1.data']);
    expect(results).to.deep.equal(['claim absent']);
  });

  it('does not refuse a pod for the claim of a predecessor that is gone by now', async () => {
    const cached = { ...CLUSTER, claims: [makeClaim('vm1', 'data', { ownerUid: 'old-uid' })] };
    expect(await lookup({ cached, live: {} }).review()).to.deep.equal(['vm1.data']);
    expect(await lookup({ cached, live: cached }).review()).to.include('belongs to another VirtualMachine vm1');
  });

  it('does not point at a second claim while the first, for another network, is gone by now', async () => {
    const first = makeClaim('vm1', 'data', { network: 'green', nad: 'vms/green' });
    const cached = { ...CLUSTER, claims: [first] };
    expect(await lookup({ cached, live: {} }).review()).to.deep.equal(['vm1.data']);
    const second = swappedClaimName('vm1', 'data', 'blue');
    expect(await lookup({ cached, live: { claims: [first] } }).review()).to.deep.equal([second]);
  });

  it('sees a VMI that has been replaced since', async () => {
    const old = { ...VM1, metadata: { ...VM1.metadata, uid: 'old-uid' } };
    expect(await lookup({ cached: { ...CLUSTER, vmis: [old] }, live: CLUSTER }).review()).to.deep.equal(['vm1.data']);
  });

  it('sees a VM that has been created since, or replaced', async () => {
    expect(await lookup({ cached: { ...CLUSTER, vms: [] }, live: CLUSTER }).review()).to.deep.equal(['vm1.data']);
    const old = { metadata: { ...makeVm('vm1').metadata, uid: 'old-uid' } };
    expect(await lookup({ cached: { ...CLUSTER, vms: [old] }, live: CLUSTER }).review()).to.deep.equal(['vm1.data']);
  });

  it('sees a network that has been plugged in since', async () => {
    const vmi = makeVmi('vm1', { data: 'blue', more: 'blue' });
    const given = { cached: CLUSTER, live: { ...CLUSTER, vmis: [vmi] } };
    expect(await lookup(given).review(networksValue(vmi))).to.deep.equal(['vm1.data', 'vm1.more']);
  });

  it('sees a NAD that has been made since', async () => {
    const given = { cached: { ...CLUSTER, claims: [], nads: [] }, live: { nads: [makeNad('blue')] } };
    expect(await lookup(given).review()).to.deep.equal(['vm1.data']);
  });

  describe('while the API server does not answer', () => {
    it('answers from the caches', async () => {
      const { review, results } = lookup({ cached: { ...CLUSTER, claims: [] } });
      expect(await review()).to.deep.equal(['vm1.data']);
      expect(results).to.deep.equal(['claim failed']);
    });

    it('refuses a pod whose VMI is not cached, saying why', async () => {
      expect(await lookup({}).review()).to.include('could not be looked for: connection refused');
    });

    it('refuses a pod whose VM is not cached, saying why', async () => {
      const given = { cached: { ...CLUSTER, vms: [] } };
      expect(await lookup(given).review()).to.match(
        /VirtualMachine vms.vm1, .*could not be looked for: connection refused/,
      );
    });
  });

  it('gives nothing new while the gate is closed or the namespace has opted out', async () => {
    const cached = { ...CLUSTER, claims: [] };
    expect(await lookup({ cached, live: {}, open: false }).review()).to.deep.equal([undefined]);
    const namespaceLabels = { [PERSISTENT_IPS_LABEL]: 'disabled' };
    expect(await lookup({ cached, live: {}, namespaceLabels }).review()).to.deep.equal([undefined]);
    expect(await lookup({ cached: CLUSTER, namespaceLabels }).review()).to.deep.equal(['vm1.data']);
  });

  it('does not take a claim of another namespace for one of its own', async () => {
    const elsewhere = makeClaim('vm1', 'data', { name: 'vm1.elsewhere' });
    elsewhere.metadata.namespace = 'other';
    const given = { cached: { ...CLUSTER, claims: [elsewhere] }, live: {} };
    expect(await lookup(given).review()).to.deep.equal(['vm1.data']);
  });
});
