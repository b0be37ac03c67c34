import { expect } from 'chai';
import { PROBE_ANNOTATION } from './names.js';
import { type ProbeState, formatProbe, readProbe } from './probe.js';

const read = (text: string) => readProbe({ annotations: { [PROBE_ANNOTATION]: text } });

describe('the state of a probe', () => {
  for (const state of ['requested', 'free', 'self', 'skipped', { taken: '02:00:00:00:00:0a' }] satisfies ProbeState[]) {
    it(`${JSON.stringify(state)} is read as it was written`, () => {
      expect(read(formatProbe(state))).to.deep.equal(state);
    });
  }

  it('is absent on a lease that is not probed', () => {
    expect(readProbe({})).to.equal(undefined);
  });

  it('has the MAC address in lower case with colons', () => {
    expect(read('taken 02-00-00-00-00-AB')).to.deep.equal({ taken: '02:00:00:00:00:ab' });
  });

  for (const text of ['', 'FREE', 'free ', 'taken', 'taken ', 'taken 02:00:00:00:00', 'taken  02:00:00:00:00:0a']) {
    it(`is not answered by ${JSON.stringify(text)}`, () => {
      expect(read(text)).to.equal('requested');
    });
  }
});
