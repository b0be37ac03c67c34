import { expect } from 'chai';
import fc from 'fast-check';
import { arbitraryEvent, runModel } from '../testing/model/model-events.js';
import { AgentModel } from '../testing/model/agent-model.js';

const arbitraryEvents = fc.array(arbitraryEvent, { minLength: 40, maxLength: 160, size: 'max' });

describe('leases of pods, in any order of events', function () {
  this.timeout(300_000);

  for (const nodeBlocks of [false, true]) {
    it(`are held by the pods that got them, and are released after their DEL or the end of the pod${nodeBlocks ? ', also from blocks' : ''}`, async () => {
      let grants = 0;
      await fc.assert(
        fc.asyncProperty(arbitraryEvents, async (events) => {
          const model = new AgentModel(nodeBlocks);
          await runModel(model, events);
          grants += model.grants;
        }),
        { numRuns: Number(globalThis.process.env.MODEL_RUNS ?? 500) },
      );
      // otherwise the model has tested nothing
      expect(grants).to.be.greaterThan(500);
    });
  }
});
