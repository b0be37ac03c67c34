import { expect } from 'chai';
import {
  StatusError,
  TransportError,
  classifyError,
  isAlreadyExists,
  isConflict,
  isGone,
  isInvalid,
  isNotFound,
  retryDelayOf,
  webhookFailureOf,
  writeFailureOf,
} from './errors.js';
import { statusErrorOf, transportErrorOf } from './transport/responses.js';

function refusal(status: number, body: unknown, headers: Record<string, string> = {}) {
  return statusErrorOf('GET /api/v1/x', status, headers, typeof body === 'string' ? body : JSON.stringify(body));
}

describe('errors of the API server', () => {
  it('contain the request, the status, the reason and the message', () => {
    const error = refusal(404, { kind: 'Status', reason: 'NotFound', message: 'pods "x" not found', code: 404 });
    expect(error.message).to.equal('GET /api/v1/x: 404 NotFound: pods "x" not found');
  });

  it('quote the beginning of a response that is not a Status', () => {
    expect(refusal(502, '<html>the proxy is tired</html>').message).to.equal(
      'GET /api/v1/x: 502 BadGateway: <html>the proxy is tired</html>',
    );
    expect(refusal(502, 'x'.repeat(10_000)).message).to.have.length.below(300);
  });

  const retryAfter = [
    { name: 'the header', given: refusal(429, {}, { 'retry-after': '2' }), expect: 2000 },
    { name: 'the details', given: refusal(429, { kind: 'Status', details: { retryAfterSeconds: 3 } }), expect: 3000 },
    { name: 'nowhere', given: refusal(429, {}), expect: undefined },
    { name: 'an empty header', given: refusal(429, {}, { 'retry-after': '' }), expect: undefined },
    { name: 'an hour, of which a minute counts', given: refusal(429, {}, { 'retry-after': '3600' }), expect: 60_000 },
    {
      name: 'a month in the details, of which a minute counts',
      given: refusal(429, { kind: 'Status', details: { retryAfterSeconds: 2_592_000 } }),
      expect: 60_000,
    },
    { name: 'a date (API servers send none)', given: refusal(429, {}, { 'retry-after': 'Fri' }), expect: undefined },
  ];
  for (const { name, given, expect: expected } of retryAfter) {
    it(`take the delay before a retry from ${name}`, () => {
      expect(given.retryAfterMs).to.equal(expected);
    });
  }

  const classes = [
    { given: 400, expect: 'invalid' },
    { given: 401, expect: 'transient' },
    { given: 403, expect: 'invalid' },
    { given: 404, expect: 'stale' },
    { given: 409, expect: 'stale' },
    { given: 410, expect: 'transient' },
    { given: 422, expect: 'invalid' },
    { given: 429, expect: 'transient' },
    { given: 500, expect: 'transient' },
    { given: 503, expect: 'transient' },
  ];
  for (const { given, expect: expected } of classes) {
    it(`are ${expected} with status ${given}`, () => {
      expect(classifyError(refusal(given, {}))).to.equal(expected);
    });
  }

  it('are invalid if the namespace of the object does not exist', () => {
    const body = { kind: 'Status', reason: 'NotFound', code: 404, details: { name: 'vms', kind: 'namespaces' } };
    expect(classifyError(refusal(404, body))).to.equal('invalid');
  });

  it('are transient while the policies of a new API server are not ready', () => {
    const message = 'policy x with binding y denied request: failed to configure policy: no kind AddressPool is known';
    const error = new StatusError({ request: 'PATCH /x', status: 422, reason: 'Invalid', message });
    expect(classifyError(error)).to.equal('transient');
    expect(isInvalid(error)).to.equal(false);
    expect(retryDelayOf(error)).to.equal(2_000);
  });

  it('are transient without a response, and for internal errors of our own', () => {
    expect(classifyError(new TransportError('broken', 'reset'))).to.equal('transient');
    expect(classifyError(new TypeError('undefined is not a function'))).to.equal('transient');
  });

  it('distinguish a conflict from an existing name', () => {
    const conflict = refusal(409, { kind: 'Status', reason: 'Conflict' });
    const taken = refusal(409, { kind: 'Status', reason: 'AlreadyExists' });
    expect([isConflict(conflict), isAlreadyExists(conflict)]).to.deep.equal([true, false]);
    expect([isConflict(taken), isAlreadyExists(taken)]).to.deep.equal([false, true]);
    expect(isNotFound(refusal(404, {}))).to.equal(true);
    expect(isGone(refusal(410, {}))).to.equal(true);
  });
});

describe('errors of the connection', () => {
  const cases = [
    { given: 'ECONNREFUSED', expect: 'unsent' },
    { given: 'ENOTFOUND', expect: 'unsent' },
    { given: 'UND_ERR_CONNECT_TIMEOUT', expect: 'unsent' },
    { given: 'CERT_HAS_EXPIRED', expect: 'unsent' },
    { given: 'ERR_TLS_CERT_ALTNAME_INVALID', expect: 'unsent' },
    { given: 'ECONNRESET', expect: 'broken' },
    { given: 'UND_ERR_SOCKET', expect: 'broken' },
    { given: 'ETIMEDOUT', expect: 'broken' },
  ];
  for (const { given, expect: expected } of cases) {
    it(`with code ${given} mean that the request was ${expected === 'unsent' ? 'not sent' : 'perhaps received'}`, () => {
      const error = transportErrorOf('POST /x', Object.assign(new Error('text'), { code: given }));
      expect(error.fault).to.equal(expected);
      expect(error.message).to.equal(`POST /x: ${given}: text`);
    });
  }
});

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
