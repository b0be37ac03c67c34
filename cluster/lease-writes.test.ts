import { expect } from 'chai';
import type { AddressLease } from '../api/address-lease.js';
import { Client } from '../kube/client.js';
import type { ApiRequest, ClientTransport } from '../kube/transport/transport.js';
import { writeLease } from './lease-writes.js';

const NAME = 'blue.10-1-0-17';
const PATH = '/apis/ipam.holdfast.dev/v1alpha1/addressleases';
const LEASE: AddressLease = {
  metadata: { name: NAME },
  spec: { address: '10.1.0.17', addressSpace: 'blue', pool: 'blue' },
};

describe('writes of leases', () => {
  const seen: ApiRequest[] = [];
  const wire: ClientTransport = {
    request: (request) => {
      seen.push(request);
      return Promise.resolve(LEASE);
    },
    stream: () => {
      throw new TypeError('nothing is watched');
    },
    close: () => Promise.resolve(),
  };
  const client = new Client(wire);

  beforeEach(() => (seen.length = 0));

  it('create a lease', async () => {
    expect(await writeLease(client, { verb: 'create', object: LEASE })).to.equal(LEASE);
    expect(seen).to.have.length(1);
    expect(seen[0]).to.deep.include({ method: 'POST', path: PATH });
    expect(seen[0]?.body).to.deep.include(LEASE);
  });

  it('patch a lease with preconditions', async () => {
    const body = { metadata: { uid: 'u1', resourceVersion: '7' }, spec: { releasedAt: '2026-01-01T00:00:00.000Z' } };
    expect(await writeLease(client, { verb: 'patch', name: NAME, body }, { deadlineMs: 5 })).to.equal(LEASE);
    const contentType = 'application/merge-patch+json';
    expect(seen[0]).to.deep.include({ method: 'PATCH', path: `${PATH}/${NAME}`, body, contentType, deadlineMs: 5 });
  });

  it('delete a lease with UID and resourceVersion as preconditions', async () => {
    const write = { verb: 'delete', name: NAME, uid: 'u1', resourceVersion: '7' } as const;
    expect(await writeLease(client, write)).to.equal(undefined);
    expect(seen[0]).to.deep.include({ method: 'DELETE', path: `${PATH}/${NAME}` });
    expect(seen[0]?.body).to.deep.include({ preconditions: { uid: 'u1', resourceVersion: '7' } });
  });
});
