import { expect } from 'chai';
import type { AddressPool } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { ObjectMeta } from '../../api/meta.js';
import {
  CLAIM_FINALIZER,
  CLAIM_NAD,
  CLAIM_OWNER_UID,
  CLAIM_REQUESTED_ADDRESSES,
  POOL_NAD_NAMESPACE,
  RESPONDERS_NAMESPACE,
} from '../../api/names.js';
import { createAll } from '../../bed/control-plane/objects.js';
import { until } from '../../bed/processes/wait.js';
import type { Client } from '../../kube/client.js';
import { ADDRESS_POOLS, CONFIG_MAPS, IPAM_CLAIMS } from '../../kube/resources.js';
import { grantClaims } from '../testing/claim-grant.js';
import { type PolicyCluster, expectDenial, untilDenied, usePolicyCluster } from '../testing/policy-cluster.js';

const WHO = {
  /** May write claims, with their status, in one namespace. */
  tenant: 'tenant',
  controller: 'system:serviceaccount:holdfast-system:holdfast-controller',
  ipam: 'system:serviceaccount:holdfast-system:holdfast-ipam',
  namesake: 'system:serviceaccount:default:holdfast-ipam',
  guest: 'system:serviceaccount:holdfast-system:holdfast-guest',
  guestNamesake: 'system:serviceaccount:default:holdfast-guest',
  collector: 'system:serviceaccount:kube-system:generic-garbage-collector',
  /** May write the status of claims in the whole cluster, and nothing else. */
  stranger: 'system:serviceaccount:ovn-kubernetes:ovnkube-cluster-manager',
} as const;
type Person = keyof typeof WHO;

const NAMESPACE = 'default';

function pool(name: string, spec: Partial<AddressPool['spec']>, metadata: Partial<ObjectMeta> = {}): AddressPool {
  return { metadata: { ...metadata, name }, spec: { network: name, subnets: [{ cidr: '10.0.0.0/24' }], ...spec } };
}

/** Of a pool that was derived from NADs of a namespace. */
function derivedFrom(namespace: string): Partial<ObjectMeta> {
  return { annotations: { [POOL_NAD_NAMESPACE]: namespace }, labels: { [POOL_NAD_NAMESPACE]: namespace } };
}

describe('the admission policies for claims on the networks of pools, on a kube-apiserver', function () {
  let cluster: PolicyCluster;
  let count = 0;

  const as = (person: Person): Promise<Client> => cluster.asRestricted(WHO[person]);

  async function createClaim(network: string, nad?: string): Promise<IPAMClaim> {
    count += 1;
    const annotations = { [CLAIM_OWNER_UID]: 'u-1', ...(nad === undefined ? {} : { [CLAIM_NAD]: nad }) };
    const ownerReferences = [{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'vm1', uid: 'u-1' }];
    const metadata = { name: `claim-${count}`, namespace: NAMESPACE, annotations, finalizers: [CLAIM_FINALIZER] };
    const spec = { network, interface: 'net1' };
    return (await as('controller')).create(IPAM_CLAIMS, { metadata: { ...metadata, ownerReferences }, spec });
  }

  async function patchClaim(person: Person, claim: IPAMClaim, body: object, subresource?: 'status'): Promise<unknown> {
    const options = subresource === undefined ? {} : { subresource };
    return (await as(person)).patch(IPAM_CLAIMS, claim.metadata, { type: 'merge', body }, options);
  }

  async function writeStatus(person: Person, network: string, nad?: string): Promise<unknown> {
    const claim = await createClaim(network, nad);
    return patchClaim(person, claim, { status: { ips: ['10.0.0.5/24'] } }, 'status');
  }

  async function nameStatusWriters(statusWriters: string): Promise<void> {
    const ref = { namespace: 'holdfast-system', name: 'holdfast-policies' };
    await cluster.admin.patch(CONFIG_MAPS, ref, { type: 'merge', body: { data: { statusWriters } } });
  }

  usePolicyCluster(this, async (started) => {
    cluster = started;
    const tenants = grantClaims('claim-editors', [WHO.tenant], ['ipamclaims', 'ipamclaims/status']);
    const strangers = grantClaims(
      'status-writers',
      [WHO.stranger, WHO.namesake, WHO.guest, WHO.guestNamesake],
      ['ipamclaims/status'],
    );
    const { admin } = cluster;
    await createAll(admin, [tenants.role, tenants.here, strangers.role, strangers.everywhere]);
    await admin.create(ADDRESS_POOLS, pool('blue', {}));
    await admin.create(ADDRESS_POOLS, pool('green', { namespaces: ['elsewhere'] }));
    await admin.create(ADDRESS_POOLS, pool('white', { namespaces: ['elsewhere', NAMESPACE] }));
    const ipam = await as('ipam');
    await ipam.create(ADDRESS_POOLS, pool('red.nads', { network: 'red' }, derivedFrom('nads')));
    await ipam.create(ADDRESS_POOLS, pool('grey.default', { network: 'grey' }, derivedFrom(NAMESPACE)));
    await cluster.listNetworks();
  });

  describe('for the status of claims', () => {
    const cases: { name: string; network: string; nad?: string; guarded: boolean }[] = [
      { name: 'on the network of a pool that serves all namespaces', network: 'blue', guarded: true },
      { name: 'on that network, with any NAD', network: 'blue', nad: 'elsewhere/blue', guarded: true },
      { name: 'on the network of a pool that serves their namespace', network: 'white', guarded: true },
      { name: 'on the network of a pool that serves other namespaces', network: 'green', guarded: false },
      { name: 'with a NAD in the namespace of a derived pool', network: 'red', nad: 'nads/b', guarded: true },
      { name: 'with a NAD in another namespace', network: 'red', nad: 'nads2/b', guarded: false },
      { name: 'without a NAD, in another namespace than the derived pool', network: 'red', guarded: false },
      { name: 'without a NAD, in the namespace of a derived pool', network: 'grey', guarded: true },
      { name: 'on a network without a pool', network: 'black', guarded: false },
    ];
    for (const { name, network, nad, guarded } of cases) {
      it(`${name} is written by ${guarded ? 'Holdfast only' : 'users whom RBAC allows'}`, async () => {
        const words = `serves the network ${network}: only Holdfast writes the status`;
        if (guarded) await untilDenied(() => writeStatus('tenant', network, nad));
        for (const person of ['tenant', 'stranger', 'namesake'] as const) {
          await expectDenial(writeStatus(person, network, nad), guarded ? words : undefined);
        }
        await expectDenial(writeStatus('ipam', network, nad), undefined);
      });
    }

    it('of a responder is written by Holdfast only, also if the pool of the responder serves other namespaces', async () => {
      const guest = { attachment: 'brown', dhcp: {} };
      await cluster.admin.create(ADDRESS_POOLS, pool('brown', { namespaces: ['elsewhere'], guest }));
      await cluster.listNetworks();
      await createAll(cluster.admin, [
        { apiVersion: 'v1', kind: 'Namespace', metadata: { name: RESPONDERS_NAMESPACE } },
      ]);
      const write = async (network: string) => {
        const metadata = { name: `server-${network}`, namespace: RESPONDERS_NAMESPACE };
        await cluster.admin.delete(IPAM_CLAIMS, metadata);
        const claim = await cluster.admin.create(IPAM_CLAIMS, { metadata, spec: { network, interface: 'guest0' } });
        return patchClaim('stranger', claim, { status: { ips: ['10.0.0.5/24'] } }, 'status');
      };
      await untilDenied(() => write('brown'));
      await expectDenial(write('brown'), 'serves the network brown: only Holdfast writes the status');
      await expectDenial(write('green'), undefined);
    });

    it('a cluster administrator may write it', async () => {
      const { metadata } = await createClaim('blue');
      const patch = { type: 'merge', body: { status: { ips: [] } } } as const;
      await expectDenial(cluster.admin.patch(IPAM_CLAIMS, metadata, patch, { subresource: 'status' }), undefined);
    });

    describe('by the guest process of Holdfast', () => {
      const REFUSAL = 'and it writes nothing else';
      const condition = (type: string, status = 'True') => ({
        ...{ type, status, reason: 'Test', message: 'a test', lastTransitionTime: '2026-01-01T00:00:00Z' },
      });
      const ALLOCATED = condition('IPsAllocated');
      const ips = ['10.0.0.5/24'];
      let claim: IPAMClaim;

      const write = (status: object, person: Person = 'guest') => patchClaim(person, claim, { status }, 'status');

      before(async () => {
        claim = await createClaim('blue');
        await patchClaim(
          'ipam',
          claim,
          { status: { ips, ownerPod: { name: 'p' }, conditions: [ALLOCATED] } },
          'status',
        );
        await untilDenied(() => write({ ips: [] }));
      });

      for (const network of ['blue', 'black']) {
        it(`may be changed in its three conditions on the network ${network}`, async () => {
          claim = await createClaim(network);
          await patchClaim('ipam', claim, { status: { ips, conditions: [ALLOCATED] } }, 'status');
          const own = ['GuestConfigured', 'GuestServed', 'NetworkDataWritten'].map((type) => condition(type));
          await expectDenial(write({ conditions: [ALLOCATED, ...own] }), undefined);
          await expectDenial(write({ conditions: [condition('GuestServed', 'False'), ALLOCATED] }), undefined);
          await expectDenial(write({ conditions: [ALLOCATED] }), undefined);
        });
      }

      const refused: { name: string; status: object }[] = [
        { name: 'addresses', status: { ips: ['10.0.0.6/24'] } },
        { name: 'owner pod', status: { ownerPod: { name: 'q' } } },
        { name: 'condition IPsAllocated', status: { conditions: [condition('IPsAllocated', 'False')] } },
        { name: 'lack of other conditions', status: { conditions: [ALLOCATED, condition('GuestServedX')] } },
        { name: 'existence of other conditions', status: { conditions: [condition('GuestServed')] } },
      ];
      for (const { name, status } of refused) {
        it(`may not be changed in its ${name}`, () => expectDenial(write(status), REFUSAL));
      }

      it('may not be created', async () => {
        claim = await createClaim('blue');
        await expectDenial(write({ ips: [], conditions: [condition('GuestServed')] }), REFUSAL);
      });

      it('may not be changed by a service account of its name in another namespace', async () => {
        for (const network of ['blue', 'black']) {
          claim = await createClaim(network);
          await patchClaim('ipam', claim, { status: { ips } }, 'status');
          await expectDenial(write({ conditions: [condition('GuestServed')] }, 'guestNamesake'), REFUSAL);
        }
      });
    });

    it('another IPAM writes it only if RBAC allows it to serve that pool', async () => {
      const rules = [
        { apiGroups: ['ipam.holdfast.dev'], resources: ['addresspools'], resourceNames: ['blue'], verbs: ['serve'] },
      ];
      const { role, everywhere } = grantClaims('blue-servers', [WHO.stranger], []);
      await createAll(cluster.admin, [{ ...role, rules }, everywhere]);
      await until('the role is in force', () => writeStatus('stranger', 'blue'));
      await expectDenial(writeStatus('stranger', 'white'), 'serves the network white');
      await expectDenial(writeStatus('tenant', 'blue'), 'serves the network blue');
    });

    it('Holdfast writes it on all networks, even if statusWriters names other users', async () => {
      await nameStatusWriters(`${WHO.stranger}\n`);
      await untilDenied(() => writeStatus('tenant', 'black'));
      for (const network of ['black', 'white']) await expectDenial(writeStatus('ipam', network), undefined);
      await expectDenial(writeStatus('namesake', 'black'), 'not listed in statusWriters');
      await expectDenial(writeStatus('stranger', 'white'), 'serves the network white');
      await nameStatusWriters('');
      await until('the list is empty again', () => writeStatus('tenant', 'black'));
    });
  });

  describe('for claims on the network of a pool', () => {
    const changes: { name: string; as: Person; to: object; expect?: string }[] = [
      { name: 'a tenant writes other annotations', as: 'tenant', to: { metadata: { annotations: { note: 'mine' } } } },
      {
        name: 'a tenant cannot remove an owner',
        as: 'tenant',
        to: { metadata: { ownerReferences: [] } },
        expect: 'only Holdfast writes the owner',
      },
      {
        name: 'a tenant cannot remove the finalizer of Holdfast',
        as: 'tenant',
        to: { metadata: { finalizers: [] } },
        expect: 'only Holdfast sets and removes the finalizer',
      },
      {
        name: 'a tenant cannot change the network',
        as: 'tenant',
        to: { spec: { network: 'black' } },
        expect: 'only Holdfast changes the spec',
      },
      {
        name: 'a tenant cannot request addresses in the claim',
        as: 'tenant',
        to: { metadata: { annotations: { [CLAIM_REQUESTED_ADDRESSES]: '["10.0.0.9"]' } } },
        expect: 'only Holdfast writes the annotations',
      },
      {
        name: 'a tenant cannot move a claim to another NAD',
        as: 'tenant',
        to: { metadata: { annotations: { [CLAIM_NAD]: 'elsewhere/blue' } } },
        expect: 'only Holdfast writes the annotations',
      },
      { name: 'the garbage collector removes owners', as: 'collector', to: { metadata: { ownerReferences: [] } } },
      {
        name: 'the IPAM of Holdfast cannot write metadata',
        as: 'ipam',
        to: { metadata: { finalizers: [] } },
        expect: 'cannot patch resource "ipamclaims"',
      },
      {
        name: 'the IPAM of Holdfast cannot write the spec',
        as: 'ipam',
        to: { spec: { interface: 'net2' } },
        expect: 'cannot patch resource "ipamclaims"',
      },
    ];
    for (const change of changes) {
      it(change.name, async () => {
        const claim = await createClaim('blue', 'default/blue');
        await expectDenial(patchClaim(change.as, claim, change.to), change.expect);
      });
    }

    it('a write of the status changes no other field', async () => {
      const claim = await createClaim('blue', 'default/blue');
      const body = { metadata: { finalizers: [] }, spec: { network: 'black' }, status: { ips: ['10.0.0.5/24'] } };
      await patchClaim('ipam', claim, body, 'status');
      const written = await cluster.admin.get(IPAM_CLAIMS, claim.metadata);
      expect(written.spec).to.deep.equal(claim.spec);
      expect(written.metadata.finalizers).to.deep.equal(claim.metadata.finalizers);
      expect(written.status?.ips).to.deep.equal(['10.0.0.5/24']);
    });

    it('the garbage collector deletes them', async () => {
      const { metadata } = await createClaim('blue');
      await expectDenial((await as('collector')).delete(IPAM_CLAIMS, metadata), undefined);
      expect((await cluster.admin.get(IPAM_CLAIMS, metadata)).metadata.deletionTimestamp).to.be.a('string');
    });
  });
});
