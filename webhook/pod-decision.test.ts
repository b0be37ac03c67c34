import { expect } from 'chai';
import { CLAIM_REFERENCE_KEY, LAUNCHER_CREATOR, NETWORKS_ANNOTATION } from '../api/names.js';
import type { KubeVirtController } from '../cluster/kubevirt-controller.js';
import { NAMESPACE, type RawPod, makeLauncherPod, networksValue } from '../test/objects/kubevirt-objects.js';
import { CLUSTER, VM1, elementWith, clusterViewOf } from '../test/objects/pod-review.js';
import { readPod } from './reviewed-pod.js';
import type { PodDecision } from './pod-decision.js';
import { reviewPod } from './pod-mutation.js';

const CONTROLLER = 'system:serviceaccount:kubevirt:kubevirt-controller';
const TENANT = 'system:serviceaccount:vms:kubevirt-controller';
const KNOWN: KubeVirtController = { username: CONTROLLER };
const UNKNOWN: KubeVirtController = { problem: 'kubevirtNamespace is wrong' };
const PLAIN = networksValue(VM1);
const POINTED = networksValue(VM1, { data: 'vm1.data' });
const MARK_PATH = '/metadata/annotations/ipam.holdfast.dev~1launcher-creator';

function launcher(networks: string | undefined, creator?: string): RawPod {
  const pod = makeLauncherPod(VM1, networks ?? PLAIN);
  const { [NETWORKS_ANNOTATION]: given = '', ...others } = pod.metadata.annotations;
  const annotations = {
    ...others,
    ...(networks !== undefined && { [NETWORKS_ANNOTATION]: given }),
    ...(creator !== undefined && { [LAUNCHER_CREATOR]: creator }),
  };
  return { ...pod, metadata: { ...pod.metadata, annotations } };
}

interface Given {
  by?: string;
  kubevirt?: KubeVirtController;
  before?: RawPod;
}

function review(after: RawPod, { by = CONTROLLER, kubevirt = KNOWN, before }: Given): PodDecision {
  const pod = readPod(after, 'object');
  const requester = { username: by, kubevirt };
  const oldPod = before && readPod(before, 'oldObject');
  const operation = before === undefined ? 'CREATE' : 'UPDATE';
  return reviewPod({ operation, namespace: NAMESPACE, pod, oldPod, requester }, clusterViewOf(CLUSTER));
}

/** What a review changes: the references and the creator. */
function changes(verdict: PodDecision): string[] {
  if (!verdict.allowed) return [`refused: ${verdict.reason}`];
  return verdict.patch.map(({ path, value }) =>
    path === MARK_PATH
      ? `creator ${String(value)}`
      : String(value).includes(CLAIM_REFERENCE_KEY)
        ? 'references'
        : 'other',
  );
}

describe('the creator of a launcher', () => {
  it('is not recorded if it is KubeVirt, and the pod gets its references', () => {
    expect(changes(review(launcher(PLAIN), {}))).to.deep.equal(['references']);
  });

  it('is refused if it is another user', () => {
    const verdict = review(launcher(PLAIN), { by: TENANT });
    expect(verdict.allowed || verdict.check).to.equal('created-by-kubevirt');
    expect(changes(verdict).join()).to.include(TENANT).and.to.include(CONTROLLER);
  });

  for (const by of [CONTROLLER, TENANT]) {
    it(`is recorded while KubeVirt’s namespace is unknown, and a pod of ${by} gets no reference`, () => {
      const verdict = review(launcher(PLAIN), { by, kubevirt: UNKNOWN });
      expect(changes(verdict)).to.deep.equal([`creator ${by}`]);
      expect(verdict.allowed && verdict.warnings.join()).to.include('kubevirtNamespace is wrong');
    });

    it(`is recorded as ${by} whatever the annotation says`, () => {
      const verdict = review(launcher(PLAIN, 'system:serviceaccount:x:y'), { by, kubevirt: UNKNOWN });
      expect(changes(verdict)).to.deep.equal([`creator ${by}`]);
      expect(changes(review(launcher(PLAIN, by), { by, kubevirt: UNKNOWN }))).to.deep.equal([]);
    });
  }

  it('may not set a reference while KubeVirt’s namespace is unknown', () => {
    const networks = elementWith({ [CLAIM_REFERENCE_KEY]: 'vm1.data' });
    expect(changes(review(launcher(networks), { kubevirt: UNKNOWN })).join()).to.include('kubevirtNamespace is wrong');
  });

  it('is not recorded again while KubeVirt’s namespace is unknown, and the pod keeps its references', () => {
    const given = { kubevirt: UNKNOWN, before: launcher(POINTED) };
    expect(changes(review(launcher(PLAIN), given))).to.deep.equal(['references']);
    expect(changes(review(launcher(PLAIN), { kubevirt: UNKNOWN, before: launcher('red') }))).to.deep.equal([]);
  });

  it('is the user who gives a launcher its first networks', () => {
    const before = launcher(undefined);
    expect(changes(review(launcher(PLAIN), { before }))).to.deep.equal(['references']);
    expect(changes(review(launcher(PLAIN), { before, by: TENANT })).join()).to.include('refused');
    expect(changes(review(launcher(PLAIN), { before, by: TENANT, kubevirt: UNKNOWN }))).to.deep.equal([
      `creator ${TENANT}`,
    ]);
  });

  it('decides later whether the pod gets references: KubeVirt’s pods do, others do not', () => {
    const later = (creator: string) => changes(review(launcher(PLAIN, creator), { before: launcher('red', creator) }));
    expect(later(TENANT)).to.deep.equal([]);
    expect(later(CONTROLLER)).to.deep.equal(['references']);
  });
});
