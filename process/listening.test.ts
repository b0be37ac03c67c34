import { expect } from 'chai';
import { parseBindAddress } from './listening.js';

describe('parseBindAddress', () => {
  const readings = [
    { given: ':8081', expect: { host: undefined, port: 8081 } },
    { given: '127.0.0.1:0', expect: { host: '127.0.0.1', port: 0 } },
    { given: '[::1]:9443', expect: { host: '::1', port: 9443 } },
    { given: 'localhost:80', expect: { host: 'localhost', port: 80 } },
    { given: '0', expect: undefined },
  ];
  for (const { given, expect: wanted } of readings) {
    it(`reads ${given}`, () => expect(parseBindAddress(given)).to.deep.equal(wanted));
  }

  for (const given of ['', '8081', '127.0.0.1', '::1:80', '[x]:80', ':65536', 'host:', 'a:b:1']) {
    it(`rejects "${given}" and lists the allowed forms`, () => {
      expect(() => parseBindAddress(given)).to.throw(TypeError, 'must be host:port');
    });
  }
});
