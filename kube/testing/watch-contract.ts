import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { Client } from '../client.js';
import { resourcePath } from '../resource.js';
import { IPAM_CLAIMS } from '../resources.js';
import type { Query } from '../transport/transport.js';

const NAMESPACE = 'default';
const PATH = resourcePath(IPAM_CLAIMS, { namespace: NAMESPACE });
const IDLE_MS = 20_000;
const SHORT_WATCH_SECONDS = 3;
let serial = 0;

interface SeenEvent {
  readonly type: string;
  readonly object: IPAMClaim;
}

/** The part of the API contract about watches. */
export function describeWatchContract(clientOf: () => Client): void {
  let client: Client;
  let ref: { namespace: string; name: string };
  let labelSelector: string;

  beforeEach(() => {
    client = clientOf();
    ref = { namespace: NAMESPACE, name: `watched-${++serial}` };
    labelSelector = `test=${ref.name}`;
  });

  const create = (labels: Record<string, string> = {}) =>
    client.create(IPAM_CLAIMS, {
      metadata: { ...ref, labels: { test: ref.name, ...labels } },
      spec: { network: 'blue', interface: 'net1' },
    });
  const merge = (body: object) => client.patch(IPAM_CLAIMS, ref, { type: 'merge', body });
  const version = async () => (await client.list(IPAM_CLAIMS, { namespace: NAMESPACE })).resourceVersion;

  /** Reads a watch until it has so many events, or ends. */
  async function read(count: number, query: Query): Promise<SeenEvent[]> {
    const events: SeenEvent[] = [];
    const { signal } = new AbortController();
    const stream = { path: PATH, query: { watch: true, labelSelector, ...query }, signal, idleMs: IDLE_MS };
    for await (const event of client.transport.stream(stream)) {
      if (events.push(event as SeenEvent) === count) break;
    }
    return events;
  }
  const typesOf = (events: readonly SeenEvent[]) => events.map(({ type }) => type);

  it('sends each later write once, in order, with the state after it', async () => {
    const from = await version();
    const made = await create();
    const changed = await merge({ spec: { network: 'red' } });
    await client.delete(IPAM_CLAIMS, ref);
    const events = await read(3, { resourceVersion: from });
    expect(typesOf(events)).to.deep.equal(['ADDED', 'MODIFIED', 'DELETED']);
    expect(events.map(({ object }) => object.spec.network)).to.deep.equal(['blue', 'red', 'red']);
    const versions = events.map(({ object }) => object.metadata.resourceVersion);
    expect(versions.slice(0, 2)).to.deep.equal([made, changed].map(({ metadata }) => metadata.resourceVersion));
    expect(Number(versions[2])).to.be.greaterThan(Number(versions[1]));
  });

  it('sends a write while it is open', async () => {
    const from = await version();
    const reading = read(1, { resourceVersion: from });
    await create();
    expect(typesOf(await reading)).to.deep.equal(['ADDED']);
  });

  it('continues after the version of any event', async () => {
    const made = await create();
    await merge({ spec: { network: 'red' } });
    const events = await read(1, { resourceVersion: made.metadata.resourceVersion });
    expect(events.map(({ type, object }) => [type, object.spec.network])).to.deep.equal([['MODIFIED', 'red']]);
  });

  it('without a version begins with the objects that there are', async () => {
    await create();
    await merge({ spec: { network: 'red' } });
    const events = await read(1, {});
    expect(events.map(({ type, object }) => [type, object.spec.network])).to.deep.equal([['ADDED', 'red']]);
  });

  it('shows an object that is no longer selected as deleted, and one that is selected again as added', async () => {
    const { metadata } = await create({ state: 'ready' });
    await merge({ metadata: { labels: { state: 'waiting' } } });
    await merge({ spec: { network: 'red' } });
    await merge({ metadata: { labels: { state: 'ready' } } });
    await client.delete(IPAM_CLAIMS, ref);
    const selector = { labelSelector: `${labelSelector},state=ready` };
    const events = await read(3, { resourceVersion: metadata.resourceVersion, ...selector });
    expect(typesOf(events)).to.deep.equal(['DELETED', 'ADDED', 'DELETED']);
  });

  it('shows an object whose last finalizer is removed as deleted', async () => {
    const from = await version();
    await create();
    await merge({ metadata: { finalizers: ['holdfast.dev/a'] } });
    await client.delete(IPAM_CLAIMS, ref);
    await merge({ metadata: { finalizers: null } });
    const events = await read(4, { resourceVersion: from });
    expect(typesOf(events)).to.deep.equal(['ADDED', 'MODIFIED', 'MODIFIED', 'DELETED']);
  });

  it('ends after its time, and has only bookmarks until then if nothing has changed', async () => {
    const query = { resourceVersion: await version(), allowWatchBookmarks: true, timeoutSeconds: SHORT_WATCH_SECONDS };
    const events = await read(Infinity, query);
    expect(typesOf(events).filter((type) => type !== 'BOOKMARK')).to.deep.equal([]);
  });

  it('from a version that the server no longer has is answered with 410 Expired', async () => {
    await create();
    const [event] = await read(1, { resourceVersion: '1' });
    expect(event?.type).to.equal('ERROR');
    expect(event?.object).to.include({ kind: 'Status', code: 410, reason: 'Expired' });
  });
}
