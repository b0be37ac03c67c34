import { expect } from 'chai';
import type { KubeObject } from '../api/meta.js';
import { FaultServer, inTurn, type Reply, status } from '../test/https/fault-server.js';
import { faultOf } from '../test/request-error.js';
import { Client, type Patch } from './client.js';
import { namespacedResource } from './resource.js';
import { NODES } from './resources.js';
import { Transport } from './transport/transport.js';

interface Thing extends KubeObject {
  spec?: object;
}

const THINGS = namespacedResource<Thing>('example.dev/v1', 'things', 'Thing');
const REF = { namespace: 'n', name: 'a' };
const PATH = '/apis/example.dev/v1/namespaces/n/things';

function page(names: string[], token = ''): Reply {
  const items = names.map((name) => ({ metadata: { name, namespace: 'n' } }));
  return { body: { metadata: { resourceVersion: '7', continue: token }, items } };
}

describe('Client', () => {
  let server: FaultServer;
  let client: Client;
  before(async () => {
    server = await FaultServer.start(inTurn({}));
  });
  after(() => server.stop());
  beforeEach(() => {
    server.reset();
    client = new Client(new Transport(server.credentials()));
  });
  afterEach(() => client.transport.close());

  function requests(): string[] {
    return server.seen.map(({ method, path, query }) => {
      const parameters = decodeURIComponent(query.toString());
      return `${method} ${path}${parameters === '' ? '' : `?${parameters}`}`;
    });
  }

  function lastBody(): unknown {
    return JSON.parse(server.seen.at(-1)?.body ?? '');
  }

  it('gets an object, and throws if there is none', async () => {
    server.handle(inTurn({ body: { metadata: { name: 'a' } } }, { status: 404, body: status(404, 'NotFound') }));
    expect(await client.get(THINGS, REF)).to.deep.equal({ metadata: { name: 'a' } });
    expect(await faultOf(client.get(THINGS, REF))).to.equal('404');
    expect(requests()).to.deep.equal([`GET ${PATH}/a`, `GET ${PATH}/a`]);
  });

  it('finds an object or returns undefined, and throws other errors', async () => {
    server.handle(inTurn({ body: { metadata: { name: 'a' } } }, { status: 404 }, { status: 403 }));
    expect(await client.find(THINGS, REF)).to.deep.equal({ metadata: { name: 'a' } });
    expect(await client.find(THINGS, REF)).to.equal(undefined);
    expect(await faultOf(client.find(THINGS, REF))).to.equal('403');
  });

  it('lists all pages, and adds the kind to every item', async () => {
    server.handle(inTurn(page(['a', 'b'], 'next'), page(['c'])));
    const list = await client.list(THINGS, { namespace: 'n', labelSelector: 'x=y', pageSize: 2 });
    expect(list.items.map((item) => item.metadata.name)).to.deep.equal(['a', 'b', 'c']);
    expect(list.items[0]).to.include({ apiVersion: 'example.dev/v1', kind: 'Thing' });
    expect(list.resourceVersion).to.equal('7');
    expect(requests()).to.deep.equal([
      `GET ${PATH}?labelSelector=x=y&limit=2`,
      `GET ${PATH}?labelSelector=x=y&limit=2&continue=next`,
    ]);
  });

  it('keeps only the transformed objects of a long list', async () => {
    server.handle(inTurn(page(['a', 'b'], 'next'), page(['c'])));
    const list = await client.listAs(THINGS, (object) => object.metadata.name);
    expect(list).to.deep.equal({ items: ['a', 'b', 'c'], resourceVersion: '7' });
  });

  it('lists all namespaces, and cluster-scoped kinds', async () => {
    server.handle(inTurn(page([])));
    await client.list(THINGS);
    await client.list(NODES);
    expect(requests()).to.deep.equal(['GET /apis/example.dev/v1/things?limit=100', 'GET /api/v1/nodes?limit=100']);
  });

  it('sends a resourceVersion with the first page only', async () => {
    server.handle(inTurn(page(['a'], 'next'), page(['b'])));
    await client.list(THINGS, { namespace: 'n', resourceVersion: '5' });
    expect(requests()).to.deep.equal([
      `GET ${PATH}?limit=100&resourceVersion=5&resourceVersionMatch=NotOlderThan`,
      `GET ${PATH}?limit=100&continue=next`,
    ]);
  });

  it('restarts a list whose continue token has expired, without duplicate items', async () => {
    const expired: Reply = { status: 410, body: status(410, 'Expired') };
    server.handle(inTurn(page(['a'], 'old'), expired, page(['a'], 'new'), page(['b'])));
    const list = await client.list(THINGS, { namespace: 'n' });
    expect(list.items.map((item) => item.metadata.name)).to.deep.equal(['a', 'b']);
  });

  it('fails if the continue tokens of a list expire repeatedly', async () => {
    server.handle((request) => (request.query.has('continue') ? { status: 410 } : page(['a'], 'token')));
    expect(await faultOf(client.list(THINGS))).to.equal('410');
    expect(server.seen).to.have.length(6);
  });

  it('requests only metadata if told to', async () => {
    server.handle(inTurn(page([])));
    await client.list(THINGS, { metadataOnly: true });
    const accepted = /^application\/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,/;
    expect(server.seen[0]?.headers.accept).to.match(accepted);
  });

  it('creates an object in its namespace, and adds kind and apiVersion', async () => {
    server.handle(inTurn({ status: 201, body: { metadata: { name: 'a', uid: 'u' } } }));
    const created = await client.create(THINGS, { metadata: { ...REF }, spec: { x: 1 } }, { dryRun: true });
    expect(created.metadata.uid).to.equal('u');
    expect(requests()).to.deep.equal([`POST ${PATH}?dryRun=All`]);
    expect(lastBody()).to.deep.equal({ apiVersion: 'example.dev/v1', kind: 'Thing', metadata: REF, spec: { x: 1 } });
  });

  it('replaces an object or its status, and keeps unknown fields', async () => {
    server.handle(inTurn({ body: {} }));
    const object = { metadata: { ...REF, resourceVersion: '3', managedFields: [{ manager: 'm' }] }, future: true };
    await client.replace(THINGS, object);
    expect(lastBody()).to.deep.include(object);
    await client.replace(THINGS, object, { subresource: 'status' });
    expect(requests()).to.deep.equal([`PUT ${PATH}/a`, `PUT ${PATH}/a/status`]);
  });

  const patches: { given: Patch; type: string; query: string; body: unknown }[] = [
    {
      given: { type: 'json', operations: [{ op: 'remove', path: '/spec' }] },
      type: 'application/json-patch+json',
      query: '',
      body: [{ op: 'remove', path: '/spec' }],
    },
    { given: { type: 'merge', body: { a: null } }, type: 'application/merge-patch+json', query: '', body: { a: null } },
    {
      given: { type: 'strategic', body: { a: 1 } },
      type: 'application/strategic-merge-patch+json',
      query: '',
      body: { a: 1 },
    },
    {
      given: { type: 'apply', object: { a: 1 }, fieldManager: 'holdfast', force: true },
      type: 'application/apply-patch+yaml',
      query: '?fieldManager=holdfast&force=true',
      body: { a: 1 },
    },
  ];
  for (const { given, type, query, body } of patches) {
    it(`sends a ${given.type} patch as ${type}`, async () => {
      server.handle(inTurn({ body: {} }));
      await client.patch(THINGS, REF, given);
      expect(requests()).to.deep.equal([`PATCH ${PATH}/a${query}`]);
      expect(server.seen[0]?.headers['content-type']).to.equal(type);
      expect(lastBody()).to.deep.equal(body);
    });
  }

  it('deletes with preconditions and a propagation policy', async () => {
    server.handle(inTurn({ body: {} }));
    await client.delete(THINGS, REF, { uid: 'u', propagationPolicy: 'Foreground', gracePeriodSeconds: 0 });
    expect(requests()).to.deep.equal([`DELETE ${PATH}/a`]);
    expect(lastBody()).to.deep.equal({
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      preconditions: { uid: 'u' },
      propagationPolicy: 'Foreground',
      gracePeriodSeconds: 0,
    });
  });

  it('succeeds in deleting an absent object, and reports a conflict for a changed one', async () => {
    server.handle(inTurn({ status: 404 }, { status: 409, body: status(409, 'Conflict') }));
    await client.delete(THINGS, REF, { uid: 'u' });
    expect(await faultOf(client.delete(THINGS, REF, { uid: 'u' }))).to.equal('409');
  });

  it('posts to subresources', async () => {
    server.handle(inTurn({ status: 201, body: { status: { token: 't' } } }));
    const token = await client.createSubresource(THINGS, REF, 'token', { spec: {} });
    expect(token).to.deep.equal({ status: { token: 't' } });
    expect(requests()).to.deep.equal([`POST ${PATH}/a/token`]);
  });

  it('applies the deadline of a call', async () => {
    server.handle(inTurn({ silent: true }));
    expect(await faultOf(client.find(THINGS, REF, { deadlineMs: 50 }))).to.equal('deadline');
  });

  it('rejects an object of a namespaced kind without a namespace', async () => {
    let message = '';
    await client.get(THINGS, { name: 'a' }).catch((error: unknown) => (message = String(error)));
    expect(message).to.equal('TypeError: Thing a needs a namespace');
  });
});
