import { expect } from 'chai';
import { type AddressBlock, type AddressBlockStatus, BlockRelease, ReleaseReason } from '../api/address-block.js';
import { answerBlock, lendBlock, markBlock, readBlock } from '../ipam/core/block.js';
import { parseCidr } from '../ipam/core/cidr.js';
import type { Client } from '../kube/client.js';
import { ADDRESS_BLOCKS, NODES } from '../kube/resources.js';
import { PolicyCluster, expectDenial, untilDenied } from './testing/policy-cluster.js';
import { AGENT, AGENT_USER } from './testing/node-leases.js';
import { requestErrorOf } from '../test/request-error.js';

const NODE = 'node-1';
const MARKED: AddressBlockStatus = { release: BlockRelease.Marked, reason: ReleaseReason.Excess };
const READY = { status: { release: BlockRelease.Ready } };
const REFUSED = { status: { release: BlockRelease.Refused } };

const NO_WRITE = 'an agent makes, changes and deletes no block';
const FOREIGN = 'block 10.0.0.64/26 is lent to node node-2: the agent of node node-1 does not answer for it';
const WORDS = 'an agent answers marked-for-release, by ready-for-release or do-not-release';
const REASON = 'leave status.reason as it is';

function block(node = NODE): AddressBlock {
  const write = lendBlock('blue', parseCidr('10.0.0.64/26'), node);
  if (write.verb !== 'create') throw new TypeError(write.verb);
  return write.block;
}

describe('the admission policy for blocks that agents answer for, on a kube-apiserver', function () {
  this.timeout(20_000);
  let cluster: PolicyCluster;
  let agent: Client;

  before(async function () {
    this.timeout(15 * 60_000); // the first run builds the API server
    cluster = await PolicyCluster.start({ kubevirtNamespace: 'kubevirt' });
    await cluster.admin.create(NODES, { metadata: { name: NODE } });
    agent = await cluster.withToken(AGENT, { node: NODE });
    await lent(undefined, 'node-2');
    await untilDenied(() => answer(agent, READY, true));
    await gone();
  });
  after(() => cluster.stop());
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
    { name: 'that it gives a block of its node back', from: MARKED, to: READY },
    { name: 'that it keeps one', from: MARKED, to: REFUSED },
    { name: 'whatever the reason', from: { release: BlockRelease.Marked }, to: READY },
    { name: 'not for another node', from: MARKED, node: 'node-2', to: READY, expect: FOREIGN },
    { name: 'not for another node that it keeps it', from: MARKED, node: 'node-2', to: REFUSED, expect: FOREIGN },
    { name: 'not unless it is asked', to: READY, expect: `would go from "" to "ready-for-release": ${WORDS}` },
    { name: 'not that it keeps what nobody wants', to: REFUSED, expect: WORDS },
    ...[BlockRelease.Ready, BlockRelease.Refused, BlockRelease.Released, 'asked-politely'].flatMap((release) =>
      [READY, REFUSED]
        .filter(({ status }) => status.release !== release)
        .map((to) => ({
          name: `not ${to.status.release} where it says ${release}`,
          from: { ...MARKED, release },
          to,
          expect: `from "${release}" to "${to.status.release}"`,
        })),
    ),
    { name: 'not by asking itself', to: { status: MARKED }, expect: WORDS },
    { name: 'not in the words of ipam', from: MARKED, to: { status: { release: 'released' } }, expect: WORDS },
    {
      name: 'not by forgetting the question',
      from: MARKED,
      to: { status: { release: null } },
      expect: `to "": ${WORDS}`,
    },
    { name: 'not in words of its own', from: MARKED, to: { status: { release: 'perhaps' } }, expect: WORDS },
    { name: 'not by repeating the question', from: MARKED, to: { status: { reason: 'x' } }, expect: WORDS },
    {
      name: 'and gives no other reason',
      from: MARKED,
      to: { status: { ...READY.status, reason: 'PoolExhausted' } },
      expect: REASON,
    },
    {
      name: 'and takes no reason away',
      from: MARKED,
      to: { status: { ...READY.status, reason: null } },
      expect: REASON,
    },
    {
      name: 'and makes no reason up',
      from: { release: BlockRelease.Marked },
      to: { status: { ...READY.status, reason: 'x' } },
      expect: REASON,
    },
  ];
  for (const { name, from, node, to, expect: words } of answers) {
    it(`an agent says ${name}`, async () => {
      await lent(from, node);
      await expectDenial(answer(agent, to), words);
    });
  }

  it('an agent answers as the life of a block says, and nothing else of it changes with the answer', async () => {
    const made = readBlock(await lent());
    const mark = markBlock(made, ReleaseReason.Pressure);
    if (mark.verb !== 'patch-status') throw new TypeError(mark.verb);
    const marked = readBlock(await answer(cluster.admin, mark.body));
    const write = answerBlock(marked, false);
    if (write.verb !== 'patch-status') throw new TypeError(write.verb);
    const more = { labels: { mine: 'yes' }, finalizers: null };
    const body = write.body as { metadata: object };
    const answered = await answer(agent, {
      ...body,
      metadata: { ...body.metadata, ...more },
      spec: { node: 'node-2' },
    });
    expect(answered.status).to.deep.equal({ release: 'do-not-release', reason: 'PoolExhausted' });
    expect(answered.spec).to.deep.equal(block().spec);
    expect(answered.metadata).to.deep.include({
      labels: block().metadata.labels,
      finalizers: block().metadata.finalizers,
    });
  });

  it('an agent is told of a conflict, not of a policy, where ipam was faster', async () => {
    const marked = readBlock(await lent(MARKED));
    await answer(cluster.admin, { status: { release: null, reason: null } });
    const write = answerBlock(marked, true);
    if (write.verb !== 'patch-status') throw new TypeError(write.verb);
    expect(await requestErrorOf(answer(agent, write.body))).to.include({ status: 409, reason: 'Conflict' });
  });

  it('an agent makes, changes and deletes none, though it might by mistake', async () => {
    const mighty = await cluster.as(AGENT_USER, NODE);
    await expectDenial(mighty.create(ADDRESS_BLOCKS, block()), NO_WRITE);
    const { metadata } = await lent(MARKED);
    await expectDenial(mighty.patch(ADDRESS_BLOCKS, metadata, merge({ metadata: { finalizers: null } })), NO_WRITE);
    await expectDenial(mighty.delete(ADDRESS_BLOCKS, metadata), NO_WRITE);
  });

  it('RBAC lets an agent make, change and delete none', async () => {
    const { metadata } = await lent(MARKED);
    const other = { ...block(), metadata: { ...block().metadata, name: 'other' } };
    await expectDenial(agent.create(ADDRESS_BLOCKS, other), 'cannot create resource "addressblocks"');
    await expectDenial(agent.patch(ADDRESS_BLOCKS, metadata, merge({})), 'cannot patch resource "addressblocks"');
    await expectDenial(agent.delete(ADDRESS_BLOCKS, metadata), 'cannot delete resource "addressblocks"');
  });

  it('an agent whose token names no node answers for none', async () => {
    await lent(MARKED);
    const nowhere = await cluster.as(AGENT_USER);
    await expectDenial(answer(nowhere, READY), `the token of ${AGENT_USER} names no node`);
  });

  it('a namesake of another namespace is held to the same, and others are not', async () => {
    await lent(MARKED, 'node-2');
    const namesake = await cluster.as('system:serviceaccount:other:holdfast-agent', NODE);
    await expectDenial(answer(namesake, READY), FOREIGN);
    await expectDenial(answer(await cluster.as('system:serviceaccount:other:holdfast-agent2', NODE), READY), undefined);
  });
});
