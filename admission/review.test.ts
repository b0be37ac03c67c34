import { expect } from 'chai';
import { silentLogger } from '../kube/log.js';
import { ManualClock } from '../test/manual-clock.js';
import { ReviewError, Reviewer, readReview, writeReview } from './review.js';

const V1BETA1 = 'admission.k8s.io/v1beta1';
const REVIEW = {
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: {
    uid: 'u1',
    operation: 'CREATE',
    namespace: 'vms',
    userInfo: { username: 'somebody', groups: ['system:authenticated'] },
    resource: { group: '', version: 'v1', resource: 'pods' },
    object: { kind: 'Pod' },
    oldObject: null,
    dryRun: true,
  },
};

describe('an AdmissionReview', () => {
  it('is read with its operation, user and objects', () => {
    expect(readReview(REVIEW)).to.deep.equal({
      uid: 'u1',
      operation: 'CREATE',
      namespace: 'vms',
      username: 'somebody',
      resource: 'v1/pods',
      object: { kind: 'Pod' },
      oldObject: null,
    });
  });

  it('is answered with a reason of bounded length for any values in it', () => {
    const answer = writeReview('u1', { allowed: false, reason: 'x'.repeat(1_000_000), code: 403 });
    expect(answer.length).to.be.below(5_000);
  });

  it('contains group and subresource of the reviewed object', () => {
    const resource = { group: 'apps', version: 'v1', resource: 'deployments' };
    const request = { ...REVIEW.request, resource, subResource: 'scale' };
    expect(readReview({ ...REVIEW, request }).resource).to.equal('apps/v1/deployments/scale');
  });

  const refused = [
    { name: 'a list', given: [], expect: 'the body is a list' },
    { name: 'null', given: null, expect: 'the body is null' },
    { name: 'another kind', given: { ...REVIEW, kind: 'Pod' }, expect: 'kind is "Pod", not "AdmissionReview"' },
    { name: 'no version', given: { ...REVIEW, apiVersion: undefined }, expect: 'apiVersion is absent' },
    { name: 'an old version', given: { ...REVIEW, apiVersion: V1BETA1 }, expect: `"${V1BETA1}"` },
    { name: 'no request', given: { ...REVIEW, request: undefined }, expect: 'request is absent' },
    { name: 'no uid', given: { ...REVIEW, request: {} }, expect: 'request.uid is absent' },
    { name: 'a uid that is no text', given: { ...REVIEW, request: { uid: 7 } }, expect: 'request.uid is 7' },
  ];
  for (const { name, given, expect: expected } of refused) {
    it(`cannot be answered if it is ${name}`, () => {
      expect(() => readReview(given)).to.throw(ReviewError, expected);
    });
  }

  it('is answered with a patch in base64 and warnings of at most the length that the API server accepts', () => {
    const patch = [{ op: 'replace' as const, path: '/a', value: 'ü' }];
    const answer = JSON.parse(writeReview('u1', { allowed: true, patch, warnings: ['w'.repeat(300)] })) as {
      response: Record<string, unknown>;
    };
    const { patch: encoded, ...rest } = answer.response;
    expect(rest).to.deep.equal({ uid: 'u1', allowed: true, patchType: 'JSONPatch', warnings: ['w'.repeat(256)] });
    expect(JSON.parse(Buffer.from(encoded as string, 'base64').toString())).to.deep.equal(patch);
  });

  it('is answered with warnings of one line each', () => {
    const answer = JSON.parse(writeReview('u1', { allowed: true, warnings: ['near "a":\n\t1 of it'] })) as {
      response: { warnings: string[] };
    };
    expect(answer.response.warnings).to.deep.equal(['near "a": 1 of it']);
  });

  it('is answered without a patch if nothing changes', () => {
    expect(JSON.parse(writeReview('u1', { allowed: true, patch: [], warnings: [] }))).to.deep.equal({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      response: { uid: 'u1', allowed: true },
    });
  });

  it('is measured from the arrival of its request, so that HoldfastWebhookSlow sees the time in the queue', async () => {
    const measured: number[] = [];
    const reviewer = new Reviewer({
      ...{ subject: 'the pod', component: 'holdfast-webhook', log: silentLogger, clock: new ManualClock(5_000) },
      metrics: { reviewed: (_operation, _result, seconds) => void measured.push(seconds) },
      decide: () => ({ allowed: true }),
    });
    await reviewer.answer(REVIEW, 1_500);
    expect(measured).to.deep.equal([3.5]);
  });

  it('is denied with a code and a reason', () => {
    const answer = JSON.parse(writeReview('u1', { allowed: false, reason: 'no', code: 403 })) as { response: unknown };
    const status = { status: 'Failure', code: 403, message: 'no' };
    expect(answer.response).to.deep.equal({ uid: 'u1', allowed: false, status });
  });
});
