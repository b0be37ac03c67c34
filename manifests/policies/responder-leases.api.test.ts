import { expect } from 'chai';
import type { AddressLease } from '../../api/address-lease.js';
import { PROBE_ANNOTATION } from '../../api/names.js';
import type { Client } from '../../kube/client.js';
import { isForbidden } from '../../kube/errors.js';
import { ADDRESS_LEASES, ADDRESS_POOLS, IPAM_CLAIMS, SECRETS, STATEFUL_SETS } from '../../kube/resources.js';
import { newLease } from '../../test/objects/lease-objects.js';
import { type PolicyCluster, expectDenial, untilDenied, usePolicyCluster } from '../testing/policy-cluster.js';

const TAKEN = 'taken 02:00:00:00:00:99';
const REQUESTED = 'blue.10-0-0-2';
const UNASKED = 'nobody asks whether another host has';
const OTHER_FIELDS = 'changes only the annotation ipam.holdfast.dev/probe';
const OTHER_RESULT = 'writes "free", "self", or "taken" with the MAC address of the other host';

function lease(address: string, state?: string): AddressLease {
  const { metadata, spec } = newLease(address);
  const annotations = { note: 'x', ...(state !== undefined && { [PROBE_ANNOTATION]: state }) };
  return { metadata: { ...metadata, annotations }, spec };
}

describe('the admission policy for leases that responders write, on a kube-apiserver', function () {
  let admin: Client;
  /** A client with the shipped rights. */
  let responder: Client;
  /** The same user with all rights by RBAC. */
  let mighty: Client;

  usePolicyCluster(this, async (cluster: PolicyCluster) => {
    ({ admin } = cluster);
    responder = await cluster.withToken({ namespace: 'holdfast-responders', name: 'holdfast-responder' });
    mighty = await cluster.as('system:serviceaccount:holdfast-responders:holdfast-responder');
    const pod = lease('10.0.0.4', 'requested');
    pod.spec.owner = { ...pod.spec.owner!, kind: 'Pod' };
    pod.metadata.labels = { ...pod.metadata.labels, 'ipam.holdfast.dev/owner-kind': 'Pod' };
    const released = lease('10.0.0.5', 'requested');
    released.spec.releasedAt = '2026-01-01T00:00:00Z';
    for (const each of [lease('10.0.0.2', 'requested'), lease('10.0.0.3'), pod, released])
      await admin.create(ADDRESS_LEASES, each);
    await untilDenied(() => answer('blue.10-0-0-3', 'free'));
  });

  const patch = (client: Client, name: string, body: object) =>
    client.patch(ADDRESS_LEASES, { name }, { type: 'merge', body }, { dryRun: true });
  const answer = (name: string, state: string | null) =>
    patch(responder, name, { metadata: { annotations: { [PROBE_ANNOTATION]: state } } });

  for (const state of ['free', 'self', TAKEN]) {
    it(`allows a responder to answer "${state}" to a request`, () => expectDenial(answer(REQUESTED, state), undefined));
  }

  it('allows one answer to each request', async () => {
    await admin.create(ADDRESS_LEASES, lease('10.0.0.6', 'requested'));
    const body = { metadata: { annotations: { [PROBE_ANNOTATION]: 'free' } } };
    await responder.patch(ADDRESS_LEASES, { name: 'blue.10-0-0-6' }, { type: 'merge', body });
    await expectDenial(answer('blue.10-0-0-6', TAKEN), UNASKED);
  });

  const unasked = { 'that is not probed': '3', 'of a pod': '4', 'that is released': '5' };
  for (const [name, number] of Object.entries(unasked)) {
    it(`denies a responder an answer for a lease ${name}`, () =>
      expectDenial(answer(`blue.10-0-0-${number}`, TAKEN), UNASKED));
  }

  for (const state of ['requested', 'skipped', 'taken', 'taken 02:00:00:00:00:9', `${TAKEN} `, '', null]) {
    it(`denies a responder the answer ${JSON.stringify(state)}`, () =>
      expectDenial(answer(REQUESTED, state), OTHER_RESULT));
  }

  const others: Record<string, object> = {
    'the MAC address of the guest': { spec: { mac: '02:00:00:00:00:0a' } },
    'the release of the address': { spec: { releasedAt: '2026-01-01T00:00:00Z' } },
    'a label': { metadata: { labels: { 'ipam.holdfast.dev/pool': 'red' } } },
    'a finalizer': { metadata: { finalizers: ['example.com/x'] } },
    'an owner for the garbage collector': {
      metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'x' }] },
    },
    'another annotation': { metadata: { annotations: { note: 'y' } } },
    'a new annotation': { metadata: { annotations: { more: 'y' } } },
    'the removal of an annotation': { metadata: { annotations: { note: null } } },
  };
  for (const [name, body] of Object.entries(others)) {
    it(`denies a responder ${name} beside the answer`, () => {
      const { metadata = {}, ...rest } = body as { metadata?: { annotations?: object } };
      const annotations = { ...metadata.annotations, [PROBE_ANNOTATION]: 'free' };
      return expectDenial(
        patch(responder, REQUESTED, { ...rest, metadata: { ...metadata, annotations } }),
        OTHER_FIELDS,
      );
    });
  }

  it('denies a responder to create or delete a lease, whatever its rights', async () => {
    await expectDenial(
      mighty.create(ADDRESS_LEASES, lease('10.0.0.7', 'requested'), { dryRun: true }),
      'neither creates',
    );
    await expectDenial(mighty.delete(ADDRESS_LEASES, { name: REQUESTED }), 'nor deletes leases');
  });

  it('does not let a responder write or read more than it needs', async () => {
    const other = { metadata: { name: 'x', namespace: 'holdfast-responders' } };
    const refused = [
      () => responder.list(SECRETS, { namespace: 'holdfast-responders' }),
      () => responder.create(IPAM_CLAIMS, { ...other, spec: { network: 'blue', interface: '' } }, { dryRun: true }),
      () => responder.create(STATEFUL_SETS, other, { dryRun: true }),
      () => responder.create(ADDRESS_LEASES, lease('10.0.0.7'), { dryRun: true }),
      () => responder.delete(ADDRESS_LEASES, { name: REQUESTED }),
      () => responder.patch(ADDRESS_POOLS, { name: 'blue' }, { type: 'merge', body: {} }),
    ];
    for (const attempt of refused) {
      const error: unknown = await attempt().catch((reason: unknown) => reason);
      expect(isForbidden(error)).to.equal(true);
    }
  });

  it('does not concern ipam', () =>
    expectDenial(patch(admin, REQUESTED, { metadata: { annotations: { [PROBE_ANNOTATION]: 'skipped' } } }), undefined));
});
