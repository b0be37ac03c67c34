import { expect } from 'chai';
import { isGone, StatusError } from '../../kube/errors.js';
import { CONFIG_MAPS, NAMESPACES } from '../../kube/resources.js';
import { until } from '../../bed/processes/wait.js';
import { startControlPlane, type ControlPlane } from '../../bed/control-plane/control-plane.js';

/** The features of a bare control plane that tests of the Kubernetes client need. */
describe('A control plane without KubeVirt', function () {
  this.timeout(120_000);
  let plane: ControlPlane;

  before(async () => {
    plane = await startControlPlane();
  });

  after(() => plane.stop());

  const namespaces = () =>
    plane.client.list(NAMESPACES).then(({ items }) => items.map(({ metadata }) => metadata.name));

  it('keeps its port and its objects when the API server crashes and restarts', async () => {
    await plane.client.create(NAMESPACES, { metadata: { name: 'kept' } });
    await plane.apiServer.kill();
    const failure = await namespaces().catch((error: unknown) => error);
    expect(failure).to.be.an('error').and.not.instanceOf(StatusError);
    await plane.apiServer.start();
    expect(await namespaces()).to.include('kept');
  });

  it('can hang without closing its connections', async () => {
    await namespaces();
    await plane.apiServer.pause();
    const request = { method: 'GET', path: '/api/v1/namespaces', deadlineMs: 300 };
    const failure = await plane.client.transport.request(request).catch((error: unknown) => error);
    expect(failure).to.have.property('fault', 'deadline');
    plane.apiServer.resume();
    await until('an answer', async () => (await namespaces()).includes('kept'));
  });

  it('can compact its history, so that an old watch ends with 410', async () => {
    const { resourceVersion } = await plane.client.list(NAMESPACES);
    await plane.client.create(CONFIG_MAPS, { metadata: { namespace: 'default', name: 'progress' } });
    await plane.apiServer.kill();
    await plane.etcd.compact();
    await plane.apiServer.start();
    const watch = { path: '/api/v1/namespaces', query: { watch: true, resourceVersion }, idleMs: 5_000 };
    const failure = await first(plane.client.transport.stream({ ...watch, signal: new AbortController().signal }));
    expect(isGoneEvent(failure) || isGone(failure), JSON.stringify(failure)).to.equal(true);
  });
});

/** The first value of a stream, or its error. */
async function first(stream: AsyncIterable<unknown>): Promise<unknown> {
  try {
    for await (const value of stream) return value;
    return undefined;
  } catch (error) {
    return error;
  }
}

function isGoneEvent(value: unknown): boolean {
  const { type, object } = (value ?? {}) as { type?: string; object?: { code?: number } };
  return type === 'ERROR' && object?.code === 410;
}
