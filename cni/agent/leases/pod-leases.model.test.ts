import { expect } from 'chai';
import fc from 'fast-check';
import { arbitraryEvent, applyEvent, runModel } from '../testing/model/model-events.js';
import { AgentModel } from '../testing/model/agent-model.js';

describe('leases of pods, in any order of events', function () {
  this.timeout(120_000);

  it('are held by the pods that got them, and are released after their DEL or the end of the pod', async () => {
    let grants = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(arbitraryEvent, { minLength: 40, maxLength: 160, size: 'max' }), async (events) => {
        const model = new AgentModel();
        await runModel(model, events, applyEvent);
        grants += model.grants;
      }),
      { numRuns: Number(globalThis.process.env.MODEL_RUNS ?? 500) },
    );
    // otherwise the model has tested nothing
    expect(grants).to.be.greaterThan(500);
  });
});
