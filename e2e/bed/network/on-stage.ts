import { after, afterEach, before } from 'mocha';
import { WireStage } from './wire-stage.js';

/** Gives a suite a stage, and each of its tests one without pods. Where the machine allows no wire, the tests are skipped. */
export function onWireStage(enter: (stage: WireStage) => void): void {
  let stage: WireStage | undefined;

  before('a stage', async function () {
    const opened = await WireStage.open();
    if (typeof opened === 'string') {
      console.log(`    ${opened}`);
      this.skip();
    }
    stage = opened;
    enter(opened);
  });

  after('the stage goes', () => stage?.plane.stop());

  afterEach('its pods go', () => stage?.clear());
}
