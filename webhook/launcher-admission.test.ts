import { expect } from 'chai';
import type { KubeVirtControllerSource } from '../cluster/kubevirt-controller.js';
import type { Logger } from '../kube/log.js';
import { systemClock } from '../kube/clock.js';
import { TransportError } from '../kube/errors.js';
import { Cache } from '../kube/informers/cache.js';
import { CLAIM_WATCH } from '../cluster/watch-specs.js';
import { NAMESPACE, type RawPod, makeLauncherPod, networksValue } from '../test/objects/kubevirt-objects.js';
import { CLUSTER, type ReviewedCluster, VM1, clusterViewOf } from '../test/objects/pod-review.js';
import { LauncherAdmission } from './launcher-admission.js';
import { silentWebhookMetrics } from './testing/silent-webhook-metrics.js';
import type { PodReview } from './pod-decision.js';
import { reviewPod } from './pod-mutation.js';
import { PodReviewer } from './pod-reviewer.js';
import { ReviewError } from '../admission/review.js';
import { BY_KUBEVIRT, KNOWN_KUBEVIRT } from '../test/objects/launcher-pods.js';

interface Response {
  uid: string;
  allowed: boolean;
  patch?: string;
  status?: { code: number; message: string };
}

function admissionOn(
  cluster: ReviewedCluster,
  review = (pod: PodReview) => Promise.resolve(reviewPod(pod, clusterViewOf(cluster))),
  kubevirt: KubeVirtControllerSource = KNOWN_KUBEVIRT,
) {
  const lines: { level: string; message: string; fields: object }[] = [];
  const counts: string[] = [];
  const at = (level: string) => (fields: object, message: string) => lines.push({ level, message, fields });
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } as unknown as Logger;
  const metrics = {
    ...silentWebhookMetrics,
    reviewed: (operation: string, result: string) => counts.push(`${operation} ${result}`),
    denied: (check: string) => counts.push(check),
  };
  const admission = new LauncherAdmission({ podReviewer: { review }, kubevirt, log, metrics, clock: systemClock });
  const answer = async (request: Record<string, unknown>): Promise<Response> => {
    const body = await admission.answer({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });
    return (JSON.parse(body) as { response: Response }).response;
  };
  return { admission, answer, lines, counts };
}

function requestFor(pod: RawPod, more: object = {}): Record<string, unknown> {
  const resource = { group: '', version: 'v1', resource: 'pods' };
  const userInfo = { username: BY_KUBEVIRT.username };
  return {
    uid: 'u1',
    userInfo,
    operation: 'CREATE',
    namespace: NAMESPACE,
    resource,
    object: pod,
    oldObject: null,
    ...more,
  };
}

describe('the admission of launcher pods', () => {
  it('patches a pod, logs it once and counts it', async () => {
    const { answer, lines, counts } = admissionOn(CLUSTER);
    const response = await answer(requestFor(makeLauncherPod(VM1)));
    expect(response).to.include({ uid: 'u1', allowed: true });
    expect(response.patch).to.be.a('string');
    expect(lines.map(({ level }) => level)).to.deep.equal(['info']);
    expect(counts).to.deep.equal(['CREATE patched']);
  });

  it('logs nothing above debug for a pod that needs no change', async () => {
    const { answer, lines, counts } = admissionOn(CLUSTER);
    const pod = makeLauncherPod(VM1, networksValue(VM1, { data: 'vm1.data' }));
    expect(await answer(requestFor(pod))).to.deep.equal({ uid: 'u1', allowed: true });
    expect(lines.map(({ level }) => level)).to.deep.equal(['debug']);
    expect(counts).to.deep.equal(['CREATE allowed']);
  });

  it('logs once, not for each launcher, that nobody is known to be KubeVirt', async () => {
    const problem = 'there is no KubeVirt object';
    const { answer, lines } = admissionOn(CLUSTER, undefined, { controller: () => ({ problem }) });
    for (const uid of ['u1', 'u2', 'u3']) await answer(requestFor(makeLauncherPod(VM1), { uid }));
    expect(lines.map(({ level }) => level)).to.deep.equal(['warn', 'debug', 'debug']);
  });

  it('refuses a pod with the same reason in the log and in the answer', async () => {
    const { answer, lines, counts } = admissionOn({});
    const { allowed, status } = await answer(requestFor(makeLauncherPod(VM1)));
    expect(allowed).to.be.false;
    expect(status?.code).to.equal(403);
    expect(lines[0]?.message).to.equal(`refused: ${status?.message ?? ''}`);
    expect(lines[0]?.fields).to.include({ vmiUid: VM1.metadata.uid });
    expect(counts).to.deep.equal(['vmi-exists', 'CREATE denied']);
  });

  it('compares an UPDATE with the present pod', async () => {
    const { answer } = admissionOn({});
    const pod = makeLauncherPod(VM1);
    expect((await answer(requestFor(pod, { operation: 'UPDATE', oldObject: pod }))).allowed).to.be.true;
  });

  it('allows other operations with any content', async () => {
    const { answer } = admissionOn({});
    for (const operation of ['DELETE', 'CONNECT']) {
      expect(await answer(requestFor(makeLauncherPod(VM1), { operation, object: null }))).to.deep.equal({
        uid: 'u1',
        allowed: true,
      });
    }
  });

  it('refuses other resources because its configuration is wrong', async () => {
    const { answer } = admissionOn(CLUSTER);
    const resource = { group: 'apps', version: 'v1', resource: 'deployments' };
    const { status } = await answer(requestFor(makeLauncherPod(VM1), { resource }));
    expect(status?.message).to.include('apps/v1/deployments').and.to.include('v1/pods');
  });

  const malformed: { name: string; pod: unknown; expect: string }[] = [
    { name: 'an object that is null', pod: null, expect: 'request.object is null, not an object' },
    { name: 'a pod without metadata', pod: {}, expect: 'request.object.metadata is absent' },
    { name: 'labels in a list', pod: { metadata: { labels: [] } }, expect: 'request.object.metadata.labels is a list' },
    {
      name: 'an annotation that is not a string',
      pod: { metadata: { annotations: { a: 5 } } },
      expect: 'annotations["a"] is 5, not a string',
    },
    {
      name: 'owner references that are not a list',
      pod: { metadata: { ownerReferences: {} } },
      expect: 'ownerReferences is an object, not a list',
    },
    {
      name: 'an owner reference without a UID',
      pod: { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'x' }] } },
      expect: 'ownerReferences[0].uid is absent',
    },
    { name: 'a name that is not a string', pod: { metadata: { name: 5 } }, expect: 'metadata.name is 5' },
  ];
  for (const { name, pod, expect: expected } of malformed) {
    it(`refuses ${name} and names the field`, async () => {
      const { answer } = admissionOn(CLUSTER);
      const { allowed, status } = await answer(requestFor(pod as RawPod));
      expect(allowed).to.be.false;
      expect(status).to.include({ code: 400 });
      expect(status?.message).to.include(expected);
    });
  }

  it('refuses and logs a pod whose review fails with an internal error', async () => {
    const { answer, lines, counts } = admissionOn({}, () => Promise.reject(new TypeError('oops')));
    const { allowed, status } = await answer(requestFor(makeLauncherPod(VM1)));
    expect(allowed).to.be.false;
    expect(status).to.include({ code: 500 });
    expect(status?.message).to.include('oops');
    expect(lines.map(({ level }) => level)).to.deep.equal(['error']);
    expect(counts).to.deep.equal(['CREATE failed']);
  });

  it('counts a review as failed, not as denied, if the API server did not answer its reads', async () => {
    const podReviewer = new PodReviewer({
      listers: {
        ...{ vmis: new Cache(), vms: new Cache(), claims: new Cache(CLAIM_WATCH.indexes), networks: new Cache() },
        namespaces: new Cache(),
      },
      client: { find: () => Promise.reject(new TransportError('deadline', 'no complete response within 2000 ms')) },
      gate: { isOpen: () => true },
      clock: systemClock,
      onLiveRead: () => undefined,
    });
    const { answer, lines, counts } = admissionOn({}, (review) => podReviewer.review(review));
    const { status } = await answer(requestFor(makeLauncherPod(VM1)));
    expect(status).to.include({ code: 500 });
    expect(lines[0]?.message).to.equal(`refused: ${status?.message ?? ''}`);
    expect(counts).to.deep.equal(['CREATE failed']);
  });

  it('throws for a body that is not an admission review', async () => {
    const { admission } = admissionOn({});
    const answered: unknown = await admission.answer({ kind: 'Pod' }).catch((error: unknown) => error);
    expect(answered).to.be.instanceOf(ReviewError);
  });
});
