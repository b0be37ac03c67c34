import { expect } from 'chai';
import { type AddressBlock, type AddressBlockStatus, BlockRelease, ReleaseReason } from '../../api/address-block.js';
import { answerBlock, lendBlock, markBlock, readBlock } from '../../addressing/block/block.js';
import { parseCidr } from '../../addressing/address/cidr.js';
import type { Client } from '../../kube/client.js';
import { ADDRESS_BLOCKS, NODES } from '../../kube/resources.js';
import { type PolicyCluster, expectDenial, untilDenied, usePolicyCluster } from '../testing/policy-cluster.js';
import { AGENT, AGENT_USER } from '../testing/node-leases.js';
import { requestErrorOf } from '../../test/request-error.js';

const NODE = 'node-1';
const MARKED: AddressBlockStatus = { release: BlockRelease.Marked, reason: ReleaseReason.Excess };
const READY = { status: { release: BlockRelease.Ready } };
const REFUSED = { status: { release: BlockRelease.Refused } };

const NO_WRITE = 'an agent does not create, change or delete blocks';
const FOREIGN = 'block 10.0.0.64/26 is assigned to node node-2: the agent of node node-1 cannot answer for it';
const WORDS = 'an agent answers marked-for-release with ready-for-release or do-not-release';
const REASON = 'only ipam writes status.reason of a block';

function block(node = NODE): AddressBlock {
  return lendBlock('blue', parseCidr('10.0.0.64/26'), node).object;
}

describe('the admission policy for answers of agents about blocks, on a kube-apiserver', function () {
  let cluster: PolicyCluster;
  let agent: Client;

  usePolicyCluster(this, async (started) => {
    cluster = started;
    await cluster.admin.create(NODES, { metadata: { name: NODE } });
    agent = await cluster.withToken(AGENT, { node: NODE });
    await lent(undefined, 'node-2');
    await untilDenied(() => answer(agent, READY, true));
    await gone();
  });
  afterEach(gone);

  async function lent(status?: AddressBlockStatus, node = NODE): Promise<AddressBlock> {
    const made = await cluster.admin.create(ADDRESS_BLOCKS, block(node));
    if (status === undefined) return made;
    return cluster.admin.patch(ADDRESS_BLOCKS, made.metadata, merge({ status }), { subresource: 'status' });
  }

  async function gone(): Promise<void> {
    const { items } = await cluster.admin.list(ADDRESS_BLOCKS);
    for (const { metadata } of items) {
      await cluster.admin.patch(ADDRESS_BLOCKS, metadata, merge({ metadata: { finalizers: null } }));
      await cluster.admin.delete(ADDRESS_BLOCKS, metadata);
    }
  }

  const merge = (body: object) => ({ type: 'merge', body }) as const;
  const answer = (client: Client, body: object, dryRun = false) =>
    client.patch(ADDRESS_BLOCKS, block().metadata, merge(body), { subresource: 'status', dryRun });

  const answers: { name: string; from?: AddressBlockStatus; node?: string; to: object; expect?: string }[] = [
    { name: 'may release a block of its node', from: MARKED, to: READY },
    { name: 'may keep a block of its node', from: MARKED, to: REFUSED },
    { name: 'may release a block that was marked for any reason', from: { release: BlockRelease.Marked }, to: READY },
    { name: 'may not release a block of another node', from: MARKED, node: 'node-2', to: READY, expect: FOREIGN },
    { name: 'may not keep a block of another node', from: MARKED, node: 'node-2', to: REFUSED, expect: FOREIGN },
    {
      name: 'may not release an unmarked one',
      to: READY,
      expect: `would change from "" to "ready-for-release": ${WORDS}`,
    },
    { name: 'may not refuse to release a block that is not marked', to: REFUSED, expect: WORDS },
    ...[BlockRelease.Ready, BlockRelease.Refused, BlockRelease.Released, 'asked-politely'].flatMap((release) =>
      [READY, REFUSED]
        .filter(({ status }) => status.release !== release)
        .map((to) => ({
          name: `may not write ${to.status.release} if the release state is ${release}`,
          from: { ...MARKED, release },
          to,
          expect: `from "${release}" to "${to.status.release}"`,
        })),
    ),
    { name: 'may not mark a block', to: { status: MARKED }, expect: WORDS },
    { name: 'may not write a release of ipam', from: MARKED, to: { status: { release: 'released' } }, expect: WORDS },
    { name: 'may not clear the release', from: MARKED, to: { status: { release: null } }, expect: `to "": ${WORDS}` },
    { name: 'may not write an unknown release', from: MARKED, to: { status: { release: 'perhaps' } }, expect: WORDS },
    { name: 'may not write marked-for-release again', from: MARKED, to: { status: { reason: 'x' } }, expect: WORDS },
    {
      name: 'cannot set the reason',
      from: MARKED,
      to: { status: { ...READY.status, reason: 'PoolExhausted' } },
      expect: REASON,
    },
    { name: 'cannot drop the reason', from: MARKED, to: { status: { ...READY.status, reason: null } }, expect: REASON },
    {
      name: 'may not add a reason',
      from: { release: BlockRelease.Marked },
      to: { status: { ...READY.status, reason: 'x' } },
      expect: REASON,
    },
  ];
  for (const { name, from, node, to, expect: words } of answers) {
    it(`an agent ${name}`, async () => {
      await lent(from, node);
      await expectDenial(answer(agent, to), words);
    });
  }

  it('an agent answers as answerBlock writes it, and other fields of the block stay unchanged', async () => {
    const made = readBlock(await lent());
    const mark = markBlock(made, ReleaseReason.Pressure);
    const marked = readBlock(await answer(cluster.admin, mark.body));
    const write = answerBlock(marked, false);
    const more = { labels: { mine: 'yes' }, finalizers: null };
    const body = write.body as { metadata: object };
    const after = await answer(agent, { ...body, metadata: { ...body.metadata, ...more }, spec: { node: 'node-2' } });
    expect(after.status).to.deep.equal({ release: 'do-not-release', reason: 'PoolExhausted' });
    expect(after.spec).to.deep.equal(block().spec);
    expect(after.metadata).to.deep.include({
      labels: block().metadata.labels,
      finalizers: block().metadata.finalizers,
    });
  });

  it('an agent gets a conflict, not a denial by the policy, if ipam changed the block first', async () => {
    const marked = readBlock(await lent(MARKED));
    await answer(cluster.admin, { status: { release: null, reason: null } });
    const write = answerBlock(marked, true);
    expect(await requestErrorOf(answer(agent, write.body))).to.include({ status: 409, reason: 'Conflict' });
  });

  it('an agent cannot create, change or delete blocks even if RBAC allows it by mistake', async () => {
    const mighty = await cluster.as(AGENT_USER, NODE);
    await expectDenial(mighty.create(ADDRESS_BLOCKS, block()), NO_WRITE);
    const { metadata } = await lent(MARKED);
    await expectDenial(mighty.patch(ADDRESS_BLOCKS, metadata, merge({ metadata: { finalizers: null } })), NO_WRITE);
    await expectDenial(mighty.delete(ADDRESS_BLOCKS, metadata), NO_WRITE);
  });

  it('RBAC does not allow an agent to create, change or delete blocks', async () => {
    const { metadata } = await lent(MARKED);
    const other = { ...block(), metadata: { ...block().metadata, name: 'other' } };
    await expectDenial(agent.create(ADDRESS_BLOCKS, other), 'cannot create resource "addressblocks"');
    await expectDenial(agent.patch(ADDRESS_BLOCKS, metadata, merge({})), 'cannot patch resource "addressblocks"');
    await expectDenial(agent.delete(ADDRESS_BLOCKS, metadata), 'cannot delete resource "addressblocks"');
  });

  it('an agent whose token names no node cannot answer for any block', async () => {
    await lent(MARKED);
    const nowhere = await cluster.as(AGENT_USER);
    await expectDenial(answer(nowhere, READY), `the token of ${AGENT_USER} is not bound to a node`);
  });

  it('the policy applies to a service account of the same name in another namespace, and to no other user', async () => {
    await lent(MARKED, 'node-2');
    const namesake = await cluster.as('system:serviceaccount:other:holdfast-agent', NODE);
    await expectDenial(answer(namesake, READY), FOREIGN);
    await expectDenial(answer(await cluster.as('system:serviceaccount:other:holdfast-agent2', NODE), READY), undefined);
  });
});
