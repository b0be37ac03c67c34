import { expect } from 'chai';
import { formatAddress } from '../../addressing/address/address.js';
import { ipPoolName, readReservationName, spellingsOf } from './object-names.js';

describe('the names of whereabouts’ objects', () => {
  for (const [given, name] of [
    [['10.0.0.0/24'], '10.0.0.0-24'],
    [['fd00::/120'], 'fd00---120'],
    [['fd00:1234::'], 'fd00-1234--0'],
    [['10.0.0.0/24', 'lan'], 'lan-10.0.0.0-24'],
    [['10.0.1.0/24', '', 'node-1'], 'node-1-10.0.1.0-24'],
    [['10.0.1.0/24', 'lan', 'node-1'], 'lan-node-1-10.0.1.0-24'],
  ] as const) {
    it(`include ${name} for an IPPool`, () => expect(ipPoolName(...(given as [string]))).to.equal(name));
  }

  for (const [given, spellings] of [
    ['10.0.0.0/24', ['10.0.0.0/24']],
    ['192.168.2.225/28', ['192.168.2.224/28', '192.168.2.225/28']],
    ['10.0.0.10-10.0.0.20/24', ['10.0.0.0/24', '10.0.0.20/24', '10.0.0.10-10.0.0.20/24']],
    ['what', ['what']],
    ['10.0.0.0', ['10.0.0.0']],
  ] as const) {
    it(`cover all spellings of ${given}`, () => expect(spellingsOf(given)).to.deep.equal(spellings));
  }

  for (const [given, expected] of [
    ['10.0.0.5', [' 10.0.0.5']],
    ['fd00--5', [' fd00::5']],
    ['fd00--0', [' fd00::']],
    ['lan-10.0.0.5', ['lan 10.0.0.5']],
    ['lan-a-fd00--5', ['lan a:fd00::5', 'lan-a fd00::5']],
    ['other-10.0.0.5', []],
    ['lan-', []],
  ] as const) {
    it(`are parsed for a reservation: ${given}`, () => {
      const read = readReservationName(given, ['lan', 'lan-a']);
      expect(read.map(({ networkName, address }) => `${networkName} ${formatAddress(address)}`)).to.deep.equal(
        expected,
      );
    });
  }
});
