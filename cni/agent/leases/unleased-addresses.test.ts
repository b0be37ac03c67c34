import { expect } from 'chai';
import { type Address, formatAddress, parseAddress } from '../../../addressing/address/address.js';
import { compiledPool } from '../../../test/objects/lease-objects.js';
import { LeaseAgentWorld, OTHER } from '../testing/model/lease-agent-world.js';
import { findUnleasedAddress } from './unleased-addresses.js';

const verbsOf = (requests: readonly string[]) => requests.map((text) => text.split(' ')[0]);

describe('addresses that had no lease when they were read', () => {
  /** Leases seven tenths of a /24. */
  async function crowdedWorld(): Promise<LeaseAgentWorld> {
    const world = new LeaseAgentWorld(compiledPool({ cidr: '10.0.0.0/24' }));
    for (let last = 1; last < 255; last++) if (last % 10 >= 3) await world.leaseTo(OTHER, `10.0.0.${last}`);
    return world;
  }

  it('are read eight at a time once an address was taken, and cost the next ADDs one create each', async () => {
    const world = await crowdedWorld();
    const costs: string[] = [];
    for (let n = 0; n < 30; n++) {
      await world.add({ pod: `p${n}` });
      costs.push(verbsOf(world.requests()).join(' '));
    }
    const read = `POST${' GET'.repeat(8)} POST`;
    expect(costs.filter((cost) => cost === read)).to.have.length.greaterThan(2);
    expect(costs.filter((cost) => cost === 'POST')).to.have.length.greaterThan(15);
    expect([...world.agent.feeds.keys()], 'nothing is watched').to.deep.equal(['spec.node=n1']);
  });

  it('are read again if another owner has leased one since', async () => {
    const world = await crowdedWorld();
    const hasRead = () => verbsOf(world.requests()).includes('GET');
    let n = 0;
    do await world.add({ pod: `p${n++}` });
    while (!hasRead());
    for (let last = 1; last < 255; last++)
      if (last % 10 < 2 && world.lease(`10.0.0.${last}`) === undefined) await world.leaseTo(OTHER, `10.0.0.${last}`);
    for (; n < 20; n++) expect((await world.add({ pod: `p${n}` }))[0]).to.match(/2$/);
  });

  describe('by one search', () => {
    const address = (last: number) => parseAddress(`10.0.0.${last}`);

    async function search({ leased = [] as number[], failing = [] as number[], closed = [] as number[], limit = 8 }) {
      let next = 1;
      const [settled, kept]: [string[], string[]] = [[], []];
      const lastOf = ({ value }: Address) => Number(value & 255n);
      const deps = {
        candidates: {
          settle: (one: Address, isTaken: boolean) => void settled.push(`${formatAddress(one)} ${String(isTaken)}`),
          keepUnleased: (one: Address) => void kept.push(formatAddress(one)),
        },
        pick: () => (next <= 3 ? address(next++) : undefined),
        isPickable: (one: Address) => !closed.includes(lastOf(one)),
        isLeased: (one: Address) =>
          failing.includes(lastOf(one)) ? Promise.reject(new Error('no answer')) : Promise.resolve(leased.includes(lastOf(one))), // oxfmt-ignore
      };
      const found = await findUnleasedAddress(deps, limit);
      return { found: found.address && formatAddress(found.address), taken: found.taken, settled, kept };
    }

    it('are all that were picked: one to allocate, the others for later', async () => {
      const { found, taken, settled, kept } = await search({ leased: [1] });
      expect([found, taken, settled, kept]).to.deep.equal(['10.0.0.2', 1, ['10.0.0.1 true'], ['10.0.0.3']]);
    });

    it('are not allocated if the node has to give their block back meanwhile', async () => {
      const { found, settled, kept } = await search({ closed: [1, 2] });
      expect([found, settled, kept]).to.deep.equal(['10.0.0.3', ['10.0.0.1 false', '10.0.0.2 false'], []]);
    });

    it('do not include one whose read failed, which fails the search only if there is no other', async () => {
      expect((await search({ failing: [1, 2] })).found).to.equal('10.0.0.3');
      const failed = await search({ failing: [1], leased: [2, 3] }).catch((error: unknown) => String(error));
      expect(failed).to.equal('Error: no answer');
    });

    it('are not more than the attempts that are left', async () => {
      expect((await search({ limit: 1, leased: [1] })).settled).to.deep.equal(['10.0.0.1 true']);
    });
  });
});
