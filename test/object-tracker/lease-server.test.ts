import { expect } from 'chai';
import type { AddressLease } from '../../api/address-lease.js';
import { Client } from '../../kube/client.js';
import { isInvalid } from '../../kube/errors.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { requestErrorOf } from '../request-error.js';
import { LEASE_CHANGES } from '../objects/lease-changes.js';
import { LeaseServer } from './lease-server.js';

const NAME = 'blue.10-1-0-17';
const LEASE: AddressLease = {
  metadata: { name: NAME },
  spec: { address: '10.1.0.17', addressSpace: 'blue', pool: 'blue' },
};

describe("leases on the model's API server, as on a real one,", () => {
  let client: Client;

  beforeEach(() => {
    client = new Client(new LeaseServer());
  });

  for (const { name, from, to, expect: words = [] } of LEASE_CHANGES) {
    it(name, async () => {
      await client.create(ADDRESS_LEASES, { ...LEASE, spec: { ...LEASE.spec, ...from } });
      const attempt = client.patch(ADDRESS_LEASES, { name: NAME }, { type: 'merge', body: { spec: to } });
      if (words.length === 0) {
        await attempt;
        return;
      }
      const refusal = await requestErrorOf(attempt);
      expect(isInvalid(refusal)).to.equal(true);
      for (const word of words) expect(refusal.message).to.include(word);
    });
  }
});
