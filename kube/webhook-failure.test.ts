import { expect } from 'chai';
import { StatusError } from './errors.js';
import { webhookFailureOf, writeFailureOf } from './webhook-failure.js';

function failureOf(webhook: string, cause = 'dial tcp 10.0.0.1:443: connect: connection refused') {
  const post = `failed to call webhook: Post "https://holdfast-ipam.holdfast-system.svc:443/validate?timeout=5s": ${cause}`;
  const message = `Internal error occurred: failed calling webhook "${webhook}": ${post}`;
  return new StatusError({ request: 'POST /x', status: 500, reason: 'InternalError', message });
}

describe('the failure of an admission webhook', () => {
  it('names the process that serves the webhook of pools, the cause, and what to do', () => {
    expect(webhookFailureOf(failureOf('pools.ipam.holdfast.dev'))).to.equal(
      "admission webhook pools.ipam.holdfast.dev of Holdfast's ipam does not answer (connection refused): check that one of its pods is ready, " +
        'with kubectl get pods -A -l app.kubernetes.io/name=holdfast',
    );
  });

  it('names the other process for the webhook of launchers', () => {
    expect(webhookFailureOf(failureOf('launcher-pods.ipam.holdfast.dev', 'context deadline exceeded'))).to.match(
      /of Holdfast's webhook does not answer \(context deadline exceeded\)/,
    );
  });

  it('says of the webhook of another product that it is not of Holdfast', () => {
    expect(webhookFailureOf(failureOf('example.org'))).to.match(
      /^admission webhook example\.org, which is not Holdfast's, /,
    );
  });

  it('is unknown for other errors, whose message is told as it is', () => {
    const denied = new StatusError({ request: 'POST /x', status: 400, reason: 'BadRequest', message: 'denied' });
    for (const error of [denied, new Error('failed calling webhook "x": y'), 'text']) {
      expect(webhookFailureOf(error)).to.equal(undefined);
      expect(writeFailureOf(error)).to.equal(error instanceof Error ? error.message : error);
    }
  });
});
