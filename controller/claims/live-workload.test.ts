import { expect } from 'chai';
import type { Client } from '../../kube/client.js';
import { vm } from '../../test/workload-objects.js';
import { readLiveWorkload } from './live-workload.js';

describe('a workload that is read live', () => {
  it('is transformed like a cached one', async () => {
    const networks = Array.from({ length: 20_000 }, (_, index) => ({ name: `net${index}` }));
    const large = { ...vm({}), spec: { networks, template: { spec: { networks } } } };
    const client = { get: () => Promise.resolve(large) } as unknown as Pick<Client, 'get'>;
    const read = await readLiveWorkload('vms/vm1', client, { of: () => Promise.resolve([]) });
    expect(read.vm?.spec?.template?.spec?.networks).to.have.length(256);
    expect(read.vmi?.spec?.networks).to.have.length(256);
  });
});
