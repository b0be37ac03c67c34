import { expect } from 'chai';
import fc from 'fast-check';
import { type ModelEvent, arbitraryEvent, applyEvent, runModel } from '../testing/model/model-events.js';
import { BLOCK_FEED } from '../testing/model/lease-agent.js';
import { AgentModel, NODES } from '../testing/model/agent-model.js';

type BlockEvent =
  | { what: 'lend'; pick: number; node: number }
  | { what: 'mark' | 'keep' | 'takeBack'; pick: number }
  | { what: 'blockNews'; node: number };

const pick = fc.nat({ max: 11 });
const node = fc.nat({ max: NODES.length - 1 });
const blockEvent: fc.Arbitrary<BlockEvent> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ what: fc.constant('lend' as const), pick, node }) },
  { weight: 3, arbitrary: fc.record({ what: fc.constant('mark' as const), pick }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constantFrom('keep' as const, 'takeBack'), pick }) },
  { weight: 4, arbitrary: fc.record({ what: fc.constant('blockNews' as const), node }) },
);
const anyEvent: fc.Arbitrary<ModelEvent | BlockEvent> = fc.oneof(
  { weight: 4, arbitrary: arbitraryEvent },
  { weight: 1, arbitrary: blockEvent },
);

async function applyAnyEvent(world: AgentModel, current: ModelEvent | BlockEvent): Promise<void> {
  switch (current.what) {
    case 'lend':
      world.blocks.lend(current.pick, NODES[current.node]!);
      break;
    case 'mark':
    case 'keep':
    case 'takeBack':
      world.blocks[current.what](current.pick);
      break;
    case 'blockNews':
      world.agents[current.node]!.feeds.get(BLOCK_FEED)?.deliver();
      break;
    default:
      await applyEvent(world, current);
  }
}

describe('blocks of nodes and the leases of their pods, in any order of events', function () {
  this.timeout(120_000);

  it('are never used after their release, are all answered, and no pod loses its address', async () => {
    const seen = { grants: 0, returns: 0 };
    await fc.assert(
      fc.asyncProperty(fc.array(anyEvent, { minLength: 40, maxLength: 200, size: 'max' }), async (events) => {
        const model = new AgentModel(true);
        await runModel(model, events, applyAnyEvent);
        model.blocks.checkAnswered();
        model.check();
        seen.grants += model.grants;
        seen.returns += model.blocks.returns;
      }),
      { numRuns: Number(globalThis.process.env.MODEL_RUNS ?? 500) },
    );
    // otherwise the model has tested nothing
    expect(seen.grants).to.be.greaterThan(500);
    expect(seen.returns).to.be.greaterThan(100);
  });
});
