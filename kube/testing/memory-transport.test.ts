import { expect } from 'chai';
import { requestErrorOf } from '../../test/request-error.js';
import { Client } from '../client.js';
import { systemClock } from '../clock.js';
import { StatusError, TransportError, isGone } from '../errors.js';
import { CONFIG_MAPS } from '../resources.js';
import { MemoryTransport } from './memory-transport.js';

describe('MemoryTransport', () => {
  const REF = { namespace: 'default', name: 'a' };
  let transport: MemoryTransport;
  let client: Client;

  beforeEach(() => {
    transport = new MemoryTransport();
    client = new Client(transport);
  });

  it('does not serve a request that fails before', async () => {
    transport.before = () => {
      throw new TransportError('unsent', 'cut');
    };
    expect((await requestErrorOf(client.create(CONFIG_MAPS, { metadata: REF }))).message).to.equal('cut');
    expect(transport.tracker.find(CONFIG_MAPS, REF)).to.equal(undefined);
  });

  it('loses an answer after the request was served', async () => {
    transport.before = () => ({ error: new TransportError('broken', 'lost'), applied: true });
    expect((await requestErrorOf(client.create(CONFIG_MAPS, { metadata: REF }))).message).to.equal('lost');
    expect(transport.tracker.find(CONFIG_MAPS, REF)?.metadata.name).to.equal('a');
  });

  it('serves a request when it is allowed to', async () => {
    let allow: () => void = () => undefined;
    transport.before = () => new Promise<void>((resolve) => (allow = resolve));
    const created = client.create(CONFIG_MAPS, { metadata: REF });
    expect(transport.requests.length).to.equal(1);
    expect(transport.tracker.find(CONFIG_MAPS, REF)).to.equal(undefined);
    allow();
    expect((await created).metadata.name).to.equal('a');
  });

  it('stores no write that admission rejects, and shows it what the write changes', async () => {
    const { tracker } = transport;
    await client.create(CONFIG_MAPS, { metadata: REF, data: { a: '1' } });
    const seen: unknown[] = [];
    tracker.admit = ({ verb, before, after }) => {
      seen.push([verb, (before as { data?: object }).data, (after as { data?: object } | undefined)?.data]);
      throw new StatusError({ request: '', status: 403, reason: 'Forbidden', message: 'no' });
    };
    const patch = { type: 'merge', body: { data: { a: '2' } } } as const;
    expect((await requestErrorOf(client.patch(CONFIG_MAPS, REF, patch))).message).to.include('no');
    expect((await requestErrorOf(client.delete(CONFIG_MAPS, REF))).message).to.include('no');
    expect(seen).to.deep.equal([['update', { a: '1' }, { a: '2' }], ['delete', { a: '1' }, undefined]]); // oxfmt-ignore
    expect(tracker.get(CONFIG_MAPS, REF).data).to.deep.equal({ a: '1' });
  });

  it('sends a bookmark before a watch ends', async () => {
    const clock = { ...systemClock, setTimer: (ms: number, run: () => void) => systemClock.setTimer(ms / 100, run) };
    const { signal } = new AbortController();
    const query = { watch: true, allowWatchBookmarks: true, resourceVersion: '95', timeoutSeconds: 4 };
    const stream = { path: '/api/v1/configmaps', query, signal, idleMs: 1_000 };
    const events: unknown[] = [];
    for await (const event of new MemoryTransport(transport.tracker, clock).stream(stream)) events.push(event);
    expect(events).to.deep.equal([{ type: 'BOOKMARK', object: { metadata: { resourceVersion: '95' } } }]);
  });

  it('answers with copies', async () => {
    const answer = await client.create(CONFIG_MAPS, { metadata: REF, data: { a: '1' } });
    answer.data!.a = '2';
    expect((await client.get(CONFIG_MAPS, REF)).data).to.deep.equal({ a: '1' });
  });

  it('does not continue a list or a watch from a version that is compacted', async () => {
    for (const name of ['a', 'b']) await client.create(CONFIG_MAPS, { metadata: { ...REF, name } });
    const pages = client.pages(CONFIG_MAPS, { pageSize: 1 });
    await pages.next();
    transport.tracker.put(CONFIG_MAPS, { metadata: { ...REF, name: 'c' } });
    transport.tracker.compact();
    expect(isGone(await requestErrorOf(pages.next()))).to.equal(true);
    const seen: object[] = [];
    transport.tracker.watch(CONFIG_MAPS, '97', {}, ({ object }) => seen.push(object))();
    expect(seen.map((object) => (object as { code?: number }).code)).to.deep.equal([410]);
  });
});
