import { expect } from 'chai';
import { environment } from '../../bed/story/hooks.js';
import { describeOnNodes } from '../../bed/story/nodes.js';
import { Narrator } from '../demo/narrator.js';
import { followTutorial } from '../demo/tutorial.js';

describeOnNodes('The tutorial', () => {
  it('shows what its commands print on real nodes', async function () {
    this.timeout(600_000);
    const narrator = new Narrator();
    await followTutorial(environment(), narrator);
    expect(narrator.end(), 'failed checks').to.equal(0);
  });
});
