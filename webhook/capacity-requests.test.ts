import jsonpatch, { type Operation } from 'fast-json-patch';
import { expect } from 'chai';
import { makeClaim, makeLauncherPod, makeNad, makeVmi, networksValue } from '../test/objects/kubevirt-objects.js';
import { CLUSTER, type ReviewedCluster, VM1, clusterViewOf } from '../test/objects/pod-review.js';
import { NAMESPACE } from '../test/objects/workload-objects.js';
import { type CapacityDecision, reviewCapacity } from './capacity-requests.js';
import { readPod } from './reviewed-pod.js';

const BLUE = 'ipam.holdfast.dev/blue-pool';
const GREEN = 'ipam.holdfast.dev/green-pool';

type Resources = Record<string, Record<string, string>>;
interface GivenPod {
  metadata: { name: string; annotations?: Record<string, string>; labels?: Record<string, string> };
  spec: { hostNetwork?: boolean; containers: { name: string; resources?: Resources }[] };
}

function podOn(networks: string | undefined, ...resources: (Resources | undefined)[]): GivenPod {
  const containers = (resources.length > 0 ? resources : [undefined]).map((each, index) => ({
    name: `c${index}`,
    ...(each && { resources: each }),
  }));
  const annotations = networks === undefined ? {} : { 'k8s.v1.cni.cncf.io/networks': networks };
  return { metadata: { name: 'pod', annotations }, spec: { containers } };
}

/** NADs blue and green have pools that nodes show, all others have none. */
function publishedPool(namespace: string, nad: string): string | undefined {
  if (namespace !== NAMESPACE) return undefined;
  return { [`${NAMESPACE}/blue`]: 'blue-pool', 'shared/blue': 'blue-pool', [`${NAMESPACE}/green`]: 'green-pool' }[nad];
}

function review(pod: unknown, cluster: ReviewedCluster = {}): CapacityDecision {
  const { spec } = pod as GivenPod;
  return reviewCapacity(
    { namespace: NAMESPACE, pod: readPod(pod, 'object'), spec },
    { view: clusterViewOf(cluster), publishedPool },
  );
}

function after<T>(pod: T, cluster?: ReviewedCluster): T {
  return jsonpatch.applyPatch(structuredClone(pod), review(pod, cluster).patch as Operation[], true).newDocument;
}

function resourcesAfter(pod: unknown, cluster?: ReviewedCluster): (Resources | undefined)[] {
  return (after(pod, cluster) as GivenPod).spec.containers.map(({ resources }) => resources);
}

const asks = (counts: Record<string, string>): Resources => ({ requests: counts, limits: counts });

describe('a pod that needs addresses', () => {
  const cases: { name: string; given: GivenPod; expect: (Resources | undefined)[] }[] = [
    {
      name: 'requests one address on its first container',
      given: podOn('blue', undefined, undefined),
      expect: [asks({ [BLUE]: '1' }), undefined],
    },
    {
      name: 'requests one address for each interface',
      given: podOn('blue,green,blue@net7'),
      expect: [asks({ [BLUE]: '2', [GREEN]: '1' })],
    },
    {
      name: 'requests an address for a NAD of another namespace',
      given: podOn('shared/blue'),
      expect: [asks({ [BLUE]: '1' })],
    },
    { name: 'requests nothing on networks without a published pool', given: podOn('red'), expect: [undefined] },
    { name: 'requests nothing without networks', given: podOn(undefined), expect: [undefined] },
    {
      name: 'keeps its other requests',
      given: podOn('blue', { requests: { cpu: '1' }, limits: { memory: '1Gi' } }),
      expect: [{ requests: { cpu: '1', [BLUE]: '1' }, limits: { memory: '1Gi', [BLUE]: '1' } }],
    },
    {
      name: 'requests only what is missing, whichever container requests the rest',
      given: podOn('blue,blue', undefined, asks({ [BLUE]: '1' })),
      expect: [asks({ [BLUE]: '1' }), asks({ [BLUE]: '1' })],
    },
    { name: 'may request more', given: podOn('blue', asks({ [BLUE]: '5' })), expect: [asks({ [BLUE]: '5' })] },
    {
      name: 'may request by a limit alone',
      given: podOn('blue', { limits: { [BLUE]: '1' } }),
      expect: [{ limits: { [BLUE]: '1' } }],
    },
    {
      name: 'requests nothing for an interface with a claim reference',
      given: podOn('[{"name":"blue","ipam-claim-reference":"mine"},{"name":"blue"}]'),
      expect: [asks({ [BLUE]: '1' })],
    },
  ];
  for (const { name, given, expect: expected } of cases) {
    it(name, () => {
      expect(resourcesAfter(given)).to.deep.equal(expected);
    });

    it(`${name}, and is not changed by a second review`, () => {
      expect(review(after(given)).patch).to.deep.equal([]);
    });
  }

  it('requests the address of the network that replaces the pod network', () => {
    const pod = podOn(undefined);
    const onDefault = (value: string) => ({
      ...pod,
      metadata: { ...pod.metadata, annotations: { 'v1.multus-cni.io/default-network': value } },
    });
    expect(resourcesAfter(onDefault('shared/blue@eth0'))).to.deep.equal([asks({ [BLUE]: '1' })]);
    // where Multus looks for it, nobody here knows
    expect(resourcesAfter(onDefault('blue'))).to.deep.equal([undefined]);
  });

  it('requests nothing if it is a mirror pod or uses the network of its node', () => {
    const pod = podOn('blue');
    expect(review({ ...pod, spec: { ...pod.spec, hostNetwork: true } }).patch).to.deep.equal([]);
    const annotations = { ...pod.metadata.annotations, 'kubernetes.io/config.mirror': 'x' };
    expect(review({ ...pod, metadata: { ...pod.metadata, annotations } }).patch).to.deep.equal([]);
  });

  it('is allowed with a warning if its networks annotation is invalid', () => {
    const { patch, warnings } = review(podOn('[{"name":5}]'));
    expect(patch).to.deep.equal([]);
    expect(warnings[0]).to.include('does not count').and.to.include('"name" is 5');
  });

  it('is allowed unchanged with a warning if its containers have more requests and limits than a pod has', () => {
    const containers = (count: number) => Array.from({ length: count }, () => asks({ [BLUE]: '1' }));
    expect(review(podOn('blue,blue', ...containers(1))).patch).to.have.length(1);
    expect(review(podOn(undefined, ...containers(1_365))).warnings).to.deep.equal([]);
    for (const given of [
      containers(1_366),
      [asks(Object.fromEntries([...Array(2_048).keys()].map((n) => [`r${n}`, '1'])))],
    ]) {
      const { patch, warnings } = review(podOn('blue,blue', ...given));
      expect(patch).to.deep.equal([]);
      expect(warnings).to.deep.equal([
        'the scheduler does not count the addresses of this pod: its containers have more than 4096 requests and limits',
      ]);
    }
  });
});

describe('a launcher pod', () => {
  const launcher = (networks = networksValue(VM1), resources: Resources = {}) => {
    const pod = makeLauncherPod(VM1, networks) as unknown as GivenPod & { metadata: { name: string } };
    const [compute, ...others] = pod.spec.containers;
    if (compute === undefined) throw new Error('a launcher without containers');
    return { ...pod, spec: { ...pod.spec, containers: [{ ...compute, resources }, ...others] } };
  };
  const firstAfter = (pod: unknown, cluster: ReviewedCluster) => resourcesAfter(pod, cluster)[0];

  it('requests nothing for an interface with a claim', () => {
    expect(review(launcher(), CLUSTER).patch).to.deep.equal([]);
  });

  it('requests nothing for an interface that will get a claim, with or without a reference', () => {
    expect(review(launcher(), { ...CLUSTER, claims: [] }).patch).to.deep.equal([]);
    const pointed = networksValue(VM1, { data: 'vm1.data' });
    expect(review(launcher(pointed), { ...CLUSTER, claims: [] }).patch).to.deep.equal([]);
  });

  it('requests nothing if the claim has another owner because the other webhook refuses the pod', () => {
    const claims = [makeClaim('vm1', 'data', { ownerUid: 'another' })];
    expect(review(launcher(), { ...CLUSTER, claims }).patch).to.deep.equal([]);
  });

  it('requests an address on a network that allows no claims', () => {
    const nads = [makeNad('blue', { persistent: false })];
    expect(firstAfter(launcher(), { ...CLUSTER, claims: [], nads })).to.deep.equal(asks({ [BLUE]: '1' }));
  });

  it('requests addresses for its interfaces without a claim', () => {
    const vmi = makeVmi('vm1', { data: 'blue', more: 'green' });
    const nads = [makeNad('blue'), makeNad('green', { persistent: false })];
    const pod = launcher(networksValue(vmi));
    expect(firstAfter(pod, { ...CLUSTER, vmis: [vmi], nads })).to.deep.equal(asks({ [GREEN]: '1' }));
  });

  it('loses the requests that others added for interfaces with a claim', () => {
    const asked = { requests: { cpu: '1', [BLUE]: '1' }, limits: { [BLUE]: '1' } };
    expect(firstAfter(launcher(undefined, asked), CLUSTER)).to.deep.equal({ requests: { cpu: '1' }, limits: {} });
  });

  it('loses only the excess of its requests', () => {
    const nads = [makeNad('blue', { persistent: false })];
    const pod = launcher(undefined, asks({ [BLUE]: '3' }));
    expect(firstAfter(pod, { ...CLUSTER, claims: [], nads })).to.deep.equal(asks({ [BLUE]: '1' }));
  });

  it('without a VMI is not changed', () => {
    expect(review({ ...launcher(undefined, asks({ [BLUE]: '3' })) }, {}).patch).to.deep.equal([]);
  });

  it('names the objects whose live state could change the decision', () => {
    expect(review(launcher(), { ...CLUSTER, vmis: [] }).rechecks).to.deep.equal([{ kind: 'vmi', key: 'vm1' }]);
  });
});
