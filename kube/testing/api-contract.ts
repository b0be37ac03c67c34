import { expect } from 'chai';
import type { AddressBlock } from '../../api/address-block.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { KubeObject } from '../../api/meta.js';
import { requestErrorOf } from '../../test/request-error.js';
import type { Client, ListResult, Patch } from '../client.js';
import { isAlreadyExists, isConflict, isInvalid, isNotFound, type StatusError } from '../errors.js';
import { ADDRESS_BLOCKS, CONFIG_MAPS, IPAM_CLAIMS } from '../resources.js';
import type { Resource } from '../resource.js';
import { describeWatchContract } from './watch-contract.js';

const NAMESPACE = 'default';
let serial = 0;

/**
 * The rules of kube-apiserver that Holdfast relies on, as tests. A server whose tests use it must serve ConfigMaps, IPAMClaims and AddressBlocks.
 * @param clientOf called when a test runs
 */
export function describeApiContract(clientOf: () => Client): void {
  let client: Client;
  let name: string;
  let ref: { namespace: string; name: string };
  /** Selects the objects of one test. */
  let labelSelector: string;

  beforeEach(() => {
    client = clientOf();
    name = `object-${++serial}`;
    ref = { namespace: NAMESPACE, name };
    labelSelector = `test=${name}`;
  });

  const claim = (more: Partial<KubeObject['metadata']> = {}, network = 'blue'): IPAMClaim => ({
    metadata: { ...ref, labels: { test: name }, ...more },
    spec: { network, interface: 'net1' },
  });
  const create = (more: Partial<KubeObject['metadata']> = {}, network?: string) =>
    client.create(IPAM_CLAIMS, claim(more, network));
  const merge = (body: object, subresource?: 'status') =>
    client.patch(IPAM_CLAIMS, ref, { type: 'merge', body }, subresource === undefined ? {} : { subresource });
  const refused = async (answer: Promise<unknown>) => (await requestErrorOf(answer)) as StatusError;
  const label = (value: string | null) => ({ metadata: { labels: { state: value } } });

  describe('names', () => {
    it('are taken once, and a new object of the same name has another UID', async () => {
      const { metadata } = await create();
      const error = await refused(create());
      expect(isAlreadyExists(error)).to.equal(true);
      expect(error.details).to.include({ name, kind: 'ipamclaims', group: 'k8s.cni.cncf.io' });
      await client.delete(IPAM_CLAIMS, ref);
      expect((await create()).metadata.uid).not.to.equal(metadata.uid);
    });

    it('are completed by the server if only a prefix is given', async () => {
      const { name: _name, ...metadata } = claim({ generateName: `${name}-` }).metadata;
      const made = await client.create(IPAM_CLAIMS, { ...claim(), metadata: metadata as KubeObject['metadata'] });
      expect(made.metadata.name).to.match(new RegExp(`^${name}-.+`));
    });

    it('of objects that do not exist are in the answer', async () => {
      const error = await refused(client.get(IPAM_CLAIMS, ref));
      expect([isNotFound(error), error.reason]).to.deep.equal([true, 'NotFound']);
      expect(error.details).to.include({ name, kind: 'ipamclaims', group: 'k8s.cni.cncf.io' });
      expect(isNotFound(await refused(merge({ spec: { network: 'red' } })))).to.equal(true);
      await client.delete(IPAM_CLAIMS, ref);
    });
  });

  describe('a write', () => {
    it('with another resourceVersion or UID than the stored one is a conflict', async () => {
      const old = await create();
      const { metadata } = await merge({ spec: { network: 'red' } });
      const { uid, resourceVersion } = old.metadata;
      const another = { ...metadata, uid: 'another' };
      const stale: Record<string, () => Promise<unknown>> = {
        'PUT, version': () => client.replace(IPAM_CLAIMS, old),
        'PUT, UID': () => client.replace(IPAM_CLAIMS, { ...old, metadata: another }),
        'PATCH, version': () => merge({ metadata: { uid, resourceVersion }, spec: { network: 'green' } }),
        'PATCH, both': () => merge({ metadata: { uid: 'another', resourceVersion }, spec: { network: 'green' } }),
        'DELETE, version': () => client.delete(IPAM_CLAIMS, ref, { resourceVersion }),
        'DELETE, version with the right UID': () => client.delete(IPAM_CLAIMS, ref, { uid, resourceVersion }),
        'DELETE, UID': () => client.delete(IPAM_CLAIMS, ref, { uid: 'another' }),
      };
      for (const [what, write] of Object.entries(stale)) {
        const error = await refused(write());
        expect([isConflict(error), error.reason], what).to.deep.equal([true, 'Conflict']);
      }
      const current = { uid: metadata.uid, resourceVersion: metadata.resourceVersion };
      await merge({ metadata: current, spec: { network: 'green' } });
      expect(await client.delete(IPAM_CLAIMS, ref, { uid: metadata.uid })).to.equal(undefined);
      expect(await client.find(IPAM_CLAIMS, ref)).to.equal(undefined);
    });

    it('is invalid if only the UID of a patch differs, but a patch of the status ignores it', async () => {
      const { metadata } = await create();
      expect(isInvalid(await refused(merge({ metadata: { uid: 'another' } })))).to.equal(true);
      const patched = await merge({ metadata: { uid: 'another' }, status: { ips: [] } }, 'status');
      expect([patched.metadata.uid, patched.status]).to.deep.equal([metadata.uid, { ips: [] }]);
    });

    it('without an effect keeps the resourceVersion', async () => {
      const { metadata } = await create();
      expect((await merge({ spec: { network: 'blue' } })).metadata.resourceVersion).to.equal(metadata.resourceVersion);
    });

    it('as a JSON patch is invalid if a test in it fails', async () => {
      await create();
      const patch = (was: string): Patch => ({
        type: 'json',
        operations: [
          { op: 'test', path: '/spec/network', value: was },
          { op: 'replace', path: '/spec/network', value: 'red' },
        ],
      });
      expect(isInvalid(await refused(client.patch(IPAM_CLAIMS, ref, patch('green'))))).to.equal(true);
      expect((await client.patch(IPAM_CLAIMS, ref, patch('blue'))).spec.network).to.equal('red');
    });

    it('as a merge patch removes fields that are null', async () => {
      await create({ annotations: { a: '1', b: '2' } });
      const { metadata } = await merge({ metadata: { annotations: { a: null, c: '3' } } });
      expect(metadata.annotations).to.deep.equal({ b: '2', c: '3' });
    });

    it('as a dry run is answered and not stored', async () => {
      const dryRun = { dryRun: true };
      await client.create(IPAM_CLAIMS, claim(), dryRun);
      expect(await client.find(IPAM_CLAIMS, ref)).to.equal(undefined);
      const { metadata } = await create();
      const changed = await client.patch(
        IPAM_CLAIMS,
        ref,
        { type: 'merge', body: { spec: { network: 'red' } } },
        dryRun,
      );
      expect(changed.spec.network).to.equal('red');
      expect((await client.get(IPAM_CLAIMS, ref)).metadata.resourceVersion).to.equal(metadata.resourceVersion);
    });
  });

  describe('an object with finalizers', () => {
    const remove = (finalizers: string[] | null) => merge({ metadata: { finalizers } });

    it('exists after it is deleted until the last one is removed', async () => {
      await create({ finalizers: ['holdfast.dev/a', 'holdfast.dev/b'] });
      const answer = await client.delete(IPAM_CLAIMS, ref);
      const { metadata } = await client.get(IPAM_CLAIMS, ref);
      expect(answer?.metadata).to.deep.equal(metadata);
      expect(metadata.deletionTimestamp).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      await client.delete(IPAM_CLAIMS, ref);
      expect((await client.get(IPAM_CLAIMS, ref)).metadata.resourceVersion).to.equal(metadata.resourceVersion);
      await remove(['holdfast.dev/b']);
      await remove(null);
      expect(await client.find(IPAM_CLAIMS, ref)).to.equal(undefined);
    });

    it('gets no new one after it is deleted', async () => {
      await create({ finalizers: ['holdfast.dev/a'] });
      await client.delete(IPAM_CLAIMS, ref);
      expect(isInvalid(await refused(remove(['holdfast.dev/a', 'holdfast.dev/b'])))).to.equal(true);
      await remove(null);
    });

    it('gets one more if it is deleted in the foreground, or without its dependents', async () => {
      for (const [propagationPolicy, finalizer] of [
        ['Foreground', 'foregroundDeletion'],
        ['Orphan', 'orphan'],
      ] as const) {
        // oxfmt-ignore
        // the real garbage collector would remove it at once, but does not run without a controller manager
        await create();
        await client.delete(IPAM_CLAIMS, ref, { propagationPolicy });
        expect((await client.get(IPAM_CLAIMS, ref)).metadata.finalizers).to.deep.equal([finalizer]);
        await remove(null);
      }
    });
  });

  describe('the status', () => {
    const status = { ips: ['10.0.0.5/24'] };

    it('is written alone, and only through its subresource', async () => {
      const made = await client.create(IPAM_CLAIMS, { ...claim(), status });
      expect(made.status).to.equal(undefined);
      const patched = await merge({ ...label('ready'), spec: { network: 'red' }, status }, 'status');
      expect([patched.spec.network, patched.status, patched.metadata.labels?.state]).to.deep.equal(['blue', status, undefined]); // oxfmt-ignore
      const changed = await merge({ spec: { network: 'red' }, status: { ips: [] } });
      expect([changed.spec.network, changed.status]).to.deep.equal(['red', status]);
      const replaced = await client.replace(IPAM_CLAIMS, { ...changed, spec: { ...changed.spec, network: 'green' }, status: { ips: [] } }, { subresource: 'status' }); // oxfmt-ignore
      expect([replaced.spec.network, replaced.status]).to.deep.equal(['red', { ips: [] }]);
    });

    it('of a kind without the subresource is not found', async () => {
      await client.create(CONFIG_MAPS, { metadata: ref });
      const patch = { type: 'merge', body: { data: { a: '1' } } } as const;
      expect(isNotFound(await refused(client.patch(CONFIG_MAPS, ref, patch, { subresource: 'status' })))).to.equal(
        true,
      );
    });

    it('and metadata do not count for the generation, but the spec and the deletion do', async () => {
      const generations = [await create({ finalizers: ['holdfast.dev/a'] }), await merge({ status }, 'status')];
      generations.push(await merge(label('ready')), await merge({ spec: { network: 'red' } }));
      await client.delete(IPAM_CLAIMS, ref);
      generations.push(await client.get(IPAM_CLAIMS, ref), await merge({ metadata: { finalizers: null } }));
      expect(generations.map(({ metadata }) => metadata.generation)).to.deep.equal([1, 1, 1, 2, 3, 3]);
    });
  });

  describe('server-side apply', () => {
    const apply = (fieldManager: string, data: Record<string, string>, force = false) => {
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: ref, data };
      return client.patch(CONFIG_MAPS, ref, { type: 'apply', object, fieldManager, force });
    };

    it('creates an object, and removes a field that its only manager no longer applies', async () => {
      await apply('a', { x: '1', y: '1' });
      await apply('b', { y: '1', z: '1' });
      expect((await apply('a', {})).data).to.deep.equal({ y: '1', z: '1' });
      expect((await apply('b', { z: '2' })).data).to.deep.equal({ z: '2' });
    });

    it('is a conflict if it changes the field of another manager, unless it is forced', async () => {
      await apply('a', { x: '1' });
      const error = await refused(apply('b', { x: '2' }));
      expect([isConflict(error), error.reason]).to.deep.equal([true, 'Conflict']);
      expect((await apply('b', { x: '2' }, true)).data).to.deep.equal({ x: '2' });
      expect(isConflict(await refused(apply('a', { x: '1' })))).to.equal(true);
      expect((await apply('a', {})).data).to.deep.equal({ x: '2' });
    });
  });

  describe('a list', () => {
    const names = async (resource: Resource, selectors: object) =>
      (await client.list(resource, { namespace: NAMESPACE, ...selectors })).items.map(({ metadata }) => metadata.name);

    it('is sorted by name and shows in all its pages what there was at the first one', async () => {
      for (const suffix of ['c', 'a', 'b']) await create({ name: `${name}-${suffix}` });
      const pages = client.pages(IPAM_CLAIMS, { namespace: NAMESPACE, labelSelector, pageSize: 2 });
      const next = async () => (await pages.next()).value as ListResult<IPAMClaim>;
      const first = await next();
      await client.delete(IPAM_CLAIMS, { ...ref, name: `${name}-c` });
      await create({ name: `${name}-d` });
      const second = await next();
      const found = [first, second].map(({ items }) => items.map(({ metadata }) => metadata.name));
      expect(found).to.deep.equal([[`${name}-a`, `${name}-b`], [`${name}-c`]]);
      expect(second.resourceVersion).to.equal(first.resourceVersion);
      expect((await pages.next()).done).to.equal(true);
    });

    it('has only the objects of its namespace', async () => {
      await create();
      expect(await names(IPAM_CLAIMS, { labelSelector, namespace: 'kube-system' })).to.deep.equal([]);
      expect(await names(IPAM_CLAIMS, { labelSelector, namespace: undefined })).to.deep.equal([name]);
    });

    it('has only metadata if only they are asked for', async () => {
      await create();
      const { items } = await client.list(IPAM_CLAIMS, { namespace: NAMESPACE, labelSelector, metadataOnly: true });
      expect(items.map((item) => [item.metadata.name, item.spec as unknown])).to.deep.equal([[name, undefined]]);
    });

    it('selects by labels', async () => {
      const states = { a: 'ready', b: 'waiting', c: undefined };
      for (const [suffix, state] of Object.entries(states))
        await create({ name: `${name}-${suffix}`, labels: { test: name, ...(state && { state }) } });
      const selected = async (selector: string) =>
        (await names(IPAM_CLAIMS, { labelSelector: `${labelSelector},${selector}` }))
          .map((each) => each.slice(-1))
          .join('');
      const expected = { 'state=ready': 'a', 'state==ready': 'a', 'state!=ready': 'bc', state: 'ab', '!state': 'c', 'state in (ready,waiting)': 'ab', 'state notin (ready)': 'bc' }; // oxfmt-ignore
      const found = await Promise.all(Object.keys(expected).map(selected));
      expect(found).to.deep.equal(Object.values(expected));
    });

    it('selects by fields', async () => {
      const block = (node: string): AddressBlock => ({
        metadata: { name: `${name}-${node}`, labels: { test: name } },
        spec: { pool: 'blue', cidr: '10.1.0.64/26', node: `${name}-${node}` },
      });
      await client.create(ADDRESS_BLOCKS, block('n1'));
      await client.create(ADDRESS_BLOCKS, block('n2'));
      const selected = (fieldSelector: string) => names(ADDRESS_BLOCKS, { namespace: undefined, labelSelector, fieldSelector }); // oxfmt-ignore
      expect(await selected(`spec.node=${name}-n1`)).to.deep.equal([`${name}-n1`]);
      expect(await selected(`spec.node!=${name}-n1`)).to.deep.equal([`${name}-n2`]);
      expect(await selected(`spec.node=${name}-n1,spec.pool=red`)).to.deep.equal([]);
      expect(await selected(`metadata.name=${name}-n2`)).to.deep.equal([`${name}-n2`]);
      expect((await refused(selected('spec.cidr=10.1.0.64/26'))).status).to.equal(400);
    });
  });

  describe('a watch', () => describeWatchContract(clientOf));
}
