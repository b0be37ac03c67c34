import { after, afterEach, before } from 'mocha';
import { WireFixture } from './wire-fixture.js';

/** Gives a suite a stage, and each of its tests one without pods. Where the machine allows no wire, the tests are skipped. */
export function useWireFixture(onOpen: (fixture: WireFixture) => void): void {
  let fixture: WireFixture | undefined;

  before('a stage', async function () {
    const opened = await WireFixture.open();
    if (typeof opened === 'string') {
      console.log(`    ${opened}`);
      this.skip();
    }
    fixture = opened;
    onOpen(opened);
  });

  after('the stage goes', () => fixture?.plane.stop());

  afterEach('its pods go', () => fixture?.removePods());
}
