import { expect } from 'chai';
import { DEFAULT_FEATURE_GATES, FEATURE_GATE_NAMES, formatFeatureGates, parseFeatureGates } from './feature-gates.js';

describe('feature gates', () => {
  const readings = [
    { name: 'none named keep their defaults', given: '', expect: true },
    { name: 'switch off', given: 'PersistentIPs=false', expect: false },
    { name: 'may be surrounded by blanks and commas', given: ' PersistentIPs = false ,', expect: false },
    { name: 'named twice mean the last', given: 'PersistentIPs=false,PersistentIPs=true', expect: true },
  ];
  for (const { name, given, expect: wanted } of readings) {
    it(name, () => expect(parseFeatureGates(given)).to.deep.equal({ ...DEFAULT_FEATURE_GATES, persistentIPs: wanted }));
  }

  const refusals = [
    {
      name: 'rejects an unknown gate by name',
      given: 'PersistentIPs=true,Other=false',
      expect: /unknown feature gate "Other"/,
    },
    { name: 'rejects a property of objects', given: 'constructor=true', expect: /unknown feature gate "constructor"/ },
    { name: 'rejects a missing value', given: 'PersistentIPs', expect: /PersistentIPs=true or PersistentIPs=false/ },
    { name: 'a value that is no boolean is refused', given: 'PersistentIPs=yes', expect: /PersistentIPs=true or/ },
    { name: 'a second equals sign is refused', given: 'PersistentIPs=true=true', expect: /PersistentIPs=true or/ },
  ];
  for (const { name, given, expect: message } of refusals) {
    it(name, () => expect(() => parseFeatureGates(given)).to.throw(TypeError, message));
  }

  it('are formatted as they are parsed', () => {
    const text = formatFeatureGates(DEFAULT_FEATURE_GATES);
    expect(parseFeatureGates(text)).to.deep.equal(DEFAULT_FEATURE_GATES);
    for (const name of FEATURE_GATE_NAMES) expect(text).to.include(`${name}=`);
  });
});
