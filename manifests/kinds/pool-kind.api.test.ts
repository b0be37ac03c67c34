import { join } from 'node:path';
import { expect } from 'chai';
import type { AddressPool, AddressPoolSpec } from '../../api/address-pool.js';
import type { ControlPlane } from '../../bed/control-plane/control-plane.js';
import { type Manifest, readManifests, resourceOf } from '../../bed/control-plane/objects.js';
import { MANIFESTS } from '../../bed/holdfast/manifests.js';
import { compilePool } from '../../addressing/pool/pool.js';
import { ADDRESS_POOLS } from '../../kube/resources.js';
import { expectSchemaResult, readTable, useServerWithKind } from '../testing/kind-server.js';
import { GUEST_CASES } from '../testing/guest-cases.js';
import { LARGEST_POOL, POOL_CASES, V4, V6 } from '../testing/pool-cases.js';

function pool(name: string, spec: Partial<AddressPoolSpec>): AddressPool {
  return { metadata: { name }, spec: { network: 'blue', subnets: [V4], ...spec } };
}

describe('AddressPools, on a kube-apiserver', function () {
  let plane: ControlPlane;
  useServerWithKind(this, ADDRESS_POOLS, (started) => (plane = started));

  describe('may have', () => {
    for (const { name, given, expect: words } of POOL_CASES) {
      it(name, async () => {
        const attempt = plane.client.create(ADDRESS_POOLS, pool('blue', given), { dryRun: true });
        await expectSchemaResult(attempt, words);
        // the reconciler rejects what the CEL rules reject, except names that only CNI rejects
        if (words?.some((word) => word.includes('CNI'))) return;
        expect(compilePool(pool('blue', given)).ok).to.equal(words === undefined);
      });
    }

    for (const { name, given, expect: words } of GUEST_CASES) {
      it(name, async () => {
        const spec = { subnets: [V4, V6], guest: given };
        await expectSchemaResult(plane.client.create(ADDRESS_POOLS, pool('blue', spec), { dryRun: true }), words);
        expect(compilePool(pool('blue', spec)).ok).to.equal(words === undefined);
      });
    }

    it('all that the schema allows, at a CEL cost that the server accepts', async () => {
      await plane.client.create(ADDRESS_POOLS, pool('largest', LARGEST_POOL), { dryRun: true });
    });

    it('texts of twice the length within the CEL cost limit, because other versions of the server may count differently', async () => {
      const [definition] = await readManifests(join(MANIFESTS, 'crds', 'addresspools.yaml'));
      const twice = JSON.parse(
        JSON.stringify(definition, (key, value: unknown) => (key === 'maxLength' ? Number(value) * 2 : value)),
      ) as Manifest;
      await plane.client.patch(
        resourceOf(twice),
        { name: twice.metadata.name },
        { type: 'merge', body: twice },
        { dryRun: true },
      );
    });
  });

  describe('after they are created', () => {
    beforeEach(() => plane.client.create(ADDRESS_POOLS, pool('green', { network: 'green' })));
    afterEach(() => plane.client.delete(ADDRESS_POOLS, { name: 'green' }));

    const changes: { name: string; to: Partial<AddressPoolSpec>; expect?: string[] }[] = [
      { name: 'accept other subnets', to: { subnets: [V4, V6] } },
      {
        name: 'keep the name of their network',
        to: { network: 'red' },
        expect: ['spec.network', 'network cannot change from green to red: create another pool'],
      },
      {
        name: 'keep the name of their address space',
        to: { addressSpace: 'red' },
        expect: ['spec.addressSpace', 'addressSpace cannot change from green to red: create another pool'],
      },
      { name: 'accept their default address space as an explicit value', to: { addressSpace: 'green' } },
    ];
    for (const { name, to, expect: words } of changes) {
      it(name, async () => {
        const patch = { type: 'merge', body: { spec: to } } as const;
        const attempt = plane.client.patch(ADDRESS_POOLS, { name: 'green' }, patch);
        await expectSchemaResult(attempt, words);
      });
    }

    it('have a status subresource', async () => {
      const blocks = { total: 2 ** 53 - 1, full: 1, lent: 3, current: '10.1.0.64/26' };
      const counts = { capacity: 2 ** 53 - 1, leased: 1, heldByStopped: 0, cooling: 0, free: 5, reserved: 0 };
      const { heldByStopped: _stopped, ...ipv4 } = counts;
      const status = { ...counts, ipv4, ipv6: ipv4, blocks };
      const patch = { type: 'merge', body: { status, spec: { cooldownSeconds: 5 } } } as const;
      const ref = { name: 'green' };
      expect((await plane.client.patch(ADDRESS_POOLS, ref, patch)).status).to.equal(undefined);
      const body = { status, spec: { cooldownSeconds: 7 } };
      const after = await plane.client.patch(ADDRESS_POOLS, ref, { type: 'merge', body }, { subresource: 'status' });
      expect(after.status).to.deep.equal(status);
      expect(after.spec.cooldownSeconds).to.equal(5);
    });

    it('show in a table how full they are', async () => {
      const body = { spec: { subnets: [V4, V6] } };
      await plane.client.patch(ADDRESS_POOLS, { name: 'green' }, { type: 'merge', body });
      const { shown, all, rows } = await readTable(plane.client, ADDRESS_POOLS);
      expect(shown.join(' ')).to.equal(
        'Name Network NADs Capacity Leased Free IPv4 Free IPv6 Stopped Cooling Ready Age',
      );
      expect(all).to.include('Lent');
      expect(rows.flat()).to.include.members(['green', V4.cidr, V6.cidr]);
    });
  });
});
