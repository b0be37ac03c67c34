import { expect } from 'chai';
import { type AddressBlock, type AddressBlockSpec, BlockRelease } from '../../api/address-block.js';
import { BLOCK_FINALIZER } from '../../api/names.js';
import type { ControlPlane } from '../../bed/control-plane/control-plane.js';
import { applyBlockAction } from '../../ipam/blocks/apply.js';
import { BlockBook } from '../../ipam/blocks/block-book.js';
import { blockName } from '../../addressing/block/block.js';
import { parseCidr } from '../../addressing/address/cidr.js';
import { ADDRESS_BLOCKS, NODES } from '../../kube/resources.js';
import { expectSchemaResult, readTable, useServerWithKind } from '../testing/kind-server.js';

const SPEC: AddressBlockSpec = { pool: 'blue', cidr: '10.1.0.64/26', node: 'n1' };
const POOL = 'a'.repeat(253);

function block(spec: Partial<AddressBlockSpec> = {}, name = 'blue.10-1-0-64-26'): AddressBlock {
  return { metadata: { name }, spec: { ...SPEC, ...spec } };
}

const CASES: { name: string; given: AddressBlock; expect?: string[] }[] = [
  { name: 'an IPv4 slice', given: block() },
  { name: 'an IPv6 slice', given: block({ cidr: '2001:db8::40/122' }) },
  { name: 'a slice of one address', given: block({ cidr: '10.1.0.64/32' }) },
  {
    name: 'the longest names',
    given: block({ pool: POOL, node: 'n'.repeat(253) }, blockName(POOL, parseCidr('2001:db8::40/122'))),
  },
  {
    name: 'not a CIDR with host bits',
    given: block({ cidr: '10.1.0.65/26' }),
    expect: ['spec.cidr', '"10.1.0.65/26" is not a CIDR without host bits: write it like 10.1.0.64/26'],
  },
  {
    name: 'not an address instead of a CIDR',
    given: block({ cidr: '10.1.0.64' }),
    expect: ['"10.1.0.64" is not a CIDR without host bits'],
  },
  { name: 'not text instead of a CIDR', given: block({ cidr: 'blue' }), expect: ['spec.cidr', '"blue" is not a CIDR'] },
  { name: 'not an empty CIDR', given: block({ cidr: '' }), expect: ['spec.cidr', 'at least 1 chars'] },
  { name: 'not an empty name of the pool', given: block({ pool: '' }), expect: ['spec.pool', 'at least 1 chars'] },
  { name: 'not an empty name of the node', given: block({ node: '' }), expect: ['spec.node', 'at least 1 chars'] },
  {
    name: 'not a missing node',
    given: { metadata: { name: 'b' }, spec: { pool: 'blue', cidr: '10.1.0.64/26' } as AddressBlockSpec },
    expect: ['spec.node', 'Required value'],
  },
  { name: 'not a missing spec', given: { metadata: { name: 'b' } } as AddressBlock, expect: ['spec', 'Required'] },
];

describe('AddressBlocks, on a kube-apiserver', function () {
  let plane: ControlPlane;
  useServerWithKind(this, ADDRESS_BLOCKS, (started) => (plane = started));

  describe('may have', () => {
    for (const { name, given, expect: words } of CASES) {
      it(name, () => expectSchemaResult(plane.client.create(ADDRESS_BLOCKS, given, { dryRun: true }), words));
    }
  });

  describe('after they are created', () => {
    const ref = { name: 'blue.10-1-0-64-26' };
    beforeEach(() => plane.client.create(ADDRESS_BLOCKS, block()));
    afterEach(() => plane.client.delete(ADDRESS_BLOCKS, ref));

    for (const to of [{ node: 'n2' }, { cidr: '10.1.0.64/27' }, { pool: 'green' }]) {
      it(`abort the field ${Object.keys(to).join()} of their spec`, async () => {
        const attempt = plane.client.patch(ADDRESS_BLOCKS, ref, { type: 'merge', body: { spec: to } });
        await expectSchemaResult(attempt, ['spec of a block cannot be changed', 'delete the block']);
      });
    }

    for (const release of [...Object.values(BlockRelease), 'asked-politely']) {
      it(`accept the release state ${release}`, async () => {
        const body = { status: { release, reason: 'SomeOther' } };
        const after = await plane.client.patch(ADDRESS_BLOCKS, ref, { type: 'merge', body }, { subresource: 'status' });
        expect(after.status).to.deep.equal(body.status);
      });
    }

    it('reject a release state longer than one word', async () => {
      const body = { status: { release: 'x'.repeat(64) } };
      const attempt = plane.client.patch(ADDRESS_BLOCKS, ref, { type: 'merge', body }, { subresource: 'status' });
      await expectSchemaResult(attempt, ['status.release', 'Too long']);
    });

    it('show their release state, and can be selected by pool and node', async () => {
      for (const fieldSelector of ['spec.pool=blue', 'spec.node=n1']) {
        const { items } = await plane.client.list(ADDRESS_BLOCKS, { fieldSelector });
        expect(items.map(({ metadata }) => metadata.name)).to.deep.equal([ref.name]);
      }
      const { shown, rows } = await readTable(plane.client, ADDRESS_BLOCKS);
      expect(shown).to.deep.equal(['Name', 'Pool', 'CIDR', 'Node', 'Release', 'Age']);
      expect(rows[0]?.slice(0, 4)).to.deep.equal([ref.name, 'blue', '10.1.0.64/26', 'n1']);
    });
  });

  describe('written by ipam', () => {
    const blocks = new BlockBook();
    const slice = parseCidr('10.2.0.0/26');
    const known = () => blocks.ofPool('red')[0];
    const context = () => ({ client: plane.client, blocks, call: {} });
    const why = 'a test wants it';

    /** The answer of the node. */
    async function answer(release: string): Promise<void> {
      const name = known()?.metadata.name ?? '';
      const patch = { type: 'merge' as const, body: { status: { release } } };
      blocks.wrote(await plane.client.patch(ADDRESS_BLOCKS, { name }, patch, { subresource: 'status' }));
    }

    it('are assigned to a node, marked, released and deleted', async () => {
      expect(await applyBlockAction({ kind: 'lend', pool: 'red', slice, node: 'n1', why }, context())).to.equal('done');
      expect(known()?.metadata.finalizers).to.deep.equal([BLOCK_FINALIZER]);
      const stale = known()!;
      await applyBlockAction({ kind: 'mark', block: stale, reason: 'ExcessAddresses', why }, context());
      expect(known()).to.include({ release: 'marked-for-release', reason: 'ExcessAddresses' });
      await answer(BlockRelease.Refused);
      await applyBlockAction({ kind: 'abort', block: known()!, why }, context());
      expect(known()).not.to.have.any.keys('release', 'reason');
      const lost = await applyBlockAction({ kind: 'mark', block: stale, reason: 'Withdrawn', why }, context());
      expect(lost).to.equal('lost');
      await applyBlockAction({ kind: 'mark', block: known()!, reason: 'PoolExhausted', why }, context());
      await answer(BlockRelease.Ready);
      const block = known()!;
      await applyBlockAction({ kind: 'reclaim', block, reason: 'PoolExhausted', isNodeGone: false, why }, context());
      expect(known()).to.include({ release: 'released' });
      await applyBlockAction({ kind: 'delete', block: known()!, why }, context());
      expect(known()?.metadata.deletionTimestamp).to.be.a('string');
      await applyBlockAction({ kind: 'remove-finalizer', block: known()!, why }, context());
      expect(known()).to.equal(undefined);
      const { items } = await plane.client.list(ADDRESS_BLOCKS, { fieldSelector: 'spec.pool=red' });
      expect(items).to.deep.equal([]);
    });

    it('are reclaimed without an answer only if the API server has no such node', async () => {
      const metadata = { name: 'n5' };
      await plane.client.create(NODES, { metadata });
      await applyBlockAction({ kind: 'lend', pool: 'red', slice, node: 'n5', why }, context());
      await applyBlockAction({ kind: 'mark', block: known()!, reason: 'NodeGone', why }, context());
      const action = { kind: 'reclaim', block: known()!, reason: 'NodeGone', isNodeGone: true, why } as const;
      expect(await applyBlockAction(action, context())).to.equal('node-there');
      await plane.client.delete(NODES, metadata);
      expect(await applyBlockAction(action, context())).to.equal('done');
      expect(known()).to.include({ release: 'released' });
    });
  });
});
