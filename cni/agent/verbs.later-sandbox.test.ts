import { expect } from 'chai';
import { compiledPool } from '../../test/objects/lease-objects.js';
import { pluginRequest } from '../testing/cni-requests.js';
import { readCniRequest, readPluginRequest } from './request.js';
import { LeaseAgentWorld, attachmentOf } from './testing/model/lease-agent-world.js';
import { Verbs } from './verbs.js';

const POOL = compiledPool({ subnets: [{ cidr: '10.0.0.0/29', gateway: '10.0.0.1' }] });
const CALL = { signal: new AbortController().signal };

describe('an ADD that comes to its lease after that of a later sandbox has ended', () => {
  it('is refused, so that its DEL does not release the address of the later sandbox', async () => {
    const scene = new LeaseAgentWorld(POOL);
    let readReturns: () => void = () => undefined;
    const slowRead = new Promise<void>((resolve) => (readReturns = resolve));
    const verbs = new Verbs({
      ...({} as ConstructorParameters<typeof Verbs>[0]),
      resolver: {
        resolve: async ({ containerId }) => {
          if (containerId === 'c1') await slowRead;
          return attachmentOf({ container: containerId });
        },
        selectionFor: () => undefined,
      },
      claims: {
        grant: () => Promise.resolve(undefined),
        hasClaim: () => Promise.resolve(false),
        check: () => Promise.resolve('unknown'),
      },
      leases: scene.agent.leases,
      lookup: {
        resolve: () => Promise.resolve({ kind: 'served', pool: POOL, message: '' } as never),
        confirm: () => Promise.resolve(true),
        adminPools: () => [],
        writtenPool: () => undefined,
      },
      pendingDeletes: { has: () => false, remove: () => Promise.resolve() },
      sandboxes: { add: () => undefined },
      guard: { rulesFor: () => Promise.resolve(undefined) },
      informers: { ready: () => undefined, synced: () => Promise.resolve() },
    });
    const ask = (command: string, container: string) => {
      const text = JSON.stringify(pluginRequest(command, { CNI_CONTAINERID: container }));
      return verbs.perform(readCniRequest(readPluginRequest(text)), CALL);
    };
    const late = ask('ADD', 'c1').catch(String);
    await ask('ADD', 'c2');
    const [address = ''] = scene.held;
    readReturns();
    expect(await late).to.include('sandbox c1 is not the latest sandbox of its pod');
    await ask('DEL', 'c1');
    expect(scene.held).to.deep.equal([address]);
    expect(scene.lease(address)?.spec.containerID).to.equal('c2');
  });
});
