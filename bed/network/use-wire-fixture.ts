import { after, afterEach, before } from 'mocha';
import { WireFixture } from './wire-fixture.js';

/** Opens a wire fixture for a suite, without pods for each test. Skips the tests if the machine does not allow real pod networks. */
export function useWireFixture(onOpen: (fixture: WireFixture) => void): void {
  let fixture: WireFixture | undefined;

  before('open the wire fixture', async function () {
    const opened = await WireFixture.open();
    if (typeof opened === 'string') {
      console.log(`    ${opened}`);
      this.skip();
    }
    fixture = opened;
    onOpen(opened);
  });

  after('stop the wire fixture', () => fixture?.plane.stop());

  afterEach('remove all pods', () => fixture?.removePods());
}
